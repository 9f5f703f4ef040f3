extern "C" __global__ void my_spmm(const long long *row_pointers, const int *columns,
                                   const float *values, const float *X, float *Y,
                                   int n_rows, int n_cols) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n_rows) return;  // the last block has too many threads
    for (int column = 0; column < n_cols; ++column) {
        float sum = 0.0f;
        for (long long k = row_pointers[row]; k < row_pointers[row + 1]; ++k) {
            sum += values[k] * X[columns[k] * n_cols + column];
        }
        Y[row * n_cols + column] = sum;
    }
}
