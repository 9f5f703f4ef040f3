// In the style of llm.c: fused classifier with online softmax
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#define WARP_SIZE 32U
__device__ inline float warpReduceMax(float val) { for (int offset = 16; offset > 0; offset /= 2) val = fmaxf(val, __shfl_xor_sync(0xFFFFFFFF, val, offset)); return val; }
__device__ inline float warpReduceSum(float val) { for (int offset = 16; offset > 0; offset /= 2) val += __shfl_xor_sync(0xFFFFFFFF, val, offset); return val; }
using reduction_func_t = float (*)(float);
template <reduction_func_t warp_reduction>
__device__ inline float blockReduce(float val, bool final_sync = false, float out_of_bounds = 0.0f) {
  __shared__ float shared_val[WARP_SIZE];
  const int lane_id = threadIdx.x % WARP_SIZE, warp_id = threadIdx.x / WARP_SIZE, num_warps = blockDim.x / WARP_SIZE;
  float warp_val = warp_reduction(val);
  if (lane_id == 0) { shared_val[warp_id] = warp_val; }
  __syncthreads();
  warp_val = (lane_id < num_warps) ? shared_val[lane_id] : out_of_bounds;
  float block_val = warp_reduction(warp_val);
  if (final_sync) { __syncthreads(); }
  return block_val;
}
struct SoftmaxParams { float Scale; float Offset; };
__device__ SoftmaxParams prepare_softmax_blockwide(int64_t idx, const float *inp, int V, int P) {
  const float *x = inp + idx * P;
  float thread_maxval = -INFINITY, thread_sumval = 0.0f;
  for (int i = threadIdx.x; i < V; i += blockDim.x) {
    float v = x[i], old_maxval = thread_maxval;
    thread_maxval = fmaxf(thread_maxval, v);
    thread_sumval *= expf(old_maxval - thread_maxval);
    thread_sumval += expf(v - thread_maxval);
  }
  float block_maxval = blockReduce<warpReduceMax>(thread_maxval, false, -INFINITY);
  thread_sumval *= expf(thread_maxval - block_maxval);
  float block_sumval = blockReduce<warpReduceSum>(thread_sumval);
  return SoftmaxParams{1.f / block_sumval, block_maxval};
}
template <bool WriteDLogits = true, bool WriteProbs = false>
__global__ void __launch_bounds__(1024, 1) fused_classifier_kernel5(float *logits, float *losses, float *probs, const float dloss, const int *targets, int B, int T, int V, int P, std::bool_constant<WriteDLogits> = {}) {
  int64_t idx = gridDim.x - (blockIdx.x + 1);
  int ix = targets[idx];
  SoftmaxParams sp = prepare_softmax_blockwide(idx, logits, V, P);
  if (threadIdx.x == 0) { float prob = expf(logits[idx * P + ix] - sp.Offset) * sp.Scale; losses[idx] -= logf(prob); }
  if constexpr (!WriteDLogits) return;
  __syncthreads();
  for (int i = threadIdx.x; i < V; i += blockDim.x) {
    float prob = expf(__ldcs(&logits[idx * P + i]) - sp.Offset) * sp.Scale;
    float indicator = (i == ix) ? 1.0f : 0.0f;
    __stcs(&logits[idx * P + i], (prob - indicator) * dloss);
    if (WriteProbs) probs[idx * P + i] = prob;
  }
}
