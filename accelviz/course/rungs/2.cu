extern "C" __global__ void my_spmm(const long long *row_pointers, const int *columns,
                                   const float *values, const float *X, float *Y,
                                   int n_rows, int n_cols) {
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;  // a warp a row
    const int lane = threadIdx.x % 32;
    if (row >= n_rows) return;
    for (int column = lane; column < n_cols; column += 32) {
        float sum = 0.0f;
        for (long long k = row_pointers[row]; k < row_pointers[row + 1]; ++k) {
            sum += values[k] * X[columns[k] * n_cols + column];
        }
        Y[row * n_cols + column] = sum;
    }
}
