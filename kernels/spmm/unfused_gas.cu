// Gather, apply edge, scatter, each a kernel of its own, as PyTorch Geometric runs them and fuseGNN
// (ICCAD 2020, section 2.3) takes them apart: Y = A X, fp32, COO.
//
// Between the kernels lies a row of columns for each edge, in memory: written and read twice. That
// is what fusing saves.
//
// grid  = elements of all edges over block_threads, rounded up
// block = block_threads threads, each of which has an element

#include "common.cuh"

extern "C" __global__ void __launch_bounds__(Config::block_threads)
    gather(const int *__restrict__ columns, const float *__restrict__ X,
           float *__restrict__ messages, long long n_edges, int n_cols) {
    RECORD_WARP;
    const long long at = (long long)blockIdx.x * Config::block_threads + threadIdx.x;
    if (at >= n_edges * n_cols) return;
    messages[at] = X[element(columns[at / n_cols], int(at % n_cols), n_cols)];
}

extern "C" __global__ void __launch_bounds__(Config::block_threads)
    apply_edge(const float *__restrict__ values, float *__restrict__ messages, long long n_edges,
               int n_cols) {
    RECORD_WARP;
    const long long at = (long long)blockIdx.x * Config::block_threads + threadIdx.x;
    if (at >= n_edges * n_cols) return;
    messages[at] *= values[at / n_cols];
}

extern "C" __global__ void __launch_bounds__(Config::block_threads)
    scatter(const int *__restrict__ rows, const float *__restrict__ messages, float *__restrict__ Y,
            long long n_edges, int n_cols) {
    RECORD_WARP;
    const long long at = (long long)blockIdx.x * Config::block_threads + threadIdx.x;
    if (at >= n_edges * n_cols) return;
    atomicAdd(&Y[element(rows[at / n_cols], int(at % n_cols), n_cols)], messages[at]);
}
