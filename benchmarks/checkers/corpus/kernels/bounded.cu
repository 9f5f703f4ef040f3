// A polynomial of each number; the kernel promises that blocks have at most 256 threads.
__global__ void __launch_bounds__(256) bounded(const float *X, float *Y, int n) {
    float power[4];
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        power[0] = 1.0f;
        for (int k = 1; k < 4; ++k) power[k] = power[k - 1] * X[i];
        float sum = 0.0f;
        for (int k = 0; k < 4; ++k) sum += power[k] * (k + 1);
        Y[i] = sum;
    }
}
