// Begins of the runs of equal numbers, in order: flags, a scan of the block, one store a run.
__global__ void run_starts(const int *X, int *starts, int *counts) {
    __shared__ int sums[256];
    const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    const int flag = t == 0 || X[i] != X[i - 1];
    int sum = flag;
    for (int d = 1; d < blockDim.x; d *= 2) {
        sums[t] = sum;
        __syncthreads();
        if (t >= d) sum += sums[t - d];
        __syncthreads();
    }
    if (flag) starts[blockIdx.x * blockDim.x + sum - 1] = i;
    if (t == blockDim.x - 1) counts[blockIdx.x] = sum;
}
