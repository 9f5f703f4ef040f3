// Sums over half-warps, and over quarters of them; the upper half of each warp does something else.
__global__ void half_warp(const int *X, int *sums, int *quarters, int *others) {
    const int t = blockIdx.x * blockDim.x + threadIdx.x, lane = t % 32;
    int value = X[t];
    if (lane < 16) {
        int quarter = value;
        for (int d = 2; d; d /= 2) quarter += __shfl_down_sync(0xffff, quarter, d, 4);
        if (lane % 4 == 0) quarters[t / 32 * 4 + lane / 4] = quarter;
        for (int d = 8; d; d /= 2) value += __shfl_xor_sync(0xffff, value, d);
        if (lane == 0) sums[t / 32] = value;
    } else {
        others[t / 32 * 16 + lane - 16] = -value;
    }
}
