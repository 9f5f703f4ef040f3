// In the style of LeetCUDA and minimal flash attention: cp.async, float4 macros, half2, warp templates
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <vector>
#include <algorithm>
#define WARP_SIZE 32
#define FLOAT4(value) (reinterpret_cast<float4 *>(&(value))[0])
#define HALF2(value) (reinterpret_cast<half2 *>(&(value))[0])
#define LDST128BITS(value) (reinterpret_cast<float4 *>(&(value))[0])
#define CP_ASYNC_COMMIT_GROUP() asm volatile("cp.async.commit_group;\n" ::)
#define CP_ASYNC_WAIT_ALL() asm volatile("cp.async.wait_all;\n" ::)
#define CP_ASYNC_WAIT_GROUP(n) asm volatile("cp.async.wait_group %0;\n" ::"n"(n))
#define CP_ASYNC_CA(dst, src, bytes) asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], %2;\n" ::"r"(dst), "l"(src), "n"(bytes))
template <const int kWarpSize = WARP_SIZE>
__device__ __forceinline__ float warp_reduce_sum_f32(float val) {
#pragma unroll
  for (int mask = kWarpSize >> 1; mask >= 1; mask >>= 1) val += __shfl_xor_sync(0xffffffff, val, mask);
  return val;
}
template <const int BM = 32, const int BN = 32, const int BK = 16, const int TM = 4, const int TN = 4>
__global__ void sgemm_async(float *a, float *b, float *c, const int M, const int N, const int K) {
  __shared__ float s_a[2][BK][BM], s_b[2][BK][BN];
  const int bx = blockIdx.x, by = blockIdx.y, tx = threadIdx.x, ty = threadIdx.y, tid = ty * blockDim.x + tx;
  int load_a_m = tid / 2, load_a_k = (tid % 2) * 8, load_b_k = tid / 4, load_b_n = (tid % 4) * 8;
  float r_a[8], r_c[TM][TN] = {0.0f};
  auto load = [&](int stage, int bk) {
    uint32_t to = __cvta_generic_to_shared(&s_b[stage][load_b_k][load_b_n]);
    const float *from = &b[(bk * BK + load_b_k) * N + bx * BN + load_b_n];
    for (int i = 0; i < 8; i += 4) CP_ASYNC_CA(to + i * 4, from + i, 16);
    CP_ASYNC_COMMIT_GROUP();
    FLOAT4(r_a[0]) = FLOAT4(a[(by * BM + load_a_m) * K + bk * BK + load_a_k]);
    FLOAT4(r_a[4]) = FLOAT4(a[(by * BM + load_a_m) * K + bk * BK + load_a_k + 4]);
    for (int i = 0; i < 8; ++i) s_a[stage][load_a_k + i][load_a_m] = r_a[i];
  };
  load(0, 0);
  CP_ASYNC_WAIT_GROUP(0);
  __syncthreads();
  for (int bk = 1; bk <= K / BK; ++bk) {
    int cur = (bk - 1) & 1;
    if (bk < K / BK) load(bk & 1, bk);
#pragma unroll
    for (int k = 0; k < BK; ++k)
      for (int m = 0; m < TM; ++m)
        for (int n = 0; n < TN; ++n) r_c[m][n] = __fmaf_rn(s_a[cur][k][ty * TM + m], s_b[cur][k][tx * TN + n], r_c[m][n]);
    CP_ASYNC_WAIT_ALL();
    __syncthreads();
  }
  for (int m = 0; m < TM; ++m) FLOAT4(c[(by * BM + ty * TM + m) * N + bx * BN + tx * TN]) = FLOAT4(r_c[m][0]);
}
