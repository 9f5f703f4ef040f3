// Counts of each block in shared memory, then one atomic a bin.
__global__ void histogram_shared(const unsigned char *data, int *counts, int bins, int n) {
    extern __shared__ int local[];
    for (int b = threadIdx.x; b < bins; b += blockDim.x) local[b] = 0;
    __syncthreads();  // cleared
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        atomicAdd(&local[data[i] * bins / 256], 1);
    }
    __syncthreads();  // counted
    for (int b = threadIdx.x; b < bins; b += blockDim.x) {
        if (local[b] > 0) atomicAdd(&counts[b], local[b]);
    }
}
