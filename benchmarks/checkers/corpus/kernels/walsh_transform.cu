// Fast Walsh-Hadamard transform of two numbers a thread, in shared memory.
__global__ void walsh_transform(int *X) {
    extern __shared__ int s[];
    const int t = threadIdx.x, n = 2 * blockDim.x;
    int *row = X + blockIdx.x * n;
    s[t] = row[t];
    s[t + blockDim.x] = row[t + blockDim.x];
    for (int stride = blockDim.x; stride > 0; stride /= 2) {
        __syncthreads();
        const int at = 2 * t - (t & (stride - 1)), a = s[at], b = s[at + stride];
        s[at] = a + b;
        s[at + stride] = a - b;
    }
    __syncthreads();
    row[t] = s[t];
    row[t + blockDim.x] = s[t + blockDim.x];
}
