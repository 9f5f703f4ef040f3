// Sums of stretches with equal keys, which lie together: lanes hand sums down inside a warp.
__global__ void segmented_sum(const int *keys, const float *values, float *sums, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    const int key = i < n ? keys[i] : -1;
    float value = i < n ? values[i] : 0.0f;
    for (int d = 1; d < 32; d *= 2) {
        const int other_key = __shfl_down_sync(0xffffffff, key, d);
        const float other = __shfl_down_sync(0xffffffff, value, d);
        if (lane + d < 32 && other_key == key) value += other;
    }
    const int before = __shfl_up_sync(0xffffffff, key, 1);
    if (i < n && (lane == 0 || before != key)) atomicAdd(&sums[key], value);
}
