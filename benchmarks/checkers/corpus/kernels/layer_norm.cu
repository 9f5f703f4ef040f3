// Mean and variance of a row a warp, then scale and shift.
__device__ float sum_of_warp(float value) {
    for (int d = 16; d > 0; d /= 2) value += __shfl_xor_sync(0xffffffff, value, d);
    return value;
}

__global__ void layer_norm(const float *X, const float *gain, const float *bias, float *Y, int rows,
                           int width) {
    const int row = blockIdx.x * blockDim.y + threadIdx.y, lane = threadIdx.x;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int j = lane; j < width; j += 32) sum += X[row * width + j];
    const float mean = sum_of_warp(sum) / width;
    float squares = 0.0f;
    for (int j = lane; j < width; j += 32) {
        const float distance = X[row * width + j] - mean;
        squares += distance * distance;
    }
    const float scale = rsqrtf(sum_of_warp(squares) / width + 1e-5f);
    for (int j = lane; j < width; j += 32) {
        Y[row * width + j] = (X[row * width + j] - mean) * scale * gain[j] + bias[j];
    }
}
