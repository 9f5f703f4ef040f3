// (batch, length, 3, heads, size) to three arrays (batch, heads, length, size).
__global__ void split_heads(const float *packed, float *Q, float *K, float *V, int batch, int length,
                            int heads, int size) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= batch * heads * length * size) return;
    const int s = i % size, t = i / size % length, h = i / (size * length) % heads;
    const int b = i / (size * length * heads);
    const float *from = packed + ((b * length + t) * 3 * heads + h) * size + s;
    Q[i] = __ldcs(from);
    K[i] = __ldcs(from + heads * size);
    V[i] = __ldcs(from + 2 * heads * size);
}
