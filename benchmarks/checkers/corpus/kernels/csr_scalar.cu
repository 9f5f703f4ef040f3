// A row a thread.
__global__ void csr_scalar(const int *pointers, const int *columns, const float *values,
                           const float *x, float *y, int rows) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        float sum = 0.0f;
        for (int k = pointers[row]; k < pointers[row + 1]; ++k) sum += values[k] * x[columns[k]];
        y[row] = sum;
    }
}
