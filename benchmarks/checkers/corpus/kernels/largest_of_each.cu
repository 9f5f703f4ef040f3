#define KEEP 4

// The largest four of each thread's elements, in a local array.
__global__ void largest_of_each(const int *X, int *largest, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    int best[KEEP];
    for (int k = 0; k < KEEP; ++k) best[k] = -1;
    for (int j = 0; j < n; ++j) {
        const int value = X[i * n + j];
        int k = KEEP - 1;
        if (value <= best[k]) continue;
        while (k > 0 && best[k - 1] < value) {
            best[k] = best[k - 1];
            --k;
        }
        best[k] = value;
    }
    for (int k = 0; k < KEEP; ++k) largest[i * KEEP + k] = best[k];
}
