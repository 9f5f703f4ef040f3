// Counts the digits of each number in a table of its own, and keeps the most frequent one.
__global__ void digits(const unsigned *X, int *most, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int counts[10] = {};
    for (unsigned x = X[i]; x; x /= 10) ++counts[x % 10];
    int best = 0;
    for (int digit = 1; digit < 10; ++digit) {
        if (counts[digit] > counts[best]) best = digit;
    }
    most[i] = best;
}
