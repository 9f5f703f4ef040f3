// fuseGNN's backward fused-GAS with the gradient of edge weights (ICCAD 2020, Algorithm 2), fp32,
// COO: dX[source] += w dY[target] by atomics, and d_w = dY[target] . X[source].
//
// As in the forward pass, threads side by side have the columns of an edge and a block has `groups`
// edges at once. What a thread adds to its edge's d_w goes to shared memory, interleaved: the
// entries of one column lie side by side, one for each edge. So group reduce, which adds up
// columns, keeps neighboring threads at work until each edge's sum is in one of the first threads'
// places. With more columns than threads a block has one edge, and a block-wide reduce adds up.
//
// Here a block has one batch of edges, where the paper's take turns at several.
//
// grid  = (blocks of `groups` edges, each of them heads times)
// block = block_threads threads

// The plan supplies, at compile time:
//   block_threads  threads of a block
//   heads          of an edge, each with a weight and n_cols columns of its own

#include "spmm/fusegnn.cuh"

DEVICE_INLINE void take_back(const int *__restrict__ sources, const int *__restrict__ targets,
                             const unsigned *__restrict__ order, const float *__restrict__ values,
                             const float *__restrict__ X, const float *__restrict__ dY,
                             float *__restrict__ d_values, float *__restrict__ dX,
                             long long n_edges, int n_cols, int groups) {
    __shared__ float buffer[Config::block_threads];

    const int thread = threadIdx.x;
    const long long first = (long long)blockIdx.x * groups;
    if (groups > 1) {
        const int group = thread / n_cols, column = thread % n_cols;
        const long long item = first + group, edge = item / Config::heads;
        const bool works = group < groups && edge < n_edges;
        float part = 0.0f;
        if (works) {
            const int at = int(item % Config::heads) * n_cols + column;
            const long long element_of_x = element(sources[edge], at, Config::heads * n_cols);
            const float g = dY[element(targets[edge], at, Config::heads * n_cols)];
            atomicAdd(&dX[element_of_x], g * values[item]);
            part = g * X[element_of_x];
        }
        if (group < groups) buffer[column * groups + group] = part;
        group_reduce(buffer, n_cols, thread, groups);
        const long long done = first + thread;
        if (thread < groups && done / Config::heads < n_edges) {
            d_values[(long long)order[done / Config::heads] * Config::heads +
                     done % Config::heads] = buffer[thread];
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
    take_back(sources, targets, order, values, X, dY, d_values, dX, n_edges, n_cols, groups);
}

// The same, of attention: a weight for each head of an edge.
extern "C" __global__ void __launch_bounds__(Config::block_threads)
    fusegnn_gas_gradient_heads(const int *__restrict__ sources, const int *__restrict__ targets,
                               const unsigned *__restrict__ order,
                               const float *__restrict__ weights, const float *__restrict__ V,
                               const float *__restrict__ dY, float *__restrict__ d_weights,
                               float *__restrict__ dV, long long n_edges, int n_cols, int groups) {
    RECORD_WARP;
    take_back(sources, targets, order, weights, V, dY, d_weights, dV, n_edges, n_cols, groups);
}
