// MGG's aggregation (Wang et al., OSDI 2023; chapter 4 of the thesis), as a weighted SpMM on the
// rows of one GPU: Y += A X, fp32, where X is dealt out to several.
//
// The edges from a GPU's own vertices and those from others are cut into neighbor partitions of at
// most PS each. A warp has DIST pairs of a local and a remote partition. It sums a partition in
// shared memory and adds the sums to Y with atomics, as other warps have more of the row. A remote
// row is fetched into shared memory each time that an edge comes from it; with ASYNC the first of a
// pair is on its way while the warp sums the local partition (Figure 4.6).
//
// Shared memory of a block (section 4.5.2): WPB x PS neighbors, WPB x n_cols sums, WPB x n_cols
// fetched features.
//
// grid  = (blocks of WPB warps)
// block = 32 x WPB threads

// The plan supplies, at compile time:
//   N_DEVICES   GPUs
//   ROW_BITS    bits of a word that say which row; those above say whose
//   PS          most neighbors of a partition
//   DIST        pairs of partitions of a warp, the interleaving distance
//   WPB         warps of a block
//   INTERLEAVE  1; or 0, with which some warps have local partitions and others remote ones
//   ASYNC       1 if a row is fetched while the warp does something else, else 0
//   GET         who fetches a row: 0 one thread, 1 a warp, 2 a block, for all its warps
#if !defined(N_DEVICES) || !defined(ROW_BITS) || !defined(PS) || !defined(DIST) || \
    !defined(WPB) || !defined(INTERLEAVE) || !defined(ASYNC) || !defined(GET)
#error "mgg.cu is compiled by accelviz, which supplies the constants listed above"
#endif

#include "many_gpus/remote.cuh"

#define BY_THREAD (GET == 0)
#define BY_BLOCK (GET == 2)

// A neighbor partition: `count` nonzeros of `row`, from `begin` on; none where there is no more
// work.
struct Partition {
    int row, count;
    long long begin;
};

__device__ __forceinline__ Partition partition(const long long *__restrict__ pointers,
                                               const int *__restrict__ rows, int number,
                                               int partitions) {
    if (number < 0 || number >= partitions) return {0, 0, 0};
    const long long begin = pointers[number];
    return {rows[number], int(pointers[number + 1] - begin), begin};
}

// What a warp has of its block's shared memory.
struct Space {
    unsigned *neighbors;
    float *sums;
    float *fetched;
};

// Puts a partition's neighbors where the warp finds them, and begins its sums.
__device__ __forceinline__ void open(const Space &own, const unsigned *__restrict__ neighbors,
                                     const Partition &part, int lane, int n_cols) {
    for (int k = lane; k < part.count; k += WARP_SIZE) own.neighbors[k] = neighbors[part.begin + k];
    for (int c = lane; c < n_cols; c += WARP_SIZE) own.sums[c] = 0.0f;
    __syncwarp();
}

// Each lane adds columns of its own, so that no barrier is needed between sums.
__device__ __forceinline__ void add_row(const Space &own, float weight, const float *row, int lane,
                                        int n_cols) {
    for (int c = lane; c < n_cols; c += WARP_SIZE) own.sums[c] += weight * row[c];
}

__device__ __forceinline__ void close(const Space &own, float *__restrict__ Y,
                                      const Partition &part, int lane, int n_cols) {
    if (!part.count) return;
    float *out = &Y[element(part.row, 0, n_cols)];
    for (int c = lane; c < n_cols; c += WARP_SIZE) atomicAdd(&out[c], own.sums[c]);
    __syncwarp();  // the neighbors are read: others may take their place
}

__device__ __forceinline__ void fetch(const Space &own, const Peers<float> &X, unsigned word,
                                      int lane, int n_cols) {
    const float *row = X.row(word, n_cols);
    if (!BY_THREAD) {
        begin_row(own.fetched, row, n_cols, lane, WARP_SIZE);
    } else if (lane == 0) {
        begin_row(own.fetched, row, n_cols, 0, 1);
    }
}

