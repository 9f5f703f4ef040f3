// Dot products of many pairs of vectors: partial sums in a table that does not depend on the block.
#define SUMS 128

__global__ void scalar_products(const float *A, const float *B, float *C, int vectors, int length) {
    __shared__ float sums[SUMS];
    for (int v = blockIdx.x; v < vectors; v += gridDim.x) {
        for (int s = threadIdx.x; s < SUMS; s += blockDim.x) {
            float sum = 0;
            for (int i = s; i < length; i += SUMS) sum += A[v * length + i] * B[v * length + i];
            sums[s] = sum;
        }
        for (int stride = SUMS / 2; stride > 0; stride /= 2) {
            __syncthreads();
            for (int s = threadIdx.x; s < stride; s += blockDim.x) sums[s] += sums[s + stride];
        }
        if (threadIdx.x == 0) C[v] = sums[0];
        __syncthreads();
    }
}
