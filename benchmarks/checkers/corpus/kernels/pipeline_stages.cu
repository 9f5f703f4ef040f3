// Two stages of asynchronous copies by a pipeline of each thread; threads read what others copied.
#include <cuda/pipeline>

__global__ void pipeline_stages(const float *X, float *Y, int tiles) {
    __shared__ float stages[2][256];
    const int t = threadIdx.x, size = blockDim.x;
    const float *from = X + blockIdx.x * tiles * size;
    auto pipeline = cuda::make_pipeline();
    pipeline.producer_acquire();
    cuda::memcpy_async(&stages[0][t], from + t, sizeof(float), pipeline);
    pipeline.producer_commit();
    float sum = 0;
    for (int i = 0; i < tiles; ++i) {
        pipeline.producer_acquire();
        if (i + 1 < tiles) {
            cuda::memcpy_async(&stages[(i + 1) % 2][t], from + (i + 1) * size + t, sizeof(float), pipeline);
        }
        pipeline.producer_commit();
        cuda::pipeline_consumer_wait_prior<1>(pipeline);
        __syncthreads();
        sum += stages[i % 2][size - 1 - t];
        __syncthreads();
        pipeline.consumer_release();
    }
    Y[blockIdx.x * size + t] = sum;
}
