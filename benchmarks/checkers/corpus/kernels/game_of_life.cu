// One generation on a torus; the block's cells and their halo are bytes in shared memory.
__global__ void game_of_life(const unsigned char *now, unsigned char *next, int width, int height) {
    extern __shared__ unsigned char tile[];
    const int pitch = blockDim.x + 2, x0 = blockIdx.x * blockDim.x, y0 = blockIdx.y * blockDim.y;
    for (int y = threadIdx.y; y < blockDim.y + 2; y += blockDim.y) {
        for (int x = threadIdx.x; x < pitch; x += blockDim.x) {
            const int row = (y0 + y - 1 + height) % height, column = (x0 + x - 1 + width) % width;
            tile[y * pitch + x] = now[row * width + column];
        }
    }
    __syncthreads();
    const int x = x0 + threadIdx.x, y = y0 + threadIdx.y;
    if (x >= width || y >= height) return;
    int alive = 0;
    for (int k = 0; k < 9; ++k) {
        if (k != 4) alive += tile[(threadIdx.y + k / 3) * pitch + threadIdx.x + k % 3];
    }
    const bool lives = tile[(threadIdx.y + 1) * pitch + threadIdx.x + 1];
    next[y * width + x] = alive == 3 || (lives && alive == 2);
}
