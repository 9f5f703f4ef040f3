// Data behind flags.
__global__ void k(volatile int *data, volatile int *flags, int *Y, int fence) {
    if (threadIdx.x) return;
    const int block = blockIdx.x;
    if (block == 0) {
        data[0] = 7;
        if (fence) __threadfence();
        flags[0] = 1;
        flags[1] = 1;
    } else {
        while (flags[0] == 0) {}
        while (flags[1] == 0) {}
        if (fence < 2) __threadfence();
        Y[0] = data[0];
    }
}
