// Any number of elements a thread; the last warp is unrolled and every step has its barrier.
__global__ void reduce_grid_stride(const int *X, int *sum, int n) {
    extern __shared__ int partial[];
    const int t = threadIdx.x;
    int mine = 0;
    for (int i = blockIdx.x * blockDim.x + t; i < n; i += blockDim.x * gridDim.x) mine += X[i];
    partial[t] = mine;
    __syncthreads();
    for (int half = blockDim.x / 2; half >= 32; half /= 2) {
        if (t < half) partial[t] += partial[t + half];
        __syncthreads();
    }
    if (t < 32) {
        int value = partial[t];
        value += __shfl_xor_sync(0xffffffff, value, 16);
        value += __shfl_xor_sync(0xffffffff, value, 8);
        value += __shfl_xor_sync(0xffffffff, value, 4);
        value += __shfl_xor_sync(0xffffffff, value, 2);
        value += __shfl_xor_sync(0xffffffff, value, 1);
        if (t == 0) atomicAdd(sum, value);
    }
}
