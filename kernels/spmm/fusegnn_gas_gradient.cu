// fuseGNN's backward fused-GAS with the gradient of edge weights (ICCAD 2020, Algorithm 2), fp32,
// COO: dX[source] += w dY[target] by atomics, and d_w = dY[target] . X[source].
//
// As in the forward pass, neighboring threads handle the columns of an edge, and a block handles
// `groups` edges. Each thread stores its term of d_w in shared memory, interleaved: the terms of
// one column are neighbors, one per edge. Group reduce, which adds up columns, so keeps neighboring
// threads active until the first `groups` threads have the sums of the edges. With more columns
// than threads a block has one edge, and a block-wide reduce adds up the terms.
//
// A block handles one batch of edges; the paper's blocks loop over several.
//
// grid  = (edges * heads over `groups`, rounded up)
// block = block_threads threads

// The plan supplies, at compile time:
//   block_threads  threads of a block
//   heads          number of heads; each has its own weights and n_cols columns

#include "spmm/fusegnn.cuh"

DEVICE_INLINE void backward(const int *__restrict__ sources, const int *__restrict__ targets,
                            const unsigned *__restrict__ order, const float *__restrict__ values,
                            const float *__restrict__ X, const float *__restrict__ dY,
                            float *__restrict__ d_values, float *__restrict__ dX, long long n_edges,
                            int n_cols, int groups) {
    __shared__ float buffer[Config::block_threads];

    const int thread = threadIdx.x;
    const long long first = (long long)blockIdx.x * groups;
    if (groups > 1) {
        const int group = thread / n_cols, column = thread % n_cols;
        const long long item = first + group, edge = item / Config::heads;
        const bool active = group < groups && edge < n_edges;
        float part = 0.0f;
        if (active) {
            const int at = int(item % Config::heads) * n_cols + column;
            const long long element_of_x = element(sources[edge], at, Config::heads * n_cols);
            const float g = dY[element(targets[edge], at, Config::heads * n_cols)];
            atomicAdd(&dX[element_of_x], g * values[item]);
            part = g * X[element_of_x];
        }
        if (group < groups) buffer[column * groups + group] = part;
        group_reduce(buffer, n_cols, thread, groups);
        const long long reduced = first + thread;
        if (thread < groups && reduced / Config::heads < n_edges) {
            d_values[(long long)order[reduced / Config::heads] * Config::heads +
                     reduced % Config::heads] = buffer[thread];
        }
    } else {
        const long long edge = first / Config::heads;
        const int source = sources[edge], target = targets[edge],
                  head = int(first % Config::heads) * n_cols;
        const float weight = values[first];
        float part = 0.0f;
        for (int column = thread; column < n_cols; column += Config::block_threads) {
            const long long element_of_x = element(source, head + column, Config::heads * n_cols);
            const float g = dY[element(target, head + column, Config::heads * n_cols)];
            atomicAdd(&dX[element_of_x], g * weight);
            part += g * X[element_of_x];
        }
        buffer[thread] = part;
        block_reduce(buffer, thread);
        if (thread == 0)
            d_values[(long long)order[edge] * Config::heads + first % Config::heads] = buffer[0];
    }
}

extern "C" __global__ void __launch_bounds__(Config::block_threads)
    fusegnn_gas_gradient(const int *__restrict__ sources, const int *__restrict__ targets,
                         const unsigned *__restrict__ order, const float *__restrict__ values,
                         const float *__restrict__ X, const float *__restrict__ dY,
                         float *__restrict__ d_values, float *__restrict__ dX, long long n_edges,
                         int n_cols, int groups) {
    RECORD_WARP;
    backward(sources, targets, order, values, X, dY, d_values, dX, n_edges, n_cols, groups);
}

// The same for attention: one weight per head and edge.
extern "C" __global__ void __launch_bounds__(Config::block_threads)
    fusegnn_gas_gradient_heads(const int *__restrict__ sources, const int *__restrict__ targets,
                               const unsigned *__restrict__ order,
                               const float *__restrict__ weights, const float *__restrict__ V,
                               const float *__restrict__ dY, float *__restrict__ d_weights,
                               float *__restrict__ dV, long long n_edges, int n_cols, int groups) {
    RECORD_WARP;
    backward(sources, targets, order, weights, V, dY, d_weights, dV, n_edges, n_cols, groups);
}
