// Cosine transform of 8x8 pixels, a thread a coefficient: rows, then columns, in shared memory.
__global__ void cosine_blocks(const unsigned char *image, float *out, int width) {
    __shared__ float pixels[8][8], rows[8][9];
    const int x = threadIdx.x, y = threadIdx.y;
    const int at = (blockIdx.y * 8 + y) * width + blockIdx.x * 8 + x;
    pixels[y][x] = image[at] - 128.0f;
    __syncthreads();
    float sum = 0;
#pragma unroll
    for (int k = 0; k < 8; ++k) sum += pixels[y][k] * cospif((2 * k + 1) * x / 16.0f);
    rows[y][x] = sum * (x ? 0.5f : 0.35355339f);
    __syncthreads();
    sum = 0;
#pragma unroll
    for (int k = 0; k < 8; ++k) sum += rows[k][x] * cospif((2 * k + 1) * y / 16.0f);
    out[at] = sum * (y ? 0.5f : 0.35355339f);
}
