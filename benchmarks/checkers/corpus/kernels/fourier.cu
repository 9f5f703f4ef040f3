// Fast Fourier transform in shared memory: two complex numbers a thread, input in bit-reversed order.
__global__ void fourier(const float2 *X, float2 *Y, int bits) {
    __shared__ float2 s[512];
    const int t = threadIdx.x, n = 1 << bits;
    for (int k = t; k < n; k += blockDim.x) s[__brev(k) >> (32 - bits)] = X[blockIdx.x * n + k];
    for (int half = 1; half < n; half *= 2) {
        __syncthreads();
        const int k = t % half, at = 2 * (t - k) + k;
        float sine, cosine;
        sincospif(-float(k) / half, &sine, &cosine);
        const float2 a = s[at], b = s[at + half];
        const float re = b.x * cosine - b.y * sine, im = b.x * sine + b.y * cosine;
        s[at] = make_float2(a.x + re, a.y + im);
        s[at + half] = make_float2(a.x - re, a.y - im);
    }
    __syncthreads();
    for (int k = t; k < n; k += blockDim.x) Y[blockIdx.x * n + k] = s[k];
}
