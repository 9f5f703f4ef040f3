// Running sums along rows, a thread a row: one number enters the window and one leaves it.
__global__ void box_filter(const int *X, int *Y, int rows, int width, int radius) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    const int *in = X + row * width;
    int sum = 0;
    for (int k = 0; k < radius; ++k) sum += in[k];
    for (int x = 0; x < width; ++x) {
        if (x + radius < width) sum += in[x + radius];
        if (x - radius > 0) sum -= in[x - radius - 1];
        Y[row * width + x] = sum;
    }
}
