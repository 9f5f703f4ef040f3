// A lock around a sum and its square: a lane at a time, with fences on both sides.
__global__ void sums_under_lock(const int *X, int *lock, int *sums, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    bool waiting = i < n;
    while (waiting) {
        if (atomicCAS(lock, 0, 1) == 0) {
            __threadfence();
            sums[0] += X[i];
            sums[1] += X[i] * X[i];
            __threadfence();  // before the lock opens
            atomicExch(lock, 0);
            waiting = false;
        }
    }
}
