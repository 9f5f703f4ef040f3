// Hillis and Steele: two rows of shared memory take turns.
__global__ void scan_hillis_steele(const int *X, int *Y) {
    __shared__ int s[2][256];
    const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    int now = 0;
    s[now][t] = X[i];
    __syncthreads();  // loaded
    for (int distance = 1; distance < blockDim.x; distance *= 2) {
        const int next = 1 - now;
        s[next][t] = s[now][t] + (t >= distance ? s[now][t - distance] : 0);
        now = next;
        __syncthreads();  // added
    }
    Y[i] = s[now][t];
}
