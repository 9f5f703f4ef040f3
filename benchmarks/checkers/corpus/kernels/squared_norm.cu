// Sum of squares in double precision: warps by shuffles, one atomic addition a warp.
__global__ void squared_norm(const float *X, double *sum, int n) {
    double mine = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        mine += double(X[i]) * X[i];
    }
    for (int d = 16; d; d /= 2) mine += __shfl_down_sync(0xffffffff, mine, d);
    if (threadIdx.x % 32 == 0) atomicAdd(sum, mine);
}
