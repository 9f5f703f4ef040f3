// Two steps of Jacobi's iteration in one block, between two arrays.
__global__ void stencil_2d(float *now, float *next, int n, int steps) {
    for (int step = 0; step < steps; ++step) {
        for (int i = threadIdx.x; i < (n - 2) * (n - 2); i += blockDim.x) {
            const int at = (i / (n - 2) + 1) * n + i % (n - 2) + 1;
            next[at] = (now[at - 1] + now[at + 1] + now[at - n] + now[at + n]) * 0.25f;
        }
        __syncthreads();
        float *const other = now;
        now = next;
        next = other;
    }
}
