// The programming guide's atomicAdd of doubles for old GPUs.
__device__ double add_by_cas(double *address, double value) {
    unsigned long long int *as_integer = (unsigned long long int *)address;
    unsigned long long int old = *as_integer, assumed;
    do {
        assumed = old;
        old = atomicCAS(as_integer, assumed,
                        __double_as_longlong(value + __longlong_as_double(assumed)));
    } while (assumed != old);
    return __longlong_as_double(old);
}

__global__ void dot_double(const double *X, const double *Y, double *sum, int n) {
    double mine = 0.0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        mine += X[i] * Y[i];
    }
    for (int d = 16; d > 0; d /= 2) mine += __shfl_down_sync(0xffffffff, mine, d);
    if (threadIdx.x % 32 == 0) add_by_cas(sum, mine);
}
