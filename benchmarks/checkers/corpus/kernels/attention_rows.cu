// Causal attention of one head, a warp a query, its scores in dynamic shared memory.
__global__ void attention_rows(const float *Q, const float *K, const float *V, float *out, int length,
                               int size) {
    extern __shared__ float scores_of_warps[];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    float *scores = scores_of_warps + warp * length;
    for (int q = blockIdx.x * (blockDim.x / 32) + warp; q < length; q += gridDim.x * (blockDim.x / 32)) {
        float most = -1e30f, sum = 0;
        for (int k = lane; k <= q; k += 32) {
            float score = 0;
            for (int s = 0; s < size; ++s) score += Q[q * size + s] * K[k * size + s];
            scores[k] = score *= rsqrtf(size);
            most = fmaxf(most, score);
        }
        for (int d = 16; d; d /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
        for (int k = lane; k <= q; k += 32) sum += scores[k] = expf(scores[k] - most);
        for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
        __syncwarp();
        for (int s = lane; s < size; s += 32) {
            float mean = 0;
            for (int k = 0; k <= q; ++k) mean += scores[k] / sum * V[k * size + s];
            out[q * size + s] = mean;
        }
        __syncwarp();
    }
}
