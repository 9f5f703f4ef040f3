// Counts in global memory.
__global__ void histogram_global(const unsigned char *data, unsigned int *counts, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        atomicAdd(&counts[data[i]], 1u);
    }
}
