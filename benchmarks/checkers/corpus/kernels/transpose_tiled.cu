#define TILE 32

// A tile at a time through shared memory, with a column more against bank conflicts.
__global__ void transpose_tiled(const float *A, float *B, int rows, int columns) {
    __shared__ float tile[TILE][TILE + 1];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += blockDim.y) {
        if (x < columns && y + j < rows) {
            tile[threadIdx.y + j][threadIdx.x] = A[(y + j) * columns + x];
        }
    }
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x;
    y = blockIdx.x * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += blockDim.y) {
        if (x < rows && y + j < columns) {
            B[(y + j) * rows + x] = tile[threadIdx.x][threadIdx.y + j];
        }
    }
}
