// Warps sum in registers, the first of them sums the warps' sums.
__inline__ __device__ float warp_sum(float value) {
    for (int offset = 16; offset > 0; offset /= 2) {
        value += __shfl_down_sync(0xffffffff, value, offset);
    }
    return value;
}

__global__ void reduce_shuffle(const float *X, float *sums, int n) {
    __shared__ float of_warps[32];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float sum = i < n ? X[i] : 0.0f;
    sum = warp_sum(sum);
    if (lane == 0) of_warps[warp] = sum;
    __syncthreads();
    if (warp == 0) {
        sum = lane < blockDim.x / 32 ? of_warps[lane] : 0.0f;
        sum = warp_sum(sum);
        if (lane == 0) sums[blockIdx.x] = sum;
    }
}
