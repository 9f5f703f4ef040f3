// Thomas's algorithm, a thread a system: equations of neighboring systems lie side by side.
__global__ void tridiagonal(const float *lower, const float *diagonal, const float *upper, float *x,
                            float *scratch, int systems, int n) {
    const int s = blockIdx.x * blockDim.x + threadIdx.x;
    if (s >= systems) return;
    float slope = 0, value = 0;
    for (int i = 0; i < n; ++i) {
        const int at = i * systems + s;
        const float pivot = diagonal[at] - lower[at] * slope;
        value = (x[at] - lower[at] * value) / pivot;
        slope = upper[at] / pivot;
        x[at] = value;
        scratch[at] = slope;
    }
    for (int i = n - 2; i >= 0; --i) x[i * systems + s] -= scratch[i * systems + s] * x[(i + 1) * systems + s];
}
