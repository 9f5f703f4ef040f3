#define RADIUS 1

// A 3 by 3 filter over a tile with its halo.
__global__ void convolution_2d(const float *image, float *out, int height, int width) {
    extern __shared__ float tile[];
    const int pitch = blockDim.x + 2 * RADIUS;
    const int x0 = blockIdx.x * blockDim.x - RADIUS, y0 = blockIdx.y * blockDim.y - RADIUS;
    for (int y = threadIdx.y; y < blockDim.y + 2 * RADIUS; y += blockDim.y) {
        for (int x = threadIdx.x; x < pitch; x += blockDim.x) {
            const bool inside = x0 + x >= 0 && x0 + x < width && y0 + y >= 0 && y0 + y < height;
            tile[y * pitch + x] = inside ? image[(y0 + y) * width + x0 + x] : 0.0f;
        }
    }
    __syncthreads();
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    float sum = 0.0f;
    for (int j = 0; j <= 2 * RADIUS; ++j) {
        for (int i = 0; i <= 2 * RADIUS; ++i) {
            sum += tile[(threadIdx.y + j) * pitch + threadIdx.x + i] * (1 + i + j);
        }
    }
    out[y * width + x] = sum;
}
