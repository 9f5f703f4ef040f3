// A filter of five taps in constant memory, with zeros around the signal.
__constant__ float weights[5] = {1, 2, 4, 2, 1};

__global__ void taps(const float *X, float *Y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0.0f;
    for (int k = 0; k < 5; ++k) {
        const int at = i + k - 2;
        if (at >= 0 && at < n) sum += weights[k] * X[at];
    }
    Y[i] = sum;
}
