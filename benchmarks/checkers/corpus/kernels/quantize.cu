// Floats to 8-bit integers, four to a word, with a scale per block of numbers.
__global__ void quantize(const float *X, const float *scales, unsigned *packed, int words, int length) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= words) return;
    const float scale = scales[i / length];
    unsigned word = 0;
    for (int k = 0; k < 4; ++k) {
        const float x = fminf(fmaxf(X[4 * i + k] * scale, 0.0f), 255.0f);
        word |= unsigned(x) << (8 * k);
    }
    packed[i] = word;
}
