// Y += a X, four floats at a time, and what is left one by one.
__global__ void axpy_vectors(float a, const float *X, float *Y, int n) {
    const int step = gridDim.x * blockDim.x, first = blockIdx.x * blockDim.x + threadIdx.x;
    const float4 *const X4 = reinterpret_cast<const float4 *>(X);
    float4 *const Y4 = reinterpret_cast<float4 *>(Y);
    for (int i = first; i < n / 4; i += step) {
        const float4 x = X4[i];
        float4 y = Y4[i];
        y.x += a * x.x;
        y.y += a * x.y;
        y.z += a * x.z;
        y.w += a * x.w;
        Y4[i] = y;
    }
    for (int i = n / 4 * 4 + first; i < n; i += step) Y[i] += a * X[i];
}
