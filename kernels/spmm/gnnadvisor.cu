// GNNAdvisor's aggregation (Wang et al., OSDI 2021; chapter 3 of the thesis), as a weighted SpMM:
// Y = A X, fp32, CSR rows in the caller's order.
//
// A warp handles one neighbor group, at most ngs nonzeros of one row, and DIMENSION_WORKERS of its
// lanes walk the columns side by side; the lanes past them idle. Warps of a block whose groups
// belong to the same row add up in one slot of shared memory, and the leader, the first of them,
// takes the sums to Y (Algorithm 2; the host finds slots and leaders, once).
//
// Three things are done otherwise than in the thesis, so that this is no weak rival to measure
// against. None of them can cost time:
//   - a group's sums stay in registers, several columns to a lane, and go to the slot once, where
//     the thesis keeps them in the slot. The columns of a lane share the loads of nonzeros;
//   - slots and barriers are left to the blocks and rows that need them: a warp that has its row
//     for itself in the block writes straight to Y, and where all do, no barrier is waited for;
//   - a row that is whole in its block is stored. Only one with groups in other blocks too is added
//     with an atomic.
//
// grid  = (blocks of BLOCK_WARPS groups, tiles of tile_columns columns)
// block = 32 x BLOCK_WARPS threads, with BLOCK_WARPS x tile_columns floats of shared memory if any
//         block shares a row

// The plan supplies, at compile time:
//   BLOCK_WARPS         warps in a block
//   DIMENSION_WORKERS   lanes of a warp that work, 1 to 32
//   VECTOR              neighboring columns that a lane reads as one: 1, 2 or 4, a divisor of the
//                       columns of X
//   LANE_VECTORS        such vectors that a lane sums at the same time, DIMENSION_WORKERS apart
//   SLOT_MASK           bits of a metadata word that hold the warp's slot; then its flags:
//   LEADER              the warp is the first of its row in the block
//   SHARED              another warp of the block has the same row
//   CUT                 other blocks have groups of the row too
//   BLOCK_SHARES        some warp of the block is SHARED
#if !defined(BLOCK_WARPS) || !defined(DIMENSION_WORKERS) || !defined(VECTOR) ||              \
    !defined(LANE_VECTORS) || !defined(SLOT_MASK) || !defined(LEADER) || !defined(SHARED) || \
    !defined(CUT) || !defined(BLOCK_SHARES)
#error "gnnadvisor.cu is compiled by accelviz, which supplies the constants listed above"
#endif

#include "common.cuh"
#include "vectors.cuh"

#define BLOCK_THREADS (BLOCK_WARPS * WARP_SIZE)

#define WORKER_COLUMNS (DIMENSION_WORKERS * VECTOR)  // of all workers of a warp, side by side

// Adds N nonzeros to a lane's sums: for the vector of columns at which X is passed, and for each of
// the next LANE_VECTORS - 1, WORKER_COLUMNS apart, as far as they lie below `width`.
template <int N>
__device__ __forceinline__ void add(const int *__restrict__ columns,
                                    const float *__restrict__ values, const float *__restrict__ X,
                                    int width, int n_cols, Vector (&sums)[LANE_VECTORS]) {
    int senders[N];
    float weights[N];
    Vector neighbors[N][LANE_VECTORS];
#pragma unroll
    for (int j = 0; j < N; ++j) {
        senders[j] = columns[j];
        weights[j] = values[j];
    }
    // All gathers are on their way before the first is used.
#pragma unroll
    for (int j = 0; j < N; ++j) {
#pragma unroll
        for (int i = 0; i < LANE_VECTORS; ++i) {
            const int column = i * WORKER_COLUMNS;
            if (column < width) {
                const float *address = &X[element(senders[j], column, n_cols)];
                neighbors[j][i] = *reinterpret_cast<const Vector *>(address);
            }
        }
    }
#pragma unroll
    for (int j = 0; j < N; ++j) {
#pragma unroll
        for (int i = 0; i < LANE_VECTORS; ++i) {
            if (i * WORKER_COLUMNS < width) add_product(sums[i], weights[j], neighbors[j][i]);
        }
    }
}

