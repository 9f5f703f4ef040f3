// Counts keys: lanes find those with the same key by a match, and one of them adds their number.
__global__ void count_matches(const unsigned long long *keys, int *counts, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    const unsigned active = __ballot_sync(~0u, i < n);
    if (i >= n) return;
    const unsigned same = __match_any_sync(active, keys[i]);
    if (lane == __ffs(same) - 1) atomicAdd(&counts[keys[i] % 16], __popc(same));
}
