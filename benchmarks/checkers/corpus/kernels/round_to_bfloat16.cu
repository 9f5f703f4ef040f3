// Rounds to bfloat16 and back, and adds pairs in bfloat16.
#include <cuda_bf16.h>

__global__ void round_to_bfloat16(const float *X, float *rounded, float *sums, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const __nv_bfloat16 low = __float2bfloat16(X[2 * i]), high = __float2bfloat16(X[2 * i + 1]);
    rounded[2 * i] = __bfloat162float(low);
    rounded[2 * i + 1] = __bfloat162float(high);
    sums[i] = __bfloat162float(__hadd(low, high));
}
