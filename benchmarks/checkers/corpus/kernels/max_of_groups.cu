// The largest float by compare and swap of its bits.
__device__ void max_by_cas(float *address, float value) {
    int *const bits = reinterpret_cast<int *>(address);
    int old = *bits;
    while (__int_as_float(old) < value) {
        const int found = atomicCAS(bits, old, __float_as_int(value));
        if (found == old) break;
        old = found;
    }
}

__global__ void max_of_groups(const float *X, const int *groups, float *largest, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) max_by_cas(&largest[groups[i]], X[i]);
}
