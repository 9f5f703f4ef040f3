// A row a block: its largest element, then the sum of the exponentials.
__global__ void softmax(const float *X, float *Y, int width) {
    __shared__ float s[256];
    const int t = threadIdx.x;
    const float *const row = X + blockIdx.x * width;
    float largest = -1e30f;
    for (int j = t; j < width; j += blockDim.x) largest = fmaxf(largest, row[j]);
    s[t] = largest;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (t < half) s[t] = fmaxf(s[t], s[t + half]);
        __syncthreads();
    }
    largest = s[0];
    __syncthreads();  // read
    float sum = 0.0f;
    for (int j = t; j < width; j += blockDim.x) sum += expf(row[j] - largest);
    s[t] = sum;
    __syncthreads();  // summed
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (t < half) s[t] += s[t + half];
        __syncthreads();
    }
    for (int j = t; j < width; j += blockDim.x) {
        Y[blockIdx.x * width + j] = expf(row[j] - largest) / s[0];
    }
}