extern "C" __global__ void __launch_bounds__(WPB *WARP_SIZE)
    mgg(const long long *__restrict__ local_pointers, const int *__restrict__ local_rows,
        const unsigned *__restrict__ local_neighbors, const float *__restrict__ local_values,
        const long long *__restrict__ remote_pointers, const int *__restrict__ remote_rows,
        const unsigned *__restrict__ remote_neighbors, const float *__restrict__ remote_values,
        const float *X0, const float *X1, const float *X2, const float *X3, const float *X4,
        const float *X5, const float *X6, const float *X7, float *__restrict__ Y, int n_local,
        int n_remote, int device, int n_cols) {
    RECORD_WARP;
    DYNAMIC_SHARED(float, shared);
    const Peers<float> X = {{X0, X1, X2, X3, X4, X5, X6, X7}};
    const float *home = X.row((unsigned)((unsigned long long)device << ROW_BITS), n_cols);
    const int lane = threadIdx.x % WARP_SIZE, warp = threadIdx.x / WARP_SIZE;
    unsigned *all_neighbors = reinterpret_cast<unsigned *>(shared);
    float *all_sums = shared + WPB * PS, *all_fetched = all_sums + WPB * n_cols;
    const Space own = {all_neighbors + warp * PS, all_sums + warp * n_cols,
                       all_fetched + warp * n_cols};

    const int worker = blockIdx.x * WPB + warp;
    // Without interleaving the first warps have the local partitions, and the others the remote.
    const int local_warps = INTERLEAVE ? 0 : ceil_div(n_local + DIST, DIST) - 1;
    const int first_local = worker * DIST, first_remote = (worker - local_warps) * DIST;

    for (int pair = 0; pair < DIST; ++pair) {
        const bool takes_local = INTERLEAVE || worker < local_warps;
        const bool takes_remote = INTERLEAVE || worker >= local_warps;
        const Partition local =
            partition(local_pointers, local_rows, first_local + pair, takes_local ? n_local : 0);
        const Partition remote = partition(remote_pointers, remote_rows, first_remote + pair,
                                           takes_remote ? n_remote : 0);
        const bool early = ASYNC && !BY_BLOCK && remote.count;
        if (early) fetch(own, X, remote_neighbors[remote.begin], lane, n_cols);

        if (local.count) {
            open(own, local_neighbors, local, lane, n_cols);
            for (int k = 0; k < local.count; ++k) {
                add_row(own, local_values[local.begin + k],
                        &home[element(own.neighbors[k], 0, n_cols)], lane, n_cols);
            }
            close(own, Y, local, lane, n_cols);
        }

#if BY_BLOCK
        // All warps of the block fetch each row together, one warp's after the other's.
        __shared__ int counts[WPB];
        if (lane == 0) counts[warp] = remote.count;
        open(own, remote_neighbors, remote, lane, n_cols);
        __syncthreads();
        for (int k = 0; k < PS; ++k) {
            for (int other = 0; other < WPB; ++other) {
                if (k < counts[other]) {
                    begin_row(all_fetched + other * n_cols,
                              X.row(all_neighbors[other * PS + k], n_cols), n_cols, threadIdx.x,
                              WPB * WARP_SIZE);
                }
            }
            await_row();
            __syncthreads();
            if (k < remote.count) {
                add_row(own, remote_values[remote.begin + k], own.fetched, lane, n_cols);
            }
            __syncthreads();
        }
        close(own, Y, remote, lane, n_cols);
#else
        if (remote.count) {
            open(own, remote_neighbors, remote, lane, n_cols);
            for (int k = 0; k < remote.count; ++k) {
                if (k || !early) fetch(own, X, own.neighbors[k], lane, n_cols);
                await_row();
                __syncwarp();
                add_row(own, remote_values[remote.begin + k], own.fetched, lane, n_cols);
                __syncwarp();  // the row is read: the next may take its place
            }
            close(own, Y, remote, lane, n_cols);
        }
#endif
    }
}
