// Six neighbors in three dimensions, with blocks and a grid of three.
__global__ void stencil_3d(const float *X, float *Y, int nx, int ny, int nz) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    const int z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x >= nx || y >= ny || z >= nz) return;
    const int at = (z * ny + y) * nx + x;
    float sum = -6.0f * X[at];
    if (x > 0) sum += X[at - 1];
    if (x < nx - 1) sum += X[at + 1];
    if (y > 0) sum += X[at - nx];
    if (y < ny - 1) sum += X[at + nx];
    if (z > 0) sum += X[at - nx * ny];
    if (z < nz - 1) sum += X[at + nx * ny];
    Y[at] = sum;
}
