// The last warp goes on alone, with barriers of its own.
__global__ void reduce_last_warp(const float *X, float *sums, int n) {
    __shared__ float s[256];
    const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t] = i < n ? X[i] : 0.0f;
    __syncthreads();
    for (int half = blockDim.x / 2; half >= 32; half /= 2) {
        if (t < half) s[t] += s[t + half];
        __syncthreads();
    }
    if (t < 32) {
        for (int half = 16; half > 0; half /= 2) {
            const float other = t < half ? s[t + half] : 0.0f;
            __syncwarp();  // read
            s[t] += other;
            __syncwarp();  // written
        }
        if (t == 0) sums[blockIdx.x] = s[0];
    }
}
