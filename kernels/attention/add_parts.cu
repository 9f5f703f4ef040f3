// Sum of all rows of a matrix, in two passes and in a fixed order, so that results are identical
// in every run. `add_totals` adds runs of neighboring rows; `add_parts` adds the sums of the runs.
// GATv2's gradient by `a` is such a sum: one row of totals per thread block.
//
// grid  = (columns over block_threads, rounded up; runs)
// block = block_threads threads

// The plan supplies, at compile time:
//   block_threads  threads of a block

#include "common.cuh"

// totals: (n, heads * n_cols); sums: (runs, heads * n_cols)
DEVICE_INLINE void add_run(const float *__restrict__ totals, float *__restrict__ sums, int n,
                           int heads, int n_cols) {
    const int column = int(blockIdx.x) * Config::block_threads + int(threadIdx.x),
              row_length = heads * n_cols;
    if (column >= row_length) return;
    const int run_rows = ceil_div(n, int(gridDim.y)), first = int(blockIdx.y) * run_rows;
    float sum = 0.0f;
#pragma unroll 16
    for (int i = first; i < min(first + run_rows, n); ++i) {
        sum += totals[(long long)i * row_length + column];
    }
    sums[(long long)blockIdx.y * row_length + column] = sum;
}

extern "C" __global__ void __launch_bounds__(Config::block_threads)
    add_totals(const float *__restrict__ block_totals, float *__restrict__ part_totals,
               int n_totals, int heads, int n_cols) {
    RECORD_WARP;
    add_run(block_totals, part_totals, n_totals, heads, n_cols);
}

extern "C" __global__ void __launch_bounds__(Config::block_threads)
    add_parts(const float *__restrict__ part_totals, float *__restrict__ da, int n_parts, int heads,
              int n_cols) {
    RECORD_WARP;
    add_run(part_totals, da, n_parts, heads, n_cols);
}
