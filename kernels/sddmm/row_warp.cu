// Readable SDDMM: the score of a nonzero (i, j) is the dot product of row i of U and row j of V,
// for each head.
//
// A warp handles the nonzeros of one row of the matrix, one after another. Its lanes read
// neighboring columns and add up their partial sums by shuffles.
//
// grid  = rows over block_warps, rounded up
// block = block_warps warps

// The plan supplies, at compile time:
//   block_warps  warps of a block

#include "common.cuh"

extern "C" __global__ void row_warp(const long long *__restrict__ row_pointers,
                                    const int *__restrict__ columns, const float *__restrict__ U,
                                    const float *__restrict__ V, float *__restrict__ scores,
                                    int n_rows, int heads, int n_cols) {
    RECORD_WARP;
    const long long row = (long long)blockIdx.x * Config::block_warps + threadIdx.x / WARP_SIZE;
    const int lane = threadIdx.x % WARP_SIZE;
    if (row >= n_rows) return;  // for all lanes of the warp

    for (long long k = row_pointers[row]; k < row_pointers[row + 1]; ++k) {
        for (int head = 0; head < heads; ++head) {
            const float *u = &U[(row * heads + head) * n_cols];
            const float *v = &V[((long long)columns[k] * heads + head) * n_cols];
            float sum = 0.0f;
            for (int column = lane; column < n_cols; column += WARP_SIZE) {
                sum += u[column] * v[column];
            }
            for (int apart = WARP_SIZE / 2; apart > 0; apart /= 2) {
                sum += __shfl_xor_sync(ALL_LANES, sum, apart);
            }
            if (lane == 0) scores[k * heads + head] = sum;
        }
    }
}
