// FNV checksums of strings of different length, one thread a string, byte by byte.
__global__ void checksums(const unsigned char *text, const int *starts, unsigned *sums, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned sum = 2166136261U;
    for (int k = starts[i]; k < starts[i + 1]; ++k) sum = (sum ^ text[k]) * 16777619U;
    sums[i] = sum;
}
