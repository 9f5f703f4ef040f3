// Convolution down columns: a block's rows and halo in shared memory, weights in constant memory.
#define RADIUS 3

__constant__ float weights[2 * RADIUS + 1] = {1, 2, 3, 4, 3, 2, 1};

__global__ void convolution_columns(const float *X, float *Y, int width, int height) {
    __shared__ float s[32 + 2 * RADIUS][33];
    const int x = blockIdx.x * 32 + threadIdx.x, y0 = blockIdx.y * 32;
    for (int y = threadIdx.y; y < 32 + 2 * RADIUS; y += blockDim.y) {
        const int row = y0 + y - RADIUS;
        s[y][threadIdx.x] = x < width && row >= 0 && row < height ? X[row * width + x] : 0;
    }
    __syncthreads();
    if (x >= width) return;
    for (int y = threadIdx.y; y < 32 && y0 + y < height; y += blockDim.y) {
        float sum = 0;
        for (int k = 0; k <= 2 * RADIUS; ++k) sum += weights[k] * s[y + k][threadIdx.x];
        Y[(y0 + y) * width + x] = sum;
    }
}
