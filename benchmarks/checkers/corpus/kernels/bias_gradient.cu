// Sums of a matrix's columns: lanes are columns, warps share the rows and meet in shared memory.
__global__ void bias_gradient(const float *dY, float *d_bias, int rows, int columns) {
    extern __shared__ float sums[];
    const int column = blockIdx.x * 32 + threadIdx.x, lane = threadIdx.x;
    float sum = 0;
    if (column < columns) {
        for (int row = threadIdx.y; row < rows; row += blockDim.y) sum += dY[row * columns + column];
    }
    sums[threadIdx.y * 32 + lane] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && column < columns) {
        for (int w = 1; w < blockDim.y; ++w) sum += sums[w * 32 + lane];
        d_bias[column] += sum;
    }
}
