// fuseGNN's fused-GAS (ICCAD 2020, Algorithm 1): Y = A X, fp32, COO.
//
// Gather, apply edge, scatter: threads side by side read the row of X at one end of an edge, weigh
// it, and add it to the row of Y at the other end with atomics. No edge knows of another, so the
// edges may come in any order and no row is too long; the price is an atomic a product.
//
// With fewer columns than threads, a block handles `groups` = floor(threads / columns) edges and
// the threads left over are idle; else it handles one edge, and each thread loops over its columns.
//
// grid  = (blocks of `groups` edges, each of them heads times)
// block = block_threads threads

// The plan supplies, at compile time:
//   block_threads  threads of a block
//   heads          of an edge, each with a weight and n_cols columns of its own

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
    // Several groups: one turn of the loop, as a thread has one column.
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

// The same, of attention: a weight for each head of an edge.
extern "C" __global__ void __launch_bounds__(Config::block_threads)
    fusegnn_gas_heads(const int *__restrict__ rows, const int *__restrict__ columns,
                      const float *__restrict__ weights, const float *__restrict__ V,
                      float *__restrict__ Y, long long n_edges, int n_cols, int groups) {
    RECORD_WARP;
    aggregate(rows, columns, weights, V, Y, n_edges, n_cols, groups);
}
