// Levenshtein's distance: a diagonal of the table a step, three diagonals in shared memory.
__global__ void edit_distance(const char *first, const char *second, int *distances, int n) {
    __shared__ int diagonals[3][257];
    const char *a = first + blockIdx.x * n, *b = second + blockIdx.x * n;
    for (int d = 0; d <= 2 * n; ++d) {
        int *now = diagonals[d % 3], *last = diagonals[(d + 2) % 3], *before = diagonals[(d + 1) % 3];
        for (int i = threadIdx.x; i <= n; i += blockDim.x) {
            const int j = d - i;
            if (j < 0 || j > n) continue;
            if (i == 0 || j == 0) now[i] = d;
            else now[i] = min(min(last[i - 1], last[i]) + 1, before[i - 1] + (a[i - 1] != b[j - 1]));
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) distances[blockIdx.x] = diagonals[2 * n % 3][n];
}
