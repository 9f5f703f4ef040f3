// Forward and backward pass of GELU in its form with tanh, with a grid-stride loop.
__device__ float inner(float x) {
    return 0.7978845608f * (x + 0.044715f * x * x * x);
}

__global__ void gelu(const float *X, const float *dY, float *Y, float *dX, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const float x = X[i], t = tanhf(inner(x));
        Y[i] = 0.5f * x * (1 + t);
        const float slope = 0.7978845608f * (1 + 3 * 0.044715f * x * x);
        dX[i] = dY[i] * (0.5f * (1 + t) + 0.5f * x * (1 - t * t) * slope);
    }
}
