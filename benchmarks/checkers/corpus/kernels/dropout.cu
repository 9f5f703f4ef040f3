// Drops elements by a hash of seed and index, and keeps the mask as bits, a word a warp.
__device__ unsigned hash(unsigned x) {
    x ^= x >> 16;
    x *= 0x7feb352dU;
    x ^= x >> 15;
    x *= 0x846ca68bU;
    return x ^ x >> 16;
}

__global__ void dropout(const float *X, float *Y, unsigned *mask, unsigned seed, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const bool keep = i < n && hash(i ^ seed) >> 31;
    const unsigned bits = __ballot_sync(~0u, keep);
    if (i < n) Y[i] = keep ? 2 * X[i] : 0.0f;
    if (threadIdx.x % 32 == 0 && i < n) mask[i / 32] = bits;
}
