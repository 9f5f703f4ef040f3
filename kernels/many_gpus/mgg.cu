// MGG's aggregation (Wang et al., OSDI 2023; chapter 4 of the thesis), as a weighted SpMM for the
// rows of one GPU: Y += A X, fp32. The rows of X are distributed over several GPUs.
//
// Edges from vertices of the same GPU (local) and of others (remote) are split into neighbor
// partitions of at most ps edges. A warp handles dist pairs of a local and a remote partition. It
// sums a partition in shared memory and adds the sums to Y with atomics, because other warps have
// further edges of the row. A remote row is fetched into shared memory for each of its edges. With
// async, the first row of a pair is fetched while the warp sums the local partition (Figure 4.6).
//
// Shared memory of a block (section 4.5.2): wpb x ps neighbors, wpb x n_cols sums, wpb x n_cols
// fetched features.
//
// grid  = (blocks of wpb warps)
// block = 32 x wpb threads

// The plan supplies, at compile time:
//   n_devices   GPUs
//   row_bits    low bits of a neighbor's word, its row; the high bits are its GPU
//   ps          most neighbors of a partition
//   dist        pairs of partitions of a warp, the interleaving distance
//   wpb         warps of a block
//   interleave  1; 0 if some warps handle local partitions and the others remote ones
//   async       1 if a row is fetched while the warp does other work, else 0
//   get         threads that fetch a row: 0 one thread, 1 a warp, 2 a block, for all its warps

#include "many_gpus/remote.cuh"

constexpr bool BY_THREAD = Config::get == 0;
constexpr bool BY_BLOCK = Config::get == 2;

// A neighbor partition: nonzeros begin to begin + count - 1 of `row`; count 0 if there is no more
// work.
struct Partition {
    int row, count;
    long long begin;
};

DEVICE_INLINE Partition partition(const long long *__restrict__ pointers,
                                  const int *__restrict__ rows, int number, int partitions) {
    if (number < 0 || number >= partitions) return {0, 0, 0};
    const long long begin = pointers[number];
    return {rows[number], int(pointers[number + 1] - begin), begin};
}

// A warp's part of its block's shared memory.
struct Space {
    unsigned *neighbors;
    float *sums;
    float *fetched;
};

// Loads a partition's neighbors into shared memory and sets its sums to zero.
DEVICE_INLINE void open(const Space &own, const unsigned *__restrict__ neighbors,
                        const Partition &part, int lane, int n_cols) {
    for (int k = lane; k < part.count; k += WARP_SIZE) own.neighbors[k] = neighbors[part.begin + k];
    for (int c = lane; c < n_cols; c += WARP_SIZE) own.sums[c] = 0.0f;
    __syncwarp();
}

// Each lane adds its own columns, so that no barrier is needed between rows.
DEVICE_INLINE void add_row(const Space &own, float weight, const float *row, int lane, int n_cols) {
    for (int c = lane; c < n_cols; c += WARP_SIZE) own.sums[c] += weight * row[c];
}

DEVICE_INLINE void close(const Space &own, float *__restrict__ Y, const Partition &part, int lane,
                         int n_cols) {
    if (!part.count) return;
    float *out = &Y[element(part.row, 0, n_cols)];
    for (int c = lane; c < n_cols; c += WARP_SIZE) atomicAdd(&out[c], own.sums[c]);
    __syncwarp();  // all lanes have read the neighbors, which the next partition replaces
}

DEVICE_INLINE void fetch(const Space &own, const Peers<float> &X, unsigned word, int lane,
                         int n_cols) {
    const float *row = X.row(word, n_cols);
    if (!BY_THREAD) {
        begin_row(own.fetched, row, n_cols, lane, WARP_SIZE);
    } else if (lane == 0) {
        begin_row(own.fetched, row, n_cols, 0, 1);
    }
}

