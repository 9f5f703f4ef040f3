// A bitonic network for each block, in shared memory.
__global__ void sort_bitonic(int *keys) {
    __shared__ int s[256];
    const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t] = keys[i];
    __syncthreads();
    for (int size = 2; size <= blockDim.x; size *= 2) {
        for (int stride = size / 2; stride > 0; stride /= 2) {
            const int other = t ^ stride;
            if (other > t) {
                const bool up = (t & size) == 0;
                if ((s[t] > s[other]) == up) {
                    const int kept = s[t];
                    s[t] = s[other];
                    s[other] = kept;
                }
            }
            __syncthreads();  // exchanged
        }
    }
    keys[i] = s[t];
}
