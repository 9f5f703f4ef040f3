// One element a thread.
__global__ void transpose_naive(const float *A, float *B, int rows, int columns) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < rows && column < columns) B[column * rows + row] = A[row * columns + column];
}
