// Softmax of the lower triangle of a square matrix: maximum and sum in one pass, a warp a row.
__global__ void softmax_online(const float *X, float *Y, int n) {
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= n) return;
    float most = -1e30f, sum = 0;
    for (int k = lane; k <= row; k += 32) {
        const float x = X[row * n + k], before = most;
        most = fmaxf(most, x);
        sum = sum * expf(before - most) + expf(x - most);
    }
    for (int d = 16; d; d /= 2) {
        const float other = __shfl_xor_sync(~0u, most, d), other_sum = __shfl_xor_sync(~0u, sum, d);
        const float larger = fmaxf(most, other);
        sum = sum * expf(most - larger) + other_sum * expf(other - larger);
        most = larger;
    }
    for (int k = lane; k < n; k += 32) Y[row * n + k] = k <= row ? expf(X[row * n + k] - most) / sum : 0;
}
