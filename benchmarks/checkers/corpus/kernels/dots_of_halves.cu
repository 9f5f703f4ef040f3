// Dot products of rows of half pairs with fused multiply-adds, and their largest one.
#include <cuda_fp16.h>

__global__ void dots_of_halves(const half2 *A, const half2 *B, half *dots, float *largest, int rows,
                               int pairs) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    float dot = -1e30f;
    if (row < rows) {
        half2 sum = __float2half2_rn(0.0f);
        for (int k = 0; k < pairs; ++k) sum = __hfma2(A[row * pairs + k], B[row * pairs + k], sum);
        const half total = __hadd(__low2half(sum), __high2half(sum));
        dots[row] = total;
        dot = __half2float(total);
    }
    for (int d = 16; d; d /= 2) dot = fmaxf(dot, __shfl_down_sync(~0u, dot, d));
    if (threadIdx.x % 32 == 0) largest[(blockIdx.x * blockDim.x + threadIdx.x) / 32] = dot;
}
