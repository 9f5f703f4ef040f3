#include <cuda_fp16.h>

// The same in halves, two at a time.
__global__ void axpy_half2(float a, const half2 *X, half2 *Y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) Y[i] = __hfma2(__float2half2_rn(a), X[i], Y[i]);
}
