// A search for a word.
__global__ void search(const char *text, int n, const char *word, int m, int *matches, int *count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > n - m) return;
    for (int j = 0; j < m; j++) if (text[i + j] != word[j]) return;
    matches[atomicAdd(count, 1)] = i;
}
