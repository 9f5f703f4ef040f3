// Tiles of A and B in shared memory, a square block.
template <int TILE>
__global__ void product_tiled(const float *A, const float *B, float *C, int M, int N, int K) {
    __shared__ float a[TILE][TILE], b[TILE][TILE];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row = blockIdx.y * TILE + ty, column = blockIdx.x * TILE + tx;
    float sum = 0.0f;
    for (int k = 0; k < K; k += TILE) {
        a[ty][tx] = row < M && k + tx < K ? A[row * K + k + tx] : 0.0f;
        b[ty][tx] = k + ty < K && column < N ? B[(k + ty) * N + column] : 0.0f;
        __syncthreads();  // loaded
        for (int i = 0; i < TILE; ++i) sum += a[ty][i] * b[i][tx];
        __syncthreads();  // used
    }
    if (row < M && column < N) C[row * N + column] = sum;
}

template __global__ void product_tiled<8>(const float *, const float *, float *, int, int, int);
