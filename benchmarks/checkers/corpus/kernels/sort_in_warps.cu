// Each warp sorts 32 numbers bitonically by shuffles alone.
__global__ void sort_in_warps(int *keys) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    int key = keys[i];
    for (int size = 2; size <= 32; size *= 2) {
        for (int stride = size / 2; stride; stride /= 2) {
            const int other = __shfl_xor_sync(0xffffffff, key, stride);
            const bool ascending = (lane & size) == 0, is_lower = (lane & stride) == 0;
            key = ascending == is_lower ? min(key, other) : max(key, other);
        }
    }
    keys[i] = key;
}
