// Product of 8-bit matrices: four products an instruction, both operands by rows of words.
__global__ void product_int8(const int *A, const int *B, int *C, int rows, int columns, int words) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= rows || column >= columns) return;
    int sum = 0;
    for (int k = 0; k < words; ++k) sum = __dp4a(A[row * words + k], B[column * words + k], sum);
    C[row * columns + column] = sum;
}
