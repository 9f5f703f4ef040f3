// fuseGNN's fused-GAS (ICCAD 2020, Algorithm 1): Y = A X, fp32, COO.
//
// Gather, apply edge, scatter: neighboring threads read the row of X of an edge's source, multiply
// it by the weight, and add it to the row of Y of its target with atomics. Edges are independent,
// so they may be in any order and long rows cause no load imbalance. The cost: an atomic per
// product.
//
// With fewer columns than threads, a block handles `groups` = floor(threads / columns) edges and
// the remaining threads are idle; else it handles one edge, and each thread loops over its columns.
//
// grid  = (edges * heads over `groups`, rounded up)
// block = block_threads threads

// The plan supplies, at compile time:
//   block_threads  threads of a block
//   heads          number of heads; each has its own weights and n_cols columns

#include "spmm/fusegnn.cuh"

DEVICE_INLINE void aggregate(const int *__restrict__ rows, const int *__restrict__ columns,
                             const float *__restrict__ values, const float *__restrict__ X,
                             float *__restrict__ Y, long long n_edges, int n_cols, int groups) {
    const int thread = threadIdx.x;
    const int group = groups > 1 ? thread / n_cols : 0;
    const int first_column = thread - group * n_cols;
    const long long item = (long long)blockIdx.x * groups + group, edge = item / Config::heads;
    if (group >= groups || edge >= n_edges) return;

    const long long head = (item % Config::heads) * n_cols;
    const long long target = element(rows[edge], 0, Config::heads * n_cols) + head;
    const long long source = element(columns[edge], 0, Config::heads * n_cols) + head;
    const float weight = values[item];
    // With several groups a thread has one column: the loop runs once.
#pragma unroll 4
    for (int column = first_column; column < n_cols; column += Config::block_threads) {
        atomicAdd(&Y[target + column], weight * X[source + column]);
    }
}

extern "C" __global__ void __launch_bounds__(Config::block_threads)
    fusegnn_gas(const int *__restrict__ rows, const int *__restrict__ columns,
                const float *__restrict__ values, const float *__restrict__ X,
                float *__restrict__ Y, long long n_edges, int n_cols, int groups) {
    RECORD_WARP;
    aggregate(rows, columns, values, X, Y, n_edges, n_cols, groups);
}

// The same for attention: one weight per head and edge.
extern "C" __global__ void __launch_bounds__(Config::block_threads)
    fusegnn_gas_heads(const int *__restrict__ rows, const int *__restrict__ columns,
                      const float *__restrict__ weights, const float *__restrict__ V,
                      float *__restrict__ Y, long long n_edges, int n_cols, int groups) {
    RECORD_WARP;
    aggregate(rows, columns, weights, V, Y, n_edges, n_cols, groups);
}
