// Adds up what blocks, or rows, have left, always in the same order: `add_totals` runs of them, and
// `add_parts` what those come to.
//
// grid  = (entries over block_threads, rounded up; runs)
// block = block_threads threads

// The plan supplies, at compile time:
//   block_threads  threads of a block

#include "common.cuh"

// totals: (n, heads * n_cols); sums: (grid's parts, heads * n_cols)
DEVICE_INLINE void add(const float *__restrict__ totals, float *__restrict__ sums, int n, int heads,
                       int n_cols) {
    const int entry = int(blockIdx.x) * Config::block_threads + int(threadIdx.x),
              entries = heads * n_cols;
    if (entry >= entries) return;
    const int share = ceil_div(n, int(gridDim.y)), first = int(blockIdx.y) * share;
    float sum = 0.0f;
#pragma unroll 16
    for (int i = first; i < min(first + share, n); ++i) {
        sum += totals[(long long)i * entries + entry];
    }
    sums[(long long)blockIdx.y * entries + entry] = sum;
}

extern "C" __global__ void __launch_bounds__(Config::block_threads)
    add_totals(const float *__restrict__ block_totals, float *__restrict__ part_totals,
               int n_totals, int heads, int n_cols) {
    RECORD_WARP;
    add(block_totals, part_totals, n_totals, heads, n_cols);
}

extern "C" __global__ void __launch_bounds__(Config::block_threads)
    add_parts(const float *__restrict__ part_totals, float *__restrict__ da, int n_parts, int heads,
              int n_cols) {
    RECORD_WARP;
    add(part_totals, da, n_parts, heads, n_cols);
}
