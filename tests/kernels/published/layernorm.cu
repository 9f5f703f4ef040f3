// In the style of llm.c: layernorm and fused residual with Packed128
#include <cuda_bf16.h>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <assert.h>
#include <float.h>
typedef __nv_bfloat16 floatX;
template <class ElementType> struct alignas(16) Packed128 {
  Packed128() = default;
  __device__ explicit Packed128(int4 bits) { static_assert(sizeof(bits) == sizeof(payload), "Size mismatch."); memcpy(&payload, &bits, sizeof(bits)); }
  __device__ static Packed128 constant(ElementType value) { Packed128 result; for (int k = 0; k < size; ++k) { result.payload[k] = value; } return result; }
  __device__ static Packed128 zeros() { return constant(0.f); }
  __device__ ElementType &operator[](int index) { return payload[index]; }
  __device__ const ElementType &operator[](int index) const { return payload[index]; }
  __device__ int4 get_bits() const { int4 bits; static_assert(sizeof(bits) == sizeof(payload), "Size mismatch."); memcpy(&bits, &payload, sizeof(bits)); return bits; }
  static constexpr const size_t size = sizeof(int4) / sizeof(ElementType);
  ElementType payload[size];
};
template <class ElementType> __device__ Packed128<ElementType> load128(const ElementType *address) { return Packed128<ElementType>{*reinterpret_cast<const int4 *>(address)}; }
template <class ElementType> __device__ Packed128<ElementType> load128cs(const ElementType *address) { return Packed128<ElementType>{__ldcs(reinterpret_cast<const int4 *>(address))}; }
template <class ElementType> __device__ void store128(ElementType *target, Packed128<ElementType> value) { *reinterpret_cast<int4 *>(target) = value.get_bits(); }
template <class ElementType> __device__ void store128cs(ElementType *target, Packed128<ElementType> value) { __stcs(reinterpret_cast<int4 *>(target), value.get_bits()); }
typedef Packed128<floatX> x128;
__device__ inline float warpReduceSum(float val) { for (int offset = 16; offset > 0; offset /= 2) val += __shfl_xor_sync(0xFFFFFFFF, val, offset); return val; }
__global__ void fused_residual_forward_kernel5(floatX *residual, floatX *normed, float *mean, float *rstd, const floatX *inp1, const floatX *inp2, const floatX *weight, const floatX *bias, int N, int C) {
  constexpr const int WarpSize = 32;
  assert(blockDim.x == WarpSize);
  extern __shared__ char *params[];
  x128 *s_weight = reinterpret_cast<x128 *>(params);
  x128 *s_bias = reinterpret_cast<x128 *>(params) + (C / x128::size);
  x128 *s_res = reinterpret_cast<x128 *>(params) + ((2 + threadIdx.y) * C / x128::size);
  int sidx = (threadIdx.x + WarpSize * threadIdx.y) * x128::size;
  for (int i = sidx; i < C; i += blockDim.y * WarpSize * x128::size) {
    s_weight[i / x128::size] = load128(weight + i);
    s_bias[i / x128::size] = load128(bias + i);
  }
  __syncthreads();
  int idx = blockIdx.x * blockDim.y + threadIdx.y;
  if (idx > N - 1) return;
  residual += C * idx; normed += C * idx; inp1 += C * idx; inp2 += C * idx;
  const float eps = 1e-5f;
  float sum = 0.0f;
  for (int c = threadIdx.x * x128::size; c < C; c += WarpSize * x128::size) {
    const x128 in1 = load128cs(inp1 + c);
    const x128 in2 = load128cs(inp2 + c);
    x128 out;
    for (int k = 0; k < x128::size; ++k) { out[k] = (float)in1[k] + (float)in2[k]; sum += (float)out[k]; }
    store128cs(residual + c, out);
    s_res[c / x128::size] = out;
  }
  sum = warpReduceSum(sum);
  float m = sum / C, v = 0.f;
  for (int c = threadIdx.x * x128::size; c < C; c += WarpSize * x128::size) {
    const x128 res = s_res[c / x128::size];
    for (int k = 0; k < x128::size; ++k) v += ((float)res[k] - m) * ((float)res[k] - m);
  }
  v = warpReduceSum(v) / C;
  float s = rsqrtf(v + eps);
  for (int c = threadIdx.x * x128::size; c < C; c += WarpSize * x128::size) {
    const x128 res = s_res[c / x128::size], w = s_weight[c / x128::size], b = s_bias[c / x128::size];
    x128 out;
    for (int k = 0; k < x128::size; ++k) { float n = s * ((float)res[k] - m); float o = n * (float)w[k] + (float)b[k]; out[k] = o; }
    store128cs(normed + c, out);
  }
  if (threadIdx.x == 0) { mean[idx] = m; rstd[idx] = s; }
}
