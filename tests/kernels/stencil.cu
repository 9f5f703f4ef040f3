// A stencil with constants, and a variable of the device.
#define RADIUS 2
#define BLOCK_SIZE 64
__constant__ float coefficients[2 * RADIUS + 1];
__device__ int done;
__global__ void stencil(const float *in, float *out) {
    __shared__ float temp[BLOCK_SIZE + 2 * RADIUS];
    int g = threadIdx.x + blockIdx.x * blockDim.x;
    int l = threadIdx.x + RADIUS;
    temp[l] = in[g + RADIUS];
    if (threadIdx.x < RADIUS) {
        temp[l - RADIUS] = in[g];
        temp[l + BLOCK_SIZE] = in[g + RADIUS + BLOCK_SIZE];
    }
    __syncthreads();
    float result = 0;
    for (int offset = -RADIUS; offset <= RADIUS; offset++)
        result += coefficients[offset + RADIUS] * temp[l + offset];
    out[g] = result;
    atomicAdd(&done, 1);
}
