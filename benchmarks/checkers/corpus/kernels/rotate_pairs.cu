// Rotary embedding, in place: pairs as float2, angles by position and pair.
__global__ void rotate_pairs(float2 *X, int length, int pairs) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= length * pairs) return;
    float sine, cosine;
    sincosf(i / pairs * exp2f(-float(i % pairs)), &sine, &cosine);
    const float2 x = X[i];
    X[i] = make_float2(x.x * cosine - x.y * sine, x.x * sine + x.y * cosine);
}
