// In the style of GPU puzzles: several small kernels with constant TPB
constexpr int TPB = 8;
__global__ void conv1d(float *out, const float *a, const float *b, int a_size, int b_size) {
  __shared__ float shared_a[TPB + 4], shared_b[4];
  int i = blockIdx.x * blockDim.x + threadIdx.x, local_i = threadIdx.x;
  shared_a[local_i] = i < a_size ? a[i] : 0;
  if (local_i < b_size) { int n = i + TPB; shared_a[local_i + TPB] = n < a_size ? a[n] : 0; shared_b[local_i] = b[local_i]; }
  __syncthreads();
  if (i < a_size) { float acc = 0; for (int k = 0; k < b_size; ++k) acc += shared_a[local_i + k] * shared_b[k]; out[i] = acc; }
}
__global__ void prefix(float *out, const float *a, int size) {
  __shared__ float cache[TPB];
  int i = blockIdx.x * blockDim.x + threadIdx.x, local_i = threadIdx.x;
  cache[local_i] = i < size ? a[i] : 0.f;
  __syncthreads();
  for (int k = 1; k < TPB; k *= 2) { if (local_i % (2 * k) == 0) cache[local_i] += cache[local_i + k]; __syncthreads(); }
  if (local_i == 0) out[blockIdx.x] = cache[0];
}
__global__ void axis_sum(float (*out)[1], const float (*a)[6], int size) {
  __shared__ float cache[TPB];
  const int batch = blockIdx.y, local_i = threadIdx.x;
  cache[local_i] = local_i < size ? a[batch][local_i] : 0;
  for (int s = TPB / 2; s > 0; s >>= 1) { __syncthreads(); if (local_i < s) cache[local_i] += cache[local_i + s]; }
  if (!local_i) out[batch][0] = cache[0];
}
