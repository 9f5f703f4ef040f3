// Accel-GCN SpMM (ICCAD 2023, section III): Y = A X, fp32, CSR rows in ascending order of degree.
//
// One int4 describes a block: rows of one degree, or a part of one row that is longer than
// deg_bound. The block's warps work as combined warps: tile_columns neighboring threads cover the
// columns, so that neighboring threads read neighboring addresses of X. A combined warp handles one
// run of a row's nonzeros. Its sums are added up at three levels:
//   1. registers           within the run;
//   2. shared memory       if several combined warps of the block share a row;
//   3. global memory       if a row is split over several blocks.
// With combined_warp 0 each hardware warp works alone (Figure 4a), the paper's second ablation;
// the only difference is in `place`.
//
// grid  = (blocks in the metadata, tiles of tile_columns columns)
// block = 32 x max_block_warps threads

// The plan supplies, at compile time:
//   max_block_warps   warps in a block
//   deg_bound         most nonzeros of a row that one block handles alone
//   info_field_bits   width of the low field of the metadata's info word
//   tile_columns      threads in a combined warp, a multiple of 32 (the paper's round_dim)
//   shared_rows       most rows of a block whose nonzeros several combined warps share
//   combined_warp     1 for combined warps, 0 for hardware warps that loop over the columns

#include "spmm/accel_gcn.cuh"

struct Block {
    int first_row;
    int first_nz;
    int rows;           // rows in this block
    int row_nzs;        // nonzeros of each row inside this block
    int warp_nzs;       // nonzeros of each combined warp; the last of a row may have fewer
    int warps_per_row;  // combined warps that share a row
    bool split;         // other blocks have further nonzeros of this row
};

DEVICE_INLINE Block decode(int4 metadata) {
    const int degree = metadata.x;
    const unsigned info = metadata.w;
    Block block;
    block.first_row = metadata.y;
    block.first_nz = metadata.z;
    block.split = degree > Config::deg_bound;
    block.rows = block.split ? 1 : info & ((1u << Config::info_field_bits) - 1);
    block.row_nzs = block.split ? info : degree;
    block.warp_nzs =
        block.split ? ceil_div(info, Config::max_block_warps) : info >> Config::info_field_bits;
    // Most rows have one warp. Those blocks skip the divisions, here and below.
    const bool alone = block.row_nzs <= block.warp_nzs;
    block.warps_per_row = alone ? 1 : ceil_div(block.row_nzs, block.warp_nzs);
    return block;
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    accel_gcn(const int4 *__restrict__ metadata, const int *__restrict__ output_rows,
              const int *__restrict__ columns, const float *__restrict__ values,
              const float *__restrict__ X, float *__restrict__ Y, int n_cols) {
    RECORD_WARP;
    __shared__ float partial[Config::shared_rows * Config::tile_columns];

    const Block block = decode(metadata[blockIdx.x]);
    const int first_column = blockIdx.y * Config::tile_columns;
    const bool shared_sums = block.warps_per_row > 1;

    if (shared_sums) {
        for (int i = threadIdx.x; i < block.rows * Config::tile_columns; i += BLOCK_THREADS) {
            partial[i] = 0.0f;
        }
        __syncthreads();
    }

    for (int pass = 0; pass < PASSES; ++pass) {
        const auto [warp, lane] = place(pass);
        const int row = shared_sums ? warp / block.warps_per_row : warp;
        const int part = shared_sums ? warp % block.warps_per_row : 0;
        const int column = first_column + lane;

        if (row < block.rows && column < n_cols) {
            const int row_start = block.first_nz + row * block.row_nzs;
            const int begin = part * block.warp_nzs;
            const int end = min(begin + block.warp_nzs, block.row_nzs);
            const float sum =
                dot(columns, values, X, row_start + begin, row_start + end, column, n_cols);
            if (shared_sums) {
                atomicAdd_block(&partial[row * Config::tile_columns + lane], sum);
            } else {
                const int output_row = output_rows[block.first_row + row];
                emit(&Y[element(output_row, column, n_cols)], sum, block.split);
            }
        }
    }

    if (shared_sums) {
        __syncthreads();
        for (int i = threadIdx.x; i < block.rows * Config::tile_columns; i += BLOCK_THREADS) {
            const int column = first_column + i % Config::tile_columns;
            if (column < n_cols) {
                const int output_row = output_rows[block.first_row + i / Config::tile_columns];
                emit(&Y[element(output_row, column, n_cols)], partial[i], block.split);
            }
        }
    }
}
