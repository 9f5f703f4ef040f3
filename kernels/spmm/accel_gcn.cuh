// Common to Accel-GCN's kernels: the warp and column of a thread, and its sum in registers.
#pragma once

#include "common.cuh"

static_assert(Config::tile_columns % WARP_SIZE == 0, "a combined warp is made of whole warps");

constexpr int BLOCK_THREADS = Config::max_block_warps * WARP_SIZE;
// Passes over the columns: in all passes together, max_block_warps warps cover tile_columns each.
constexpr int PASSES = Config::tile_columns / WARP_SIZE;

struct Place {
    int warp;  // warp in the partition scheme: a combined warp or a hardware warp
    int lane;  // column inside the tile
};

// Returns the thread's warp and column in a pass: all that the combined warp changes (Figure 4).
DEVICE_INLINE Place place(int pass) {
    if (Config::combined_warp) {
        // A combined warp is tile_columns neighboring threads, which cover all columns at once.
        const int thread = threadIdx.x + pass * BLOCK_THREADS;
        return {thread / Config::tile_columns, thread % Config::tile_columns};
    }
    // A hardware warp covers 32 columns in each pass.
    return {int(threadIdx.x) / WARP_SIZE, pass * WARP_SIZE + int(threadIdx.x) % WARP_SIZE};
}

// Sums N nonzeros of one row, for one column of X. All loads start before the first product, as a
// warp with a short row has no other work that hides their latency.
template <int N>
DEVICE_INLINE float products(const int *__restrict__ columns, const float *__restrict__ values,
                             const float *__restrict__ X, int column, int n_cols) {
    float neighbors[N], sum = 0.0f;
#pragma unroll
    for (int j = 0; j < N; ++j) neighbors[j] = X[element(columns[j], column, n_cols)];
#pragma unroll
    for (int j = 0; j < N; ++j) sum += values[j] * neighbors[j];
    return sum;
}

// Sums nonzeros begin to end - 1 of one row, for one column of X, four at a time.
DEVICE_INLINE float dot(const int *__restrict__ columns, const float *__restrict__ values,
                        const float *__restrict__ X, int begin, int end, int column, int n_cols) {
    float sum = 0.0f;
    int k = begin;
    for (; k + 4 <= end; k += 4) sum += products<4>(columns + k, values + k, X, column, n_cols);
    if (k + 3 == end) return sum + products<3>(columns + k, values + k, X, column, n_cols);
    if (k + 2 == end) return sum + products<2>(columns + k, values + k, X, column, n_cols);
    if (k + 1 == end) return sum + products<1>(columns + k, values + k, X, column, n_cols);
    return sum;
}
