// The largest of the neighbors' features, column by column, and its gradient: a warp a row, lanes
// side by side in the columns. accelviz.layers.maximum says what is computed.
#include "common.cuh"

// Y and share, 0 and 0 for a row without a nonzero.
extern "C" __global__ void row_max(const long long *row_pointers, const int *columns,
                                   const float *X, float *Y, float *share, int n_rows, int n_cols) {
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / WARP_SIZE;
    if (row >= n_rows) return;
    const long long start = row_pointers[row], stop = row_pointers[row + 1];
    for (int c = threadIdx.x % WARP_SIZE; c < n_cols; c += WARP_SIZE) {
        float largest = 0.0f;
        int count = 0;
        for (long long k = start; k < stop; ++k) {
            const float x = X[element(columns[k], c, n_cols)];
            if (count == 0 || x > largest) {
                largest = x;
                count = 0;
            }
            count += x == largest;
        }
        Y[element(row, c, n_cols)] = largest;
        share[element(row, c, n_cols)] = count == 0 ? 0.0f : 1.0f / count;
    }
}

// dX of a sender, whose receivers are a row of the transposed matrix. dY has the share in it.
extern "C" __global__ void row_max_gradient(const long long *row_pointers, const int *receivers,
                                            const float *X, const float *Y, const float *dY,
                                            float *dX, int n_senders, int n_cols) {
    const int sender = (blockIdx.x * blockDim.x + threadIdx.x) / WARP_SIZE;
    if (sender >= n_senders) return;
    const long long start = row_pointers[sender], stop = row_pointers[sender + 1];
    for (int c = threadIdx.x % WARP_SIZE; c < n_cols; c += WARP_SIZE) {
        const float x = X[element(sender, c, n_cols)];
        float sum = 0.0f;
        for (long long k = start; k < stop; ++k) {
            const long long at = element(receivers[k], c, n_cols);
            if (Y[at] == x) sum += dY[at];
        }
        dX[element(sender, c, n_cols)] = sum;
    }
}
