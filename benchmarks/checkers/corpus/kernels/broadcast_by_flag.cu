// Block 0 makes a value and raises a flag; the others wait for it.
__global__ void broadcast_by_flag(const int *X, int *message, volatile int *flag, int *Y) {
    const int t = threadIdx.x;
    if (blockIdx.x == 0) {
        message[t] = X[t] * X[t];
        __syncthreads();  // written by all
        if (t == 0) {
            __threadfence();  // before the flag
            *flag = 1;
        }
    } else {
        if (t == 0) {
            while (*flag == 0) {}
            __threadfence();
        }
        __syncthreads();
        Y[(blockIdx.x - 1) * blockDim.x + t] = message[t];
    }
}
