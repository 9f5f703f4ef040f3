// Edges of a grey image by Sobel's two filters; rows beyond the border repeat it.
__device__ int pixel(const unsigned char *image, int x, int y, int width, int height) {
    return image[min(max(y, 0), height - 1) * width + min(max(x, 0), width - 1)];
}

__global__ void sobel(const unsigned char *image, unsigned char *edges, int width, int height) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    int across = 0, down = 0;
    for (int k = -1; k <= 1; ++k) {
        const int weight = k == 0 ? 2 : 1;
        across += weight * (pixel(image, x + 1, y + k, width, height) - pixel(image, x - 1, y + k, width, height));
        down += weight * (pixel(image, x + k, y + 1, width, height) - pixel(image, x + k, y - 1, width, height));
    }
    edges[y * width + x] = min(abs(across) + abs(down), 255);
}