// Sums a remote partition, fetching its rows by the warp. With `early` the first fetch has started.
DEVICE_INLINE void add_remote(const Space &own, const Peers<float> &X,
                              const unsigned *__restrict__ neighbors,
                              const float *__restrict__ values, const Partition &remote,
                              float *__restrict__ Y, bool early, int lane, int n_cols) {
    if (!remote.count) return;
    open(own, neighbors, remote, lane, n_cols);
    for (int k = 0; k < remote.count; ++k) {
        if (k || !early) fetch(own, X, own.neighbors[k], lane, n_cols);
        await_row();
        __syncwarp();
        add_row(own, values[remote.begin + k], own.fetched, lane, n_cols);
        __syncwarp();  // all lanes have read the row, which the next one replaces
    }
    close(own, Y, remote, lane, n_cols);
}

// The same by all warps of a block, which fetch each row together: one row per warp, in turn.
DEVICE_INLINE void add_remote_by_block(const Space &own, const Space &first, const Peers<float> &X,
                                       const unsigned *__restrict__ neighbors,
                                       const float *__restrict__ values, const Partition &remote,
                                       float *__restrict__ Y, int lane, int n_cols) {
    __shared__ int counts[Config::wpb];
    if (lane == 0) counts[threadIdx.x / WARP_SIZE] = remote.count;
    open(own, neighbors, remote, lane, n_cols);
    __syncthreads();
    for (int k = 0; k < Config::ps; ++k) {
        for (int warp = 0; warp < Config::wpb; ++warp) {
            if (k < counts[warp]) {
                const float *row = X.row(first.neighbors[warp * Config::ps + k], n_cols);
                begin_row(first.fetched + warp * n_cols, row, n_cols, threadIdx.x,
                          Config::wpb * WARP_SIZE);
            }
        }
        await_row();
        __syncthreads();
        if (k < remote.count) {
            add_row(own, values[remote.begin + k], own.fetched, lane, n_cols);
        }
        __syncthreads();
    }
    close(own, Y, remote, lane, n_cols);
}

extern "C" __global__ void __launch_bounds__(Config::wpb *WARP_SIZE)
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
    const float *home = X.row((unsigned)((unsigned long long)device << Config::row_bits), n_cols);
    const int lane = threadIdx.x % WARP_SIZE, warp = threadIdx.x / WARP_SIZE;
    float *sums = shared + Config::wpb * Config::ps;
    const Space first = {reinterpret_cast<unsigned *>(shared), sums, sums + Config::wpb * n_cols};
    const Space own = {first.neighbors + warp * Config::ps, first.sums + warp * n_cols,
                       first.fetched + warp * n_cols};

    const int worker = blockIdx.x * Config::wpb + warp;
    // Without interleaving the first warps handle local partitions and the others remote ones.
    const int local_warps =
        Config::interleave ? 0 : ceil_div(n_local + Config::dist, Config::dist) - 1;
    const int first_local = worker * Config::dist,
              first_remote = (worker - local_warps) * Config::dist;

    for (int pair = 0; pair < Config::dist; ++pair) {
        const bool has_local = Config::interleave || worker < local_warps;
        const bool has_remote = Config::interleave || worker >= local_warps;
        const Partition local =
            partition(local_pointers, local_rows, first_local + pair, has_local ? n_local : 0);
        const Partition remote =
            partition(remote_pointers, remote_rows, first_remote + pair, has_remote ? n_remote : 0);
        const bool early = Config::async && !BY_BLOCK && remote.count;
        if (early) fetch(own, X, remote_neighbors[remote.begin], lane, n_cols);

        if (local.count) {
            open(own, local_neighbors, local, lane, n_cols);
            for (int k = 0; k < local.count; ++k) {
                add_row(own, local_values[local.begin + k],
                        &home[element(own.neighbors[k], 0, n_cols)], lane, n_cols);
            }
            close(own, Y, local, lane, n_cols);
        }

        if constexpr (BY_BLOCK) {
            add_remote_by_block(own, first, X, remote_neighbors, remote_values, remote, Y, lane,
                                n_cols);
        } else {
            add_remote(own, X, remote_neighbors, remote_values, remote, Y, early, lane, n_cols);
        }
    }
}
