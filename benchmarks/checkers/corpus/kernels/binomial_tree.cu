// Value of an option at the root of a tree of prices: a level a step, two barriers a level.
__global__ void binomial_tree(const float *leaves, float *values, int depth) {
    __shared__ float level[257];
    const int t = threadIdx.x;
    for (int k = t; k <= depth; k += blockDim.x) level[k] = leaves[blockIdx.x * (depth + 1) + k];
    __syncthreads();
    for (int last = depth; last > 0; --last) {
        float value = 0;
        if (t < last) value = 0.5f * (level[t] + level[t + 1]);
        __syncthreads();
        if (t < last) level[t] = value;
        __syncthreads();
    }
    if (t == 0) values[blockIdx.x] = level[0];
}
