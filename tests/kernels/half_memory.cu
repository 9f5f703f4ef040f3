// Numbers of 16 bits in all kinds of memory.
extern "C" __global__ void k(T *X, T2 *pairs, T *sum, T2 *sums, int *whole) {
    __shared__ T shared[64];
    __shared__ T2 both[32];
    const int t = threadIdx.x;
    shared[t] = X[t];
    shared[t + 32] = X[t + 32] * T(2);
    both[t] = pairs[t];
    __syncthreads();
    T v = shared[31 - t];
    v += T(1.0f);
    ++v;
    pairs[t] = both[31 - t] + __floats2NAME2_rn(v, shared[63 - t]);
    atomicAdd(sum, T(1));
    atomicAdd(sums, __float2NAME2_rn(2.0f));
    whole[t] = __NAME2int_rd(__shfl_down_sync(0xffffffffu, v, 1) * T(0.5f)) + int(X[t]);
    const float2 wide = __NAME22float2(__float22NAME2_rn(make_float2(1.5f, 2.5f)));
    if (wide.x != 1.5f || wide.y != 2.5f) whole[t] = -1;
    if (reinterpret_cast<T *>(pairs)[2 * t + 1] != pairs[t].y) whole[t] = -2;
    if (sizeof(T2) != 4 || alignof(T2) != 4 || sizeof(T) != 2) whole[t] = -3;
    X[t] = __ldg(&X[t + 32]);
}
