// A product of matrices by tiles.
const int TILE = 16;
__device__ float element(const float *A, int n, int row, int col) { return A[row * n + col]; }
__global__ void matmul(const float *A, const float *B, float *C, int n) {
    __shared__ float As[TILE][TILE];
    __shared__ float Bs[TILE][TILE];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * TILE + ty, col = blockIdx.x * TILE + tx;
    float sum = 0.0;
    for (int m = 0; m < n / TILE; m++) {
        As[ty][tx] = element(A, n, row, m * TILE + tx);
        Bs[ty][tx] = element(B, n, m * TILE + ty, col);
        __syncthreads();
        #pragma unroll
        for (int k = 0; k < TILE; k++) sum += As[ty][k] * Bs[k][tx];
        __syncthreads();
    }
    C[row * n + col] = sum;
}
