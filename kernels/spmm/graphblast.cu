// GraphBLAST's row-split SpMM (Yang, Buluc and Owens, Euro-Par 2018): Y = A X, fp32, CSR.
//
// A warp multiplies one row of A by 32 columns of X. Each lane loads one of 32 nonzeros of the row;
// shuffles broadcast them one after another, and each lane adds the product for its own column.
// Rows are not split: a long row occupies one warp.
//
// grid  = (blocks of block_warps rows, tiles of 32 columns)
// block = 32 x block_warps threads
#include "common.cuh"

constexpr int BLOCK_THREADS = Config::block_warps * WARP_SIZE;

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    graphblast(const long long *__restrict__ row_pointers, const int *__restrict__ columns,
               const float *__restrict__ values, const float *__restrict__ X, float *__restrict__ Y,
               int n_rows, int n_cols) {
    RECORD_WARP;
    const int lane = threadIdx.x % WARP_SIZE;
    const long long row = (long long)blockIdx.x * Config::block_warps + threadIdx.x / WARP_SIZE;
    const int column = blockIdx.y * WARP_SIZE + lane;
    if (row >= n_rows) return;  // the whole warp leaves

    const long long end = row_pointers[row + 1];
    float sum = 0.0f;
    for (long long begin = row_pointers[row]; begin < end; begin += WARP_SIZE) {
        int lane_column = 0;
        float lane_value = 0.0f;
        if (begin + lane < end) {
            lane_column = columns[begin + lane];
            lane_value = values[begin + lane];
        }
        const int count = end - begin < WARP_SIZE ? int(end - begin) : WARP_SIZE;
        for (int k = 0; k < count; ++k) {
            const int source = __shfl_sync(ALL_LANES, lane_column, k);
            const float value = __shfl_sync(ALL_LANES, lane_value, k);
            if (column < n_cols) sum += value * X[element(source, column, n_cols)];
        }
    }
    if (column < n_cols) Y[element(row, column, n_cols)] = sum;
}
