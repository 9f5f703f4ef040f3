// The elements above a limit, close together, in any order: a ballot and an atomic a warp.
__global__ void compact(const float *X, float *kept, int *count, float limit, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    const bool keep = i < n && X[i] > limit;
    const unsigned int votes = __ballot_sync(0xffffffff, keep);
    int first = 0;
    if (lane == 0) first = atomicAdd(count, __popc(votes));
    first = __shfl_sync(0xffffffff, first, 0);
    if (keep) kept[first + __popc(votes & ((1u << lane) - 1))] = X[i];
}
