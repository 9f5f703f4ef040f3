// The first thread of a block leaves a number, and the last one waits for it by a volatile flag.
__global__ void warp_flags(const int *X, int *Y) {
    __shared__ volatile int flag;
    __shared__ int number;
    const int t = threadIdx.x;
    if (t == 0) flag = 0;
    __syncthreads();
    if (t == 0) {
        number = X[blockIdx.x];
        __threadfence_block();
        flag = 1;
    }
    if (t == blockDim.x - 1) {
        while (flag == 0) {}
        __threadfence_block();
        Y[blockIdx.x] = 2 * number;
    }
}
