// The sum of each block's elements, as a tree in shared memory.
__global__ void reduce_tree(const float *X, float *sums, int n) {
    __shared__ float s[256];
    const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t] = i < n ? X[i] : 0.0f;
    __syncthreads();  // loaded
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (t < half) s[t] += s[t + half];
        __syncthreads();  // added
    }
    if (t == 0) sums[blockIdx.x] = s[0];
}
