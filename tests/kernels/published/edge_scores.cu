// In the style of GNN repositories: edge softmax with float atomics by CAS, and an overloaded helper
#include <cuda_fp16.h>
static __device__ __forceinline__ float atomicMax(float *address, float val) {
  int *address_as_i = (int *)address;
  int old = *address_as_i, assumed;
  do { assumed = old; old = ::atomicCAS(address_as_i, assumed, __float_as_int(::fmaxf(val, __int_as_float(assumed)))); } while (assumed != old);
  return __int_as_float(old);
}
union Pack { half2 h[2]; uint2 u; float2 f; };
__device__ float dot(const half *a, const half *b, int d) {
  float s = 0;
  for (int i = 0; i < d; i += 4) {
    Pack x, y;
    x.u = *reinterpret_cast<const uint2 *>(a + i);
    y.u = *reinterpret_cast<const uint2 *>(b + i);
    for (int j = 0; j < 2; ++j) { float2 p = __half22float2(__hmul2(x.h[j], y.h[j])); s += p.x + p.y; }
  }
  return s;
}
__global__ void edge_scores(const int *src, const int *dst, const half *Q, const half *K, float *score, float *top, int E, int d) {
  for (int e = blockIdx.x * blockDim.x + threadIdx.x; e < E; e += gridDim.x * blockDim.x) {
    const float s = dot(Q + dst[e] * d, K + src[e] * d, d);
    score[e] = s;
    atomicMax(top + dst[e], s);
  }
}
