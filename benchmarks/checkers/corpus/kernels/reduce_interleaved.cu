// The same tree with growing strides and whole threads at the front.
__global__ void reduce_interleaved(const float *X, float *sums, int n) {
    __shared__ float s[256];
    const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t] = 0.0f;
    if (i < n) s[t] = X[i];
    for (int stride = 1; stride < blockDim.x; stride *= 2) {
        __syncthreads();
        const int at = 2 * stride * t;
        if (at < blockDim.x) s[at] += s[at + stride];
    }
    if (t == 0) sums[blockIdx.x] = s[0];
}
