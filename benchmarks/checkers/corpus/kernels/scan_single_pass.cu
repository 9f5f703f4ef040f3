// One launch over all blocks: each waits for the sum of those before it.
__device__ unsigned int next_tile = 0;

__global__ void scan_single_pass(const int *X, int *Y, volatile int *sums, volatile int *flags) {
    __shared__ int s[256];
    __shared__ int before;
    __shared__ unsigned int tile;
    const int t = threadIdx.x;
    if (t == 0) tile = atomicAdd(&next_tile, 1);  // tiles start in order, blocks need not
    __syncthreads();
    const int i = tile * blockDim.x + t;
    s[t] = X[i];
    __syncthreads();
    for (int d = 1; d < blockDim.x; d *= 2) {
        const int other = t >= d ? s[t - d] : 0;
        __syncthreads();  // read
        s[t] += other;
        __syncthreads();  // written
    }
    if (t == 0) {
        int sum = 0;
        if (tile > 0) {
            while (flags[tile - 1] == 0) {}
            __threadfence();  // behind the flag
            sum = sums[tile - 1];
        }
        sums[tile] = sum + s[blockDim.x - 1];
        __threadfence();  // before the flag
        flags[tile] = 1;
        before = sum;
    }
    __syncthreads();  // before
    Y[i] = s[t] + before;
}
