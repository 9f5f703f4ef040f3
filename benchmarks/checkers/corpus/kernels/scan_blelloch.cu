// Blelloch: up the tree and down again, two elements a thread.
__global__ void scan_blelloch(const int *X, int *Y) {
    extern __shared__ int tree[];
    const int t = threadIdx.x, n = 2 * blockDim.x, first = blockIdx.x * n;
    tree[2 * t] = X[first + 2 * t];
    tree[2 * t + 1] = X[first + 2 * t + 1];
    int offset = 1;
    for (int d = n / 2; d > 0; d /= 2) {
        __syncthreads();  // up
        if (t < d) tree[offset * (2 * t + 2) - 1] += tree[offset * (2 * t + 1) - 1];
        offset *= 2;
    }
    if (t == 0) tree[n - 1] = 0;
    for (int d = 1; d < n; d *= 2) {
        offset /= 2;
        __syncthreads();  // down
        if (t < d) {
            const int left = offset * (2 * t + 1) - 1, right = offset * (2 * t + 2) - 1;
            const int kept = tree[left];
            tree[left] = tree[right];
            tree[right] += kept;
        }
    }
    __syncthreads();
    Y[first + 2 * t] = tree[2 * t];
    Y[first + 2 * t + 1] = tree[2 * t + 1];
}
