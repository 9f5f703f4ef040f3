// Cross entropy and the gradient of its logits, a block a row, in place; padding stays zero.
__device__ float block_reduce(float x, bool is_max) {
    __shared__ float of_warps[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int d = 16; d; d /= 2) {
        const float other = __shfl_xor_sync(~0u, x, d);
        x = is_max ? fmaxf(x, other) : x + other;
    }
    if (lane == 0) of_warps[warp] = x;
    __syncthreads();
    x = of_warps[0];
    for (int w = 1; w < blockDim.x / 32; ++w) x = is_max ? fmaxf(x, of_warps[w]) : x + of_warps[w];
    __syncthreads();
    return x;
}

__global__ void classifier(float *logits, const int *targets, float *losses, int classes, int padded) {
    float *row = logits + blockIdx.x * padded;
    const int target = targets[blockIdx.x];
    float most = -1e30f, sum = 0;
    for (int c = threadIdx.x; c < classes; c += blockDim.x) most = fmaxf(most, row[c]);
    most = block_reduce(most, true);
    for (int c = threadIdx.x; c < classes; c += blockDim.x) sum += expf(row[c] - most);
    sum = block_reduce(sum, false);
    if (threadIdx.x == 0) losses[blockIdx.x] = logf(sum) + most - row[target];
    __syncthreads();
    for (int c = threadIdx.x; c < padded; c += blockDim.x) {
        row[c] = c < classes ? expf(row[c] - most) / sum - (c == target) : 0;
    }
}
