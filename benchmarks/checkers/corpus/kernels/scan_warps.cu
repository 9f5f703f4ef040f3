// Lanes hand sums up, then warps' totals are scanned by the first warp.
__global__ void scan_warps(const int *X, int *Y) {
    __shared__ int totals[32];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    int sum = X[i];
    for (int d = 1; d < 32; d <<= 1) {
        const int below = __shfl_up_sync(0xffffffff, sum, d);
        if (lane >= d) sum += below;
    }
    if (lane == 31) totals[warp] = sum;
    __syncthreads();  // totals
    if (warp == 0) {
        int total = lane < warps ? totals[lane] : 0;
        for (int d = 1; d < 32; d <<= 1) {
            const int below = __shfl_up_sync(0xffffffff, total, d);
            if (lane >= d) total += below;
        }
        if (lane < warps) totals[lane] = total;
    }
    __syncthreads();  // scanned
    Y[i] = sum + (warp > 0 ? totals[warp - 1] : 0);
}
