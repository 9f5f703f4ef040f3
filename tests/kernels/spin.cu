// Thread 0 waits for the last thread, which sets a flag after a fence.
__global__ void k(int *data, int *flag, int *Y, bool fence) {
    if (threadIdx.x == blockDim.x - 1) {
        data[0] = 7;
        if (fence) __threadfence();
        atomicExch(flag, 1);
    } else if (threadIdx.x == 0) {
        while (atomicAdd(flag, 0) == 0) {
        }
        if (fence) __threadfence();
        Y[0] = data[0];
    }
}
