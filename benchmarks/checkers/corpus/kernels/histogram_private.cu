#define BINS 16

// A thread counts for itself in bytes of shared memory, a column a thread.
__global__ void histogram_private(const unsigned char *data, unsigned int *counts, int n) {
    __shared__ unsigned char mine[BINS][256];
    const int t = threadIdx.x;
    for (int b = 0; b < BINS; ++b) mine[b][t] = 0;
    for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) {
        ++mine[data[i] >> 4][t];
    }
    __syncthreads();
    for (int b = t; b < BINS; b += blockDim.x) {
        unsigned int sum = 0;
        for (int j = 0; j < blockDim.x; ++j) sum += mine[b][j];
        atomicAdd(&counts[b], sum);
    }
}
