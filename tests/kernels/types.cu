// Every kind of parameter.
#ifndef LENGTH
#define LENGTH 1
#endif
struct Three { float x, y, z; };
struct Pair { double value; int key; };
__global__ void k(float *Y, const float *X, const int *n, const long long *wide,
                  const float4 *vectors, Pair *pairs, unsigned char small, float scale,
                  double exact, bool flag, const void *any) {
    Y[0] = scale * X[0] + n[0] + wide[0] + small + flag + exact;
    Y[1] = vectors[1].w;
    if (any == nullptr) Y[2] = 7;
    pairs[0].key = 3;
}
__global__ void grid(int *Y, int stride) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    const int z = blockIdx.z * blockDim.z + threadIdx.z;
    Y[(z * gridDim.y * blockDim.y + y) * stride + x] = 100 * z + 10 * y + x;
}
template <typename T, int N>
__global__ void __launch_bounds__(64) filled(T *Y /* out, see (1) */, T value = T(3)) {
    extern __shared__ T room[];
    room[threadIdx.x] = value;
    __syncthreads();
    Y[threadIdx.x] = room[N - 1 - threadIdx.x];
}
__global__ void copied(Three *Y, const Three *X) { Y[threadIdx.x] = X[threadIdx.x]; }
__global__ void printing(int *Y) { Y[0] = LENGTH; }
