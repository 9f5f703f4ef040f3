// Steps until a point of a Julia set escapes, in fixed-point integers; lanes leave the loop apart.
__global__ void fixed_julia(unsigned char *steps, int width, int height) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    int re = (3 * x * 256) / width - 384, im = (3 * y * 256) / height - 384, step = 0;
    while (step < 50 && re * re + im * im < (4 << 16)) {
        const int next = ((re * re - im * im) >> 8) - 200;
        im = ((2 * re * im) >> 8) + 40;
        re = next;
        ++step;
    }
    steps[y * width + x] = step;
}
