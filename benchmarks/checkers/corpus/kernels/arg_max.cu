// The largest element and where it stands, for each block.
__global__ void arg_max(const float *X, float *largest, int *where, int n) {
    __shared__ float value[256];
    __shared__ int place[256];
    const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    value[t] = i < n ? X[i] : -1e30f;
    place[t] = i;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half >>= 1) {
        if (t < half && value[t + half] > value[t]) {
            value[t] = value[t + half];
            place[t] = place[t + half];
        }
        __syncthreads();
    }
    if (t == 0) {
        largest[blockIdx.x] = value[0];
        where[blockIdx.x] = place[0];
    }
}
