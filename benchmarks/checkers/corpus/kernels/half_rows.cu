// Dot products of rows in 16-bit floats, two at a time; `low` gets the low halves of the products.
#include <cuda_fp16.h>

__global__ void half_rows(const half2 *A, const half2 *B, float *dots, half *low, int rows, int pairs) {
    __shared__ half2 last[256];
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    half2 sum = __float2half2_rn(0.0f);
    if (row < rows) {
        for (int k = 0; k < pairs; ++k) sum = __hfma2(A[row * pairs + k], B[row * pairs + k], sum);
        dots[row] = __low2float(sum) + __high2float(sum);
    }
    last[threadIdx.x] = sum;
    __syncthreads();
    if (row < rows) low[row] = last[threadIdx.x ^ 1].x;
}
