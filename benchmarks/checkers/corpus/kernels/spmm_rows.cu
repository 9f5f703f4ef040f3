// Y = A X: a warp a row, a lane a column; a row's nonzeros wait in shared memory.
__global__ void spmm_rows(const int *pointers, const int *columns, const float *values,
                          const float *X, float *Y, int rows, int width) {
    __shared__ int column[8][32];
    __shared__ float value[8][32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int row = blockIdx.x * (blockDim.x / 32) + warp;
    if (row >= rows) return;
    float sum = 0.0f;
    const int end = pointers[row + 1];
    for (int base = pointers[row]; base < end; base += 32) {
        if (base + lane < end) {
            column[warp][lane] = columns[base + lane];
            value[warp][lane] = values[base + lane];
        }
        __syncwarp();  // loaded
        const int count = min(32, end - base);
        for (int j = 0; j < count; ++j) {
            if (lane < width) sum += value[warp][j] * X[column[warp][j] * width + lane];
        }
        __syncwarp();  // used
    }
    if (lane < width) Y[row * width + lane] = sum;
}
