// GNNAdvisor's aggregation (Wang et al., OSDI 2021; chapter 3 of the thesis), as a weighted SpMM:
// Y = A X, fp32, CSR rows in the caller's order.
//
// A warp handles one neighbor group, at most ngs nonzeros of one row. dimension_workers of its
// lanes cover neighboring columns; the other lanes are idle. Warps of a block whose groups belong
// to the same row add their sums in one slot of shared memory, and the first of them, the leader,
// writes the slot to Y (Algorithm 2; the host assigns slots and leaders once).
//
// Three things differ from the thesis, so that the comparison is fair. None of them costs time:
//   - The sums of a group stay in registers, several columns per lane, and are added to the slot
//     once; the thesis keeps them in the slot. The columns of a lane share the loads of nonzeros.
//   - Only blocks and rows that need slots and barriers use them: a warp that is the only one of
//     its row in the block writes directly to Y, and a block of such warps has no barrier.
//   - A row whose groups are all in one block is stored. Only a row with groups in several blocks
//     is added with atomics.
//
// grid  = (blocks of block_warps groups, tiles of tile_columns columns)
// block = 32 x block_warps threads, with block_warps x tile_columns floats of shared memory if any
//         block shares a row

// The plan supplies, at compile time:
//   block_warps         warps in a block
//   dimension_workers   active lanes of a warp, 1 to 32
//   vector              neighboring columns per load of a lane: 1, 2 or 4, a divisor of n_cols
//   lane_vectors        vectors that a lane sums at the same time, dimension_workers apart
//   slot_mask           bits of a metadata word that hold the warp's slot; its flags are:
//   leader              the warp is the first of its row in the block
//   shared              another warp of the block has the same row
//   cut                 other blocks have groups of the row, too
//   block_shares        some warp of the block is shared

#include "common.cuh"
#include "vectors.cuh"

using Vector = Floats<Config::vector>;

constexpr int BLOCK_THREADS = Config::block_warps * WARP_SIZE;

constexpr int WORKER_COLUMNS =
    Config::dimension_workers * Config::vector;  // of all workers of a warp, side by side

// Adds N nonzeros to a lane's sums: for the vector of columns at X, and for the following
// lane_vectors - 1 vectors, WORKER_COLUMNS apart, if they are below `width`.
template <int N>
DEVICE_INLINE void add(const int *__restrict__ columns, const float *__restrict__ values,
                       const float *__restrict__ X, int width, int n_cols,
                       Vector (&sums)[Config::lane_vectors]) {
    int sources[N];
    float weights[N];
    Vector neighbors[N][Config::lane_vectors];
#pragma unroll
    for (int j = 0; j < N; ++j) {
        sources[j] = columns[j];
        weights[j] = values[j];
    }
    // All loads of X start before the first is used.
#pragma unroll
    for (int j = 0; j < N; ++j) {
#pragma unroll
        for (int i = 0; i < Config::lane_vectors; ++i) {
            const int column = i * WORKER_COLUMNS;
            if (column < width) {
                const float *address = &X[element(sources[j], column, n_cols)];
                neighbors[j][i] = *reinterpret_cast<const Vector *>(address);
            }
        }
    }
#pragma unroll
    for (int j = 0; j < N; ++j) {
#pragma unroll
        for (int i = 0; i < Config::lane_vectors; ++i) {
            if (i * WORKER_COLUMNS < width) add_product(sums[i], weights[j], neighbors[j][i]);
        }
    }
}

// Adds a whole group: four nonzeros at a time, then the remaining ones together.
DEVICE_INLINE void add_group(const int *__restrict__ columns, const float *__restrict__ values,
                             const float *__restrict__ X, int count, int width, int n_cols,
                             Vector (&sums)[Config::lane_vectors]) {
    for (; count >= 4; count -= 4, columns += 4, values += 4) {
        add<4>(columns, values, X, width, n_cols, sums);
    }
    if (count == 3) add<3>(columns, values, X, width, n_cols, sums);
    if (count == 2) add<2>(columns, values, X, width, n_cols, sums);
    if (count == 1) add<1>(columns, values, X, width, n_cols, sums);
}

// Adds a lane's sums of the columns from `first` on to the slot or to Y, or stores them in Y.
DEVICE_INLINE void write(float *__restrict__ Y, float *slot, int first, const Vector &sums,
                         bool shared, bool cut) {
    if (shared) {
#pragma unroll
        for (int j = 0; j < Config::vector; ++j) atomicAdd_block(&slot[first + j], part(sums, j));
    } else if (cut) {
#pragma unroll
        for (int j = 0; j < Config::vector; ++j) atomicAdd(&Y[first + j], part(sums, j));
    } else {
        // Indexed as vectors: with the address of a float, NVRTC would store each float apart.
        reinterpret_cast<Vector *>(Y)[first / Config::vector] = sums;
    }
}

// metadata: the row and the packed word of each group (the paper's target node and warpPtr).
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    gnnadvisor(const long long *__restrict__ group_pointers, const int2 *__restrict__ metadata,
               const int *__restrict__ columns, const float *__restrict__ values,
               const float *__restrict__ X, float *__restrict__ Y, long long n_groups, int n_cols,
               int tile_columns) {
    RECORD_WARP;
    DYNAMIC_SHARED(float, slots);

    const int lane = threadIdx.x % WARP_SIZE;
    const long long group = (long long)blockIdx.x * Config::block_warps + threadIdx.x / WARP_SIZE;
    const bool active = group < n_groups && lane < Config::dimension_workers;
    // Warps without a group, in the last block, read the last group's word: they join barriers.
    const int2 own = metadata[min(group, n_groups - 1)];
    const int row = own.x;
    const bool shared = own.y & Config::shared;
    const bool cut = own.y & Config::cut;
    const bool leads_slot = active && shared && (own.y & Config::leader);
    const bool block_shares = own.y & Config::block_shares;

    const int first_column = blockIdx.y * tile_columns;
    const int width = min(tile_columns, n_cols - first_column);
    float *slot = &slots[(own.y & Config::slot_mask) * tile_columns];
    X += first_column;
    Y += element(row, first_column, n_cols);

    if (block_shares) {
        if (leads_slot) {
            for (int c = lane; c < width; c += Config::dimension_workers) slot[c] = 0.0f;
        }
        __syncthreads();
    }

    if (active) {
        const long long begin = group_pointers[group];
        const int count = int(group_pointers[group + 1] - begin);
        for (int c = lane * Config::vector; c < width; c += Config::lane_vectors * WORKER_COLUMNS) {
            Vector sums[Config::lane_vectors] = {};
            add_group(columns + begin, values + begin, X + c, count, width - c, n_cols, sums);
#pragma unroll
            for (int i = 0; i < Config::lane_vectors; ++i) {
                const int first = c + i * WORKER_COLUMNS;
                if (first < width) write(Y, slot, first, sums[i], shared, cut);
            }
        }
    }

    if (block_shares) {
        __syncthreads();
        if (leads_slot) {
            for (int c = lane; c < width; c += Config::dimension_workers) emit(&Y[c], slot[c], cut);
        }
    }
}
