extern "C" __global__ void my_spmm(const long long *row_pointers, const int *columns,
                                   const float *values, const int *output_rows,
                                   const float *X, float *Y, int n_rows, int n_cols) {
    const int sorted_row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    const int lane = threadIdx.x % 32;
    if (sorted_row >= n_rows) return;
    const int row = output_rows[sorted_row];
    for (int column = lane; column < n_cols; column += 32) {
        float sum = 0.0f;
        for (long long k = row_pointers[sorted_row]; k < row_pointers[sorted_row + 1]; ++k) {
            sum += values[k] * X[columns[k] * n_cols + column];
        }
        Y[row * n_cols + column] = sum;
    }
}
