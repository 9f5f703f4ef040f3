// The simplest SpMM: Y = A X, fp32, one thread per row of A in CSR.
//
// Correct and slow, for two reasons that the other kernels remove: the lanes of a warp wait for
// the lane with the longest row, and at each step they read 32 different rows of X.
//
// grid  = (blocks of 32 x block_warps rows)
// block = 32 x block_warps threads
#include "common.cuh"

constexpr int BLOCK_THREADS = Config::block_warps * WARP_SIZE;

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    row_thread(const long long *__restrict__ row_pointers, const int *__restrict__ columns,
               const float *__restrict__ values, const float *__restrict__ X, float *__restrict__ Y,
               int n_rows, int n_cols) {
    RECORD_WARP;
    const long long row = (long long)blockIdx.x * BLOCK_THREADS + threadIdx.x;
    if (row >= n_rows) return;
    const long long begin = row_pointers[row];
    const long long end = row_pointers[row + 1];
    for (int column = 0; column < n_cols; ++column) {
        float sum = 0.0f;
        for (long long k = begin; k < end; ++k) {
            sum += values[k] * X[element(columns[k], column, n_cols)];
        }
        Y[element(row, column, n_cols)] = sum;
    }
}
