// y = A x: a warp a row, four floats at a time.
__global__ void matrix_vector(const float *A, const float *x, float *y, int rows, int columns) {
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int j = 4 * lane; j < columns; j += 128) {
        const float4 a = *reinterpret_cast<const float4 *>(A + row * columns + j);
        const float4 b = *reinterpret_cast<const float4 *>(x + j);
        sum += a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
    }
    for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffff, sum, d);
    if (lane == 0) y[row] = sum;
}
