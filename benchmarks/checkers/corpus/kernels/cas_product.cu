// The product of all numbers modulo a prime, by a loop of atomicCAS.
__global__ void cas_product(const unsigned *X, unsigned *product, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned old = *product, expected = old;
    for (;;) {
        old = atomicCAS(product, expected, expected * X[i] % 65521u);
        if (old == expected) break;
        expected = old;
    }
}
