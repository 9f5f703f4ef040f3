// GE-SpMM (Huang et al., SC 2020): Y = A X, fp32, CSR.
//
// Coalesced row caching: a warp loads 32 nonzeros of its row side by side into shared memory, and
// then reads them one after the other, all lanes the same one. Coarse-grained warp merging: where
// there are more than 32 columns, a lane has LANE_COLUMNS of them, so that each staged nonzero
// serves twice. Rows are never cut.
//
// grid  = (blocks of BLOCK_WARPS rows, tiles of 32 x LANE_COLUMNS columns)
// block = 32 x BLOCK_WARPS threads
#include "common.cuh"

// The plan supplies, at compile time:
//   BLOCK_WARPS    warps in a block
//   LANE_COLUMNS   columns of a lane, 32 apart
#if !defined(BLOCK_WARPS) || !defined(LANE_COLUMNS)
#error "ge_spmm.cu is compiled by accelviz, which supplies the constants listed above"
#endif

#define BLOCK_THREADS (BLOCK_WARPS * WARP_SIZE)

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    ge_spmm(const long long *__restrict__ row_pointers, const int *__restrict__ columns,
            const float *__restrict__ values, const float *__restrict__ X, float *__restrict__ Y,
            int n_rows, int n_cols) {
    RECORD_WARP;
    __shared__ int staged_columns[BLOCK_THREADS];
    __shared__ float staged_values[BLOCK_THREADS];

    const int lane = threadIdx.x % WARP_SIZE;
    const int first = threadIdx.x - lane;  // of this warp's part of the stage
    const long long row = (long long)blockIdx.x * BLOCK_WARPS + threadIdx.x / WARP_SIZE;
    const int column = blockIdx.y * WARP_SIZE * LANE_COLUMNS + lane;
    if (row >= n_rows) return;  // the whole warp leaves

    const long long end = row_pointers[row + 1];
    float sums[LANE_COLUMNS] = {};
    for (long long begin = row_pointers[row]; begin < end; begin += WARP_SIZE) {
        if (begin + lane < end) {
            staged_columns[threadIdx.x] = columns[begin + lane];
            staged_values[threadIdx.x] = values[begin + lane];
        }
        __syncwarp();
        const int count = end - begin < WARP_SIZE ? int(end - begin) : WARP_SIZE;
        for (int k = 0; k < count; ++k) {
            const int sender = staged_columns[first + k];
            const float value = staged_values[first + k];
#pragma unroll
            for (int i = 0; i < LANE_COLUMNS; ++i) {
                const int own = column + i * WARP_SIZE;
                if (own < n_cols) sums[i] += value * X[element(sender, own, n_cols)];
            }
        }
        __syncwarp();  // before the next nonzeros take the place of these
    }
#pragma unroll
    for (int i = 0; i < LANE_COLUMNS; ++i) {
        const int own = column + i * WARP_SIZE;
        if (own < n_cols) Y[element(row, own, n_cols)] = sums[i];
    }
}
