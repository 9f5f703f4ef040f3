// Largest or smallest feature over a row's neighbors, column by column, and the gradient of both.
// One warp per row; lanes handle neighboring columns. The operation is defined in
// accelviz.strategies.spmm.extrema.
//
// grid  = rows over block_warps, rounded up
// block = block_warps warps

// The plan supplies, at compile time:
//   block_warps  warps of a block
#include "common.cuh"

struct Largest {
    static DEVICE_INLINE bool beats(float x, float best) {
        return x > best;
    }
};

struct Least {
    static DEVICE_INLINE bool beats(float x, float best) {
        return x < best;
    }
};

// Y, and `share`, one over the number of neighbors with that value. Both are 0 for an empty row.
template <class Reduction>
__global__ void extremum(const long long *__restrict__ row_pointers,
                         const int *__restrict__ columns, const float *__restrict__ X,
                         float *__restrict__ Y, float *__restrict__ share, int n_rows, int n_cols) {
    RECORD_WARP;
    const long long row = (long long)blockIdx.x * Config::block_warps + threadIdx.x / WARP_SIZE;
    if (row >= n_rows) return;
    const long long begin = row_pointers[row], end = row_pointers[row + 1];
    for (int c = threadIdx.x % WARP_SIZE; c < n_cols; c += WARP_SIZE) {
        float best = 0.0f;
        int count = 0;
        for (long long k = begin; k < end; ++k) {
            const float x = X[element(columns[k], c, n_cols)];
            if (count == 0 || Reduction::beats(x, best) || x != x) {  // a NaN is never replaced
                best = x;
                count = 1;
            } else if (x == best) {
                ++count;
            }
        }
        Y[element(row, c, n_cols)] = best;
        share[element(row, c, n_cols)] = count == 0 ? 0.0f : 1.0f / count;
    }
}

// dX[j] from the rows i in row j of the transposed matrix. dY is already scaled by `share`.
extern "C" __global__ void extremum_gradient(const long long *__restrict__ row_pointers,
                                             const int *__restrict__ columns,
                                             const float *__restrict__ X,
                                             const float *__restrict__ Y,
                                             const float *__restrict__ dY, float *__restrict__ dX,
                                             int n_rows, int n_cols) {
    RECORD_WARP;
    const long long row = (long long)blockIdx.x * Config::block_warps + threadIdx.x / WARP_SIZE;
    if (row >= n_rows) return;
    const long long begin = row_pointers[row], end = row_pointers[row + 1];
    for (int c = threadIdx.x % WARP_SIZE; c < n_cols; c += WARP_SIZE) {
        const float x = X[element(row, c, n_cols)];
        float sum = 0.0f;
        for (long long k = begin; k < end; ++k) {
            const long long at = element(columns[k], c, n_cols);
            if (Y[at] == x) sum += dY[at];
        }
        dX[element(row, c, n_cols)] = sum;
    }
}
