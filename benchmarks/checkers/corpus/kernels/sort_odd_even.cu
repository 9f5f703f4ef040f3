// Odd and even pairs in turn, in global memory.
__global__ void sort_odd_even(int *keys) {
    int *mine = keys + blockIdx.x * blockDim.x;
    for (int step = 0; step < blockDim.x; ++step) {
        const int left = 2 * threadIdx.x + step % 2;
        if (left + 1 < blockDim.x) {
            const int a = mine[left], b = mine[left + 1];
            mine[left] = min(a, b);
            mine[left + 1] = max(a, b);
        }
        __syncthreads();
    }
}
