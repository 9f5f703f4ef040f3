// Nonzeros of equal shares for each block; rows that it ends are summed from shared memory.
#define SHARE 64

__global__ void csr_stream(const int *pointers, const int *columns, const float *values,
                           const float *x, float *y, int rows) {
    __shared__ float products[SHARE];
    const int first = blockIdx.x * SHARE, end = min(first + SHARE, pointers[rows]);
    for (int k = first + threadIdx.x; k < end; k += blockDim.x) {
        products[k - first] = values[k] * x[columns[k]];
    }
    __syncthreads();
    for (int row = threadIdx.x; row < rows; row += blockDim.x) {
        const int from = max(pointers[row], first), to = min(pointers[row + 1], end);
        if (from >= to) continue;
        float sum = 0.0f;
        for (int k = from; k < to; ++k) sum += products[k - first];
        atomicAdd(&y[row], sum);
    }
}
