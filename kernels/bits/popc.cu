// Product of bit matrices on CUDA cores: AND, then population count. Y = sum over planes of
// (A_i B_j) << (i + j), in integers. A block computes 32 x 32 elements, a thread four of a column.
//
// grid  = (tiles of 32 rows, tiles of 32 columns)
// block = 8 warps

// The plan supplies, at compile time:
//   jump            1 to skip tiles of A that are zero, else 0

#include "bits/planes.cuh"

constexpr int WARPS = 8;
constexpr int THREAD_ROWS = SIDE / WARPS;

extern "C" __global__ void __launch_bounds__(WARPS *WARP_SIZE)
    popc(const unsigned *__restrict__ A, const unsigned *__restrict__ B, int *__restrict__ out,
         int rows, int columns, int words, int a_bits, int a_lines, int b_bits, int b_lines) {
    RECORD_WARP;
    __shared__ unsigned a[SIDE][SIDE + 1], b[SIDE][SIDE + 1];
    const int warp = int(threadIdx.x) / WARP_SIZE, lane = int(threadIdx.x) % WARP_SIZE;
    const int first_row = int(blockIdx.x) * SIDE, first_column = int(blockIdx.y) * SIDE;
    const Planes a_layout{a_bits, a_lines, words}, b_layout{b_bits, b_lines, words};
    unsigned sums[THREAD_ROWS] = {};
    for (int i = 0; i < a_bits; ++i) {
        for (int word = 0; word < words; word += SIDE) {
            unsigned any = 0;
            for (int line = warp; line < SIDE; line += WARPS) {
                const bool inside = first_row + line < a_lines && word + lane < words;
                a[line][lane] = inside ? A[a_layout.at(i, first_row + line, word + lane)] : 0u;
                any |= a[line][lane];
            }
            if (!__syncthreads_or(any != 0) && Config::jump) continue;
            for (int j = 0; j < b_bits; ++j) {
                for (int line = warp; line < SIDE; line += WARPS) {
                    const bool inside = first_column + line < b_lines && word + lane < words;
                    b[line][lane] =
                        inside ? B[b_layout.at(j, first_column + line, word + lane)] : 0u;
                }
                __syncthreads();
#pragma unroll
                for (int r = 0; r < THREAD_ROWS; ++r) {
                    int ones = 0;
#pragma unroll
                    for (int k = 0; k < SIDE; ++k)
                        ones += __popc(a[warp * THREAD_ROWS + r][k] & b[lane][k]);
                    sums[r] += unsigned(ones) << (i + j);
                }
                __syncthreads();  // all threads have read `b` before the next words replace it
            }
        }
    }
    for (int r = 0; r < THREAD_ROWS; ++r) {
        const int row = first_row + warp * THREAD_ROWS + r, column = first_column + lane;
        if (row < rows && column < columns) out[element(row, column, columns)] = int(sums[r]);
    }
}
