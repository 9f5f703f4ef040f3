// GAT's scores, softmax and sum over a vertex's edges, a warp a vertex, three passes.
__global__ void edge_scores(const int *pointers, const int *columns, const float *of_source,
                            const float *of_target, const float *X, float *Y, int rows, int width) {
    const int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    const int begin = pointers[row], end = pointers[row + 1];
    float most = -1e30f, sum = 0;
    for (int k = begin + lane; k < end; k += 32) {
        const float score = of_source[columns[k]] + of_target[row];
        most = fmaxf(most, score > 0 ? score : 0.2f * score);
    }
    for (int d = 16; d; d /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
    for (int k = begin + lane; k < end; k += 32) {
        const float score = of_source[columns[k]] + of_target[row];
        sum += __expf((score > 0 ? score : 0.2f * score) - most);
    }
    for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    for (int column = lane; column < width; column += 32) {
        float mean = 0;
        for (int k = begin; k < end; ++k) {
            const float score = of_source[columns[k]] + of_target[row];
            mean += __expf((score > 0 ? score : 0.2f * score) - most) / sum * X[columns[k] * width + column];
        }
        Y[row * width + column] = mean;
    }
}
