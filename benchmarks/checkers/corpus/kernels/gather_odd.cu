// One atomic for all lanes that want a place.
__device__ int place_of_lane(int *counter) {
    const unsigned int active = __activemask();
    const int lane = threadIdx.x % 32, leader = __ffs(active) - 1;
    int first = 0;
    if (lane == leader) first = atomicAdd(counter, __popc(active));
    first = __shfl_sync(active, first, leader);
    return first + __popc(active & ((1u << lane) - 1));
}

__global__ void gather_odd(const int *X, int *odd, int *counter, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && X[i] % 2 == 1) odd[place_of_lane(counter)] = 1;
}
