// The same by a scan of the block, in order: each block has its own stretch.
__global__ void compact_in_order(const int *X, int *kept, int *counts) {
    __shared__ int place[257];
    const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    const int keep = X[i] % 3 == 0;
    place[t + 1] = keep;
    if (t == 0) place[0] = 0;
    __syncthreads();
    for (int d = 1; d <= blockDim.x; d *= 2) {
        const int other = t + 1 >= d ? place[t + 1 - d] : 0;
        __syncthreads();
        place[t + 1] += other;
        __syncthreads();
    }
    if (keep) kept[blockIdx.x * blockDim.x + place[t]] = X[i];
    if (t == 0) counts[blockIdx.x] = place[blockDim.x];
}
