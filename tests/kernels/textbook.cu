// Shared memory as textbooks declare it.
#include <iostream>
#include <chrono>
#include <memory>  // in it, as in <iostream> of g++ 13, stands __attribute__((__noinline__))
#include <random>
namespace sums { static __shared__ float one; }  // {
__shared__ float mine;
static __device__ float ours;
extern __shared__ float dynamic[];
#define M 8
template <typename T>
__device__ __noinline__ T turned(T value) {
    static __shared__ T s[4];
    s[threadIdx.x] = value;
    __syncthreads();
    return s[3 - threadIdx.x];
}
__global__ void k(float X[M], float Y[M], bool all) {
    __shared__ static float s[4];
    if (threadIdx.x == 0) {
        mine = blockIdx.x;
        sums::one = 1;
    }
    __syncthreads();
    s[threadIdx.x] = mine + sums::one;
    Y[blockIdx.x * 4 + threadIdx.x] = turned(X[threadIdx.x]) + s[threadIdx.x];
    if (all && threadIdx.x == 0) Y[blockIdx.x * 4] = ours++;
}
__global__ void forgetful(float *X) { dynamic[threadIdx.x] = X[threadIdx.x]; }
__global__ void viewed(const unsigned *X, unsigned *Y) {
    const dim3 three(*reinterpret_cast<const uint3 *>(&X[3 * threadIdx.x]));
    Y[threadIdx.x] = three.z;
}
__global__ void unnamed(float *, float *) {}
