// As lanes of old warps did it, made right: volatile for the compiler, barriers for the lanes.
__device__ void last_warp(volatile int *s, int t) {
    int value = s[t];
    value += s[t + 16]; __syncwarp(); s[t] = value; __syncwarp();  // 16
    value += s[t + 8]; __syncwarp(); s[t] = value; __syncwarp();
    value += s[t + 4]; __syncwarp(); s[t] = value; __syncwarp();
    value += s[t + 2]; __syncwarp(); s[t] = value; __syncwarp();
    value += s[t + 1]; __syncwarp(); s[t] = value; __syncwarp();
}

__global__ void reduce_volatile(const int *X, int *sums) {
    __shared__ int s[8 * 48];
    const int t = threadIdx.x, lane = t % 32, warp = t / 32;
    int *mine = s + 48 * warp;
    mine[lane] = X[blockIdx.x * blockDim.x + t];
    if (lane < 16) mine[32 + lane] = 0;
    __syncwarp();
    last_warp(mine, lane);
    if (lane == 0) atomicAdd(&sums[blockIdx.x], mine[0]);
}
