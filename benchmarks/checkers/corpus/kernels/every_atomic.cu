// Each integer atomic once, on counters that all threads share.
__global__ void every_atomic(const int *X, int *cells, unsigned *wrapped, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    atomicAdd(&cells[0], X[i]);
    atomicSub(&cells[1], X[i]);
    atomicMin(&cells[2], X[i]);
    atomicMax(&cells[3], X[i]);
    atomicAnd(&cells[4], X[i] | 16);
    atomicOr(&cells[5], X[i]);
    atomicXor(&cells[6], X[i]);
    atomicInc(&wrapped[0], 6);
    atomicDec(&wrapped[1], 6);
}
