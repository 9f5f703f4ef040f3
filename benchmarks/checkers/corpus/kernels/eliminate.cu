// Gaussian elimination of small systems without pivots, a block a system, in shared memory.
#define N 9

__global__ void eliminate(const float *A, const float *b, float *x) {
    __shared__ float s[N][N + 1];
    for (int k = threadIdx.x; k < N * (N + 1); k += blockDim.x) {
        const int row = k / (N + 1), column = k % (N + 1);
        s[row][column] = column < N ? A[(blockIdx.x * N + row) * N + column] : b[blockIdx.x * N + row];
    }
    for (int pivot = 0; pivot < N; ++pivot) {
        __syncthreads();
        for (int k = threadIdx.x; k < N * (N - pivot); k += blockDim.x) {
            const int row = k % N, column = pivot + 1 + k / N;
            if (row != pivot) s[row][column] -= s[row][pivot] / s[pivot][pivot] * s[pivot][column];
        }
    }
    __syncthreads();
    if (threadIdx.x < N) x[blockIdx.x * N + threadIdx.x] = s[threadIdx.x][N] / s[threadIdx.x][threadIdx.x];
}
