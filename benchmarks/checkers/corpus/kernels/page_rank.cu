// A step of PageRank by incoming edges, in double precision; vertices without edges keep their share.
__global__ void page_rank(const int *pointers, const int *sources, const int *out_degrees,
                          const double *rank, double *next, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double sum = 0;
    for (int k = pointers[i]; k < pointers[i + 1]; ++k) sum += rank[sources[k]] / out_degrees[sources[k]];
    next[i] = 0.15 / n + 0.85 * sum;
}
