// The mean of each element and its two neighbors; the ends stay.
__global__ void stencil_1d(const float *X, float *Y, unsigned int n) {
    const unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    if (i == 0 || i == n - 1) {
        Y[i] = X[i];
    } else {
        Y[i] = (X[i - 1] + X[i] + X[i + 1]) * 0.25f;
    }
}
