// fuseGNN's fused graph processing of GCN (ICCAD 2020, section 5.1, Equation 2), one thread per
// edge: the sum of each row's weights by atomics, then e / sqrt(sum of i x sum of j). Self loops
// are among the edges, so that a sum is the paper's d + 1.
#include "common.cuh"

extern "C" __global__ void row_sums(const int *__restrict__ rows, const float *__restrict__ values,
                                    float *sums, long long n_edges) {
    const long long edge = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (edge < n_edges) atomicAdd(&sums[rows[edge]], values[edge]);
}

// The weight is 0 if one of the sums is not positive.
extern "C" __global__ void gcn_weights(const int *__restrict__ rows,
                                       const int *__restrict__ columns,
                                       const float *__restrict__ values,
                                       const float *__restrict__ sums, float *__restrict__ weights,
                                       long long n_edges) {
    const long long edge = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (edge >= n_edges) return;
    const float target = sums[rows[edge]], source = sums[columns[edge]];
    const bool both = target > 0.0f && source > 0.0f;
    weights[edge] = both ? values[edge] * rsqrtf(target) * rsqrtf(source) : 0.0f;
}