// Adds a whole group, four nonzeros at a time and then the rest of them together.
__device__ __forceinline__ void add_group(const int *__restrict__ columns,
                                          const float *__restrict__ values,
                                          const float *__restrict__ X, int count, int width,
                                          int n_cols, Vector (&sums)[LANE_VECTORS]) {
    for (; count >= 4; count -= 4, columns += 4, values += 4) {
        add<4>(columns, values, X, width, n_cols, sums);
    }
    if (count == 3) add<3>(columns, values, X, width, n_cols, sums);
    if (count == 2) add<2>(columns, values, X, width, n_cols, sums);
    if (count == 1) add<1>(columns, values, X, width, n_cols, sums);
}

// Writes one element of Y; parts of a row that is cut between blocks add up there.
__device__ __forceinline__ void emit(float *out, float sum, bool cut) {
    if (cut) {
        atomicAdd(out, sum);
    } else {
        *out = sum;
    }
}

// metadata: the row and the packed word of each group, the paper's target node and warpPtr.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    gnnadvisor(const long long *__restrict__ group_pointers, const int2 *__restrict__ metadata,
               const int *__restrict__ columns, const float *__restrict__ values,
               const float *__restrict__ X, float *__restrict__ Y, long long n_groups, int n_cols,
               int tile_columns) {
    RECORD_WARP;
    DYNAMIC_SHARED(float, slots);

    const int lane = threadIdx.x % WARP_SIZE;
    const long long group = (long long)blockIdx.x * BLOCK_WARPS + threadIdx.x / WARP_SIZE;
    const bool works = group < n_groups && lane < DIMENSION_WORKERS;
    // The last block's warps without a group read its last group's word: barriers are for them too.
    const int2 own = metadata[min(group, n_groups - 1)];
    const int row = own.x;
    const bool shared = own.y & SHARED;
    const bool cut = own.y & CUT;
    const bool leads_slot = works && shared && (own.y & LEADER);
    const bool block_shares = own.y & BLOCK_SHARES;

    const int first_column = blockIdx.y * tile_columns;
    const int width = min(tile_columns, n_cols - first_column);
    float *slot = &slots[(own.y & SLOT_MASK) * tile_columns];
    X += first_column;
    Y += element(row, first_column, n_cols);

    if (block_shares) {
        if (leads_slot) {
            for (int c = lane; c < width; c += DIMENSION_WORKERS) slot[c] = 0.0f;
        }
        __syncthreads();
    }

    if (works) {
        const long long begin = group_pointers[group];
        const int count = int(group_pointers[group + 1] - begin);
        for (int c = lane * VECTOR; c < width; c += LANE_VECTORS * WORKER_COLUMNS) {
            Vector sums[LANE_VECTORS] = {};
            add_group(columns + begin, values + begin, X + c, count, width - c, n_cols, sums);
#pragma unroll
            for (int i = 0; i < LANE_VECTORS; ++i) {
                const int first = c + i * WORKER_COLUMNS;
                if (first < width) {
                    if (shared) {
#pragma unroll
                        for (int j = 0; j < VECTOR; ++j) {
                            atomicAdd_block(&slot[first + j], part(sums[i], j));
                        }
                    } else if (cut) {
#pragma unroll
                        for (int j = 0; j < VECTOR; ++j) atomicAdd(&Y[first + j], part(sums[i], j));
                    } else {
                        // An index of vectors: a float's address would make NVRTC store each apart.
                        reinterpret_cast<Vector *>(Y)[first / VECTOR] = sums[i];
                    }
                }
            }
        }
    }

    if (block_shares) {
        __syncthreads();
        if (leads_slot) {
            for (int c = lane; c < width; c += DIMENSION_WORKERS) emit(&Y[c], slot[c], cut);
        }
    }
}
