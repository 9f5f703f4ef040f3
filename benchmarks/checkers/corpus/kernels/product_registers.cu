// Four elements of a column of C a thread, in registers; both halves of the next tile load early.
#define TILE_K 8
#define ROWS 4

__global__ void product_registers(const float *A, const float *B, float *C, int M, int N, int K) {
    __shared__ float b[2][TILE_K][32];
    const int column = blockIdx.x * 32 + threadIdx.x;
    const int first = (blockIdx.y * blockDim.y + threadIdx.y) * ROWS;
    float sums[ROWS] = {};
    int now = 0;
    for (int j = threadIdx.y; j < TILE_K; j += blockDim.y) {
        b[now][j][threadIdx.x] = B[j * N + column];
    }
    __syncthreads();  // first
    for (int k = 0; k < K; k += TILE_K) {
        if (k + TILE_K < K) {
            for (int j = threadIdx.y; j < TILE_K; j += blockDim.y) {
                b[1 - now][j][threadIdx.x] = B[(k + TILE_K + j) * N + column];
            }
        }
        for (int i = 0; i < ROWS; ++i) {
            for (int j = 0; j < TILE_K; ++j) {
                sums[i] += A[(first + i) * K + k + j] * b[now][j][threadIdx.x];
            }
        }
        __syncthreads();  // next
        now = 1 - now;
    }
    for (int i = 0; i < ROWS; ++i) C[(first + i) * N + column] = sums[i];
}
