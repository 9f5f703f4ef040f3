// Kernels without a mistake, each of (const float *X, float *Y, int n).
#include "common.cuh"

__global__ void guards(const float *X, float *Y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) Y[i] = X[i] + 1.0f;
}

__global__ void barriers(const float *X, float *Y, int n) {
    __shared__ float tile[64];
    tile[threadIdx.x] = X[threadIdx.x];
    __syncthreads();
    Y[threadIdx.x] = tile[63 - threadIdx.x];
}

// g++ once put a guard before such an array, where one thread waited for another for ever.
__global__ void shared_vectors(const float *X, float *Y, int n) {
    __shared__ int4 tile[37];
    __shared__ float2 pairs[64];
    int2 *memory = reinterpret_cast<int2 *>(tile);
    memory[threadIdx.x] = make_int2(threadIdx.x, 1);
    pairs[threadIdx.x] = make_float2(X[threadIdx.x], 2.0f);
    __syncthreads();
    const int2 other = memory[63 - threadIdx.x];
    Y[threadIdx.x] = pairs[other.x].x + other.y * pairs[other.x].y;
}

__global__ void dynamic_shared(const float *X, float *Y, int n) {
    DYNAMIC_SHARED(float, sums);
    sums[threadIdx.x] = X[threadIdx.x];
    __syncthreads();
    for (int half = 32; half > 0; half /= 2) {
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) Y[0] = sums[0];
}

__global__ void shuffles(const float *X, float *Y, int n) {
    const unsigned all = 0xffffffffu;
    const int lane = threadIdx.x % 32;
    float sum = X[threadIdx.x];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(all, sum, step);
    const float first = __shfl_sync(all, X[threadIdx.x], 3);
    const float up = __shfl_up_sync(all, X[threadIdx.x], 1);
    const float down = __shfl_down_sync(all, X[threadIdx.x], 2, 8);
    const unsigned odd = __ballot_sync(all, lane % 2);
    const int any = __any_sync(all, lane == 7), every = __all_sync(all, lane < 31);
    Y[threadIdx.x] = sum + 1000.0f * first + 100000.0f * (up - down) + any - every + __popc(odd);
}

__global__ void part_of_a_warp(const float *X, float *Y, int n) {
    if (threadIdx.x < 8) Y[threadIdx.x] = __shfl_sync(0xff, X[threadIdx.x], 7 - threadIdx.x);
    else Y[threadIdx.x] = 0.0f;
}
