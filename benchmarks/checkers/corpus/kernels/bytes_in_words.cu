// Arithmetic of four bytes in a word: saturating sums, absolute differences, and a rotation of bits.
__global__ void bytes_in_words(const unsigned *A, const unsigned *B, unsigned *sums, unsigned *distances,
                               unsigned *rotated, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    sums[i] = __vaddus4(A[i], B[i]);
    distances[i] = __vsadu4(A[i], B[i]);
    rotated[i] = __funnelshift_l(A[i], A[i], B[i]);
}
