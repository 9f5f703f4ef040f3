// Normalizes each channel of images (count, channels, pixels): a block a channel, two reductions.
__global__ void batch_norm(const float *X, float *Y, int count, int channels, int pixels) {
    __shared__ float sums[256], squares[256];
    const int t = threadIdx.x, values = count * pixels;
    float sum = 0, square = 0;
    for (int i = t; i < values; i += blockDim.x) {
        const float x = X[(i / pixels * channels + blockIdx.x) * pixels + i % pixels];
        sum += x;
        square += x * x;
    }
    sums[t] = sum;
    squares[t] = square;
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if (t < half) {
            sums[t] += sums[t + half];
            squares[t] += squares[t + half];
        }
    }
    __syncthreads();
    const float mean = sums[0] / values, scale = rsqrtf(squares[0] / values - mean * mean + 1e-5f);
    for (int i = t; i < values; i += blockDim.x) {
        const int at = (i / pixels * channels + blockIdx.x) * pixels + i % pixels;
        Y[at] = (X[at] - mean) * scale;
    }
}
