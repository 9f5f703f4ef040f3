// Largest of each two by two pixels, and where it is, in blocks of two dimensions.
__global__ void max_pool(const float *X, float *Y, unsigned char *which, int height, int width) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width / 2 || y >= height / 2) return;
    float most = -1e30f;
    int best = 0;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        const float value = X[(2 * y + k / 2) * width + 2 * x + k % 2];
        if (value > most) most = value, best = k;
    }
    Y[y * (width / 2) + x] = most;
    which[y * (width / 2) + x] = best;
}
