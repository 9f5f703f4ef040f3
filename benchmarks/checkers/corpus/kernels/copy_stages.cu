// Each block walks over its tiles, and copies the next one while it adds up the one that is there.
#include <cuda_pipeline.h>

__global__ void copy_stages(const float *X, float *Y, int tiles) {
    __shared__ float stage[2][256];
    const int t = threadIdx.x;
    const float *mine = X + blockIdx.x * tiles * blockDim.x + t;
    __pipeline_memcpy_async(&stage[0][t], mine, sizeof(float));
    __pipeline_commit();
    float sum = 0.0f;
    for (int i = 0; i < tiles; ++i) {
        if (i + 1 < tiles) __pipeline_memcpy_async(&stage[(i + 1) % 2][t], mine + (i + 1) * blockDim.x, sizeof(float));
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();  // copied
        sum += stage[i % 2][blockDim.x - 1 - t] * (i + 1);
        __syncthreads();  // read
    }
    Y[blockIdx.x * blockDim.x + t] = sum;
}
