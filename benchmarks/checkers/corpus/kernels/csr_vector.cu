// A row a warp, summed by shuffles.
__global__ void csr_vector(const int *pointers, const int *columns, const float *values,
                           const float *x, float *y, int rows) {
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int k = pointers[row] + lane; k < pointers[row + 1]; k += 32) {
        sum += values[k] * x[columns[k]];
    }
    for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(0xffffffff, sum, d);
    if (lane == 0) y[row] = sum;
}
