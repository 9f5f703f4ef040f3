// Accel-GCN's first ablation (section IV-B): the warp-level partition of Figure 3b under the same
// combined warp. Y = A X, fp32, CSR rows in the caller's order.
//
// One int4 describes a warp: a run of at most max_warp_nzs nonzeros of one row. A block consists of
// consecutive warps, of any rows, so each warp compares its neighbors' metadata to decide at which
// level its sums are added up. The levels are those of accel_gcn.cu:
//   1. registers           within the run;
//   2. shared memory       if several warps of the block share a row: the first of them, the
//                          leader, writes the row's sums to Y;
//   3. global memory       if a row has warps in other blocks, too.
//
// grid  = (blocks of max_block_warps runs, tiles of tile_columns columns)
// block = 32 x max_block_warps threads

// The plan supplies, at compile time:
//   max_block_warps   warps in a block
//   tile_columns      threads in a combined warp, a multiple of 32 (the paper's round_dim)
//   shared_rows       most rows of a block that several warps share
//   combined_warp     1 for combined warps, 0 for hardware warps that loop over the columns

#include "spmm/accel_gcn.cuh"

// Rows shared by warps of a block. Bit w of `continues` is set if warp w has the row of warp w - 1.
struct Sharing {
    unsigned continues;

    // Whether a warp is the first of its row in the block.
    DEVICE_INLINE bool leads(int warp) const {
        return !(continues >> warp & 1);
    }
    // Whether the row of a warp has another warp in the block: bit w or bit w + 1 is set.
    DEVICE_INLINE bool shares(int warp) const {
        return continues >> warp & 3;
    }
    // Index of the row's sums in shared memory. Rows that share have two warps or more, so half of
    // the leader's number is unique and below shared_rows.
    DEVICE_INLINE int slot(int warp) const {
        const unsigned leaders_so_far = ~continues & ((2u << warp) - 1);
        return (WARP_SIZE - 1 - __clz(leaders_so_far)) / 2;
    }
};

// Every hardware warp inspects the whole block: lane w compares warp w with its predecessor.
DEVICE_INLINE Sharing find_sharing(const int4 *__restrict__ metadata, int first, int warps) {
    const int lane = threadIdx.x % WARP_SIZE;
    const bool same =
        0 < lane && lane < warps && metadata[first + lane].x == metadata[first + lane - 1].x;
    return {__ballot_sync(ALL_LANES, same)};
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    accel_gcn_warp(const int4 *__restrict__ metadata, const int *__restrict__ columns,
                   const float *__restrict__ values, const float *__restrict__ X,
                   float *__restrict__ Y, int n_warps, int n_cols) {
    RECORD_WARP;
    __shared__ float partial[Config::shared_rows * Config::tile_columns];

    const int first = blockIdx.x * Config::max_block_warps;
    const int warps = min(Config::max_block_warps, n_warps - first);
    const int first_column = blockIdx.y * Config::tile_columns;
    const Sharing sharing = find_sharing(metadata, first, warps);
    const bool shared_sums = sharing.continues != 0;
    // Rows of the warps just before and just after this block.
    const int row_before = first > 0 ? metadata[first - 1].x : -1;
    const int row_after = first + warps < n_warps ? metadata[first + warps].x : -1;

    if (shared_sums) {
        for (int i = threadIdx.x; i < Config::shared_rows * Config::tile_columns;
             i += BLOCK_THREADS) {
            partial[i] = 0.0f;
        }
        __syncthreads();
    }

    for (int pass = 0; pass < PASSES; ++pass) {
        const auto [warp, lane] = place(pass);
        const int column = first_column + lane;
        if (warp < warps && column < n_cols) {
            const int4 run = metadata[first + warp];
            const int row = run.x;
            const float sum = dot(columns, values, X, run.y, run.y + run.z, column, n_cols);
            if (sharing.shares(warp)) {
                atomicAdd_block(&partial[sharing.slot(warp) * Config::tile_columns + lane], sum);
            } else {
                const bool split = row == row_before || row == row_after;
                emit(&Y[element(row, column, n_cols)], sum, split);
            }
        }
    }

    if (shared_sums) {
        __syncthreads();
        for (int pass = 0; pass < PASSES; ++pass) {
            const auto [warp, lane] = place(pass);
            const int column = first_column + lane;
            if (warp < warps && column < n_cols && sharing.leads(warp) && sharing.shares(warp)) {
                const int row = metadata[first + warp].x;
                const bool split = row == row_before || row == row_after;
                const float sum = partial[sharing.slot(warp) * Config::tile_columns + lane];
                emit(&Y[element(row, column, n_cols)], sum, split);
            }
        }
    }
}
