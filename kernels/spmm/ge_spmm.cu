// GE-SpMM (Huang et al., SC 2020): Y = A X, fp32, CSR.
//
// Coalesced row caching: a warp loads 32 nonzeros of its row into shared memory, one per lane, and
// then all lanes read them one after another. Coarse-grained warp merging: with more than 32
// columns, a lane handles lane_columns columns, so that each staged nonzero is used several times.
// Rows are not split.
//
// grid  = (blocks of block_warps rows, tiles of 32 x lane_columns columns)
// block = 32 x block_warps threads
#include "common.cuh"

// The plan supplies, at compile time:
//   block_warps    warps in a block
//   lane_columns   columns of a lane, 32 apart

constexpr int BLOCK_THREADS = Config::block_warps * WARP_SIZE;

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    ge_spmm(const long long *__restrict__ row_pointers, const int *__restrict__ columns,
            const float *__restrict__ values, const float *__restrict__ X, float *__restrict__ Y,
            int n_rows, int n_cols) {
    RECORD_WARP;
    __shared__ int staged_columns[BLOCK_THREADS];
    __shared__ float staged_values[BLOCK_THREADS];

    const int lane = threadIdx.x % WARP_SIZE;
    const int first = threadIdx.x - lane;  // index of this warp's first staged nonzero
    const long long row = (long long)blockIdx.x * Config::block_warps + threadIdx.x / WARP_SIZE;
    const int column = blockIdx.y * WARP_SIZE * Config::lane_columns + lane;
    if (row >= n_rows) return;  // the whole warp leaves

    const long long end = row_pointers[row + 1];
    float sums[Config::lane_columns] = {};
    for (long long begin = row_pointers[row]; begin < end; begin += WARP_SIZE) {
        if (begin + lane < end) {
            staged_columns[threadIdx.x] = columns[begin + lane];
            staged_values[threadIdx.x] = values[begin + lane];
        }
        __syncwarp();
        const int count = end - begin < WARP_SIZE ? int(end - begin) : WARP_SIZE;
        for (int k = 0; k < count; ++k) {
            const int source = staged_columns[first + k];
            const float value = staged_values[first + k];
#pragma unroll
            for (int i = 0; i < Config::lane_columns; ++i) {
                const int lane_column = column + i * WARP_SIZE;
                if (lane_column < n_cols)
                    sums[i] += value * X[element(source, lane_column, n_cols)];
            }
        }
        __syncwarp();  // all lanes have read the nonzeros before the next ones replace them
    }
#pragma unroll
    for (int i = 0; i < Config::lane_columns; ++i) {
        const int lane_column = column + i * WARP_SIZE;
        if (lane_column < n_cols) Y[element(row, lane_column, n_cols)] = sums[i];
    }
}
