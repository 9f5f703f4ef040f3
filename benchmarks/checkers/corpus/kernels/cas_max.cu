// The largest float of each group: atomicMax does not take floats, a loop of atomicCAS does.
__device__ void raise_to(float *largest, float x) {
    int *const bits = reinterpret_cast<int *>(largest);
    int old = *bits;
    while (__int_as_float(old) < x) {
        const int before = atomicCAS(bits, old, __float_as_int(x));
        if (before == old) break;
        old = before;
    }
}

__global__ void cas_max(const float *X, float *largest, int n, int groups) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) raise_to(&largest[i % groups], X[i]);
}
