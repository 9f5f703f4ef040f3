// Gather, apply edge and scatter as three kernels, as PyTorch Geometric runs them and fuseGNN
// (ICCAD 2020, section 2.3) describes them: Y = A X, fp32, COO.
//
// Between the kernels a row of messages per edge is stored in memory: written twice and read twice.
// Fusing avoids this traffic.
//
// grid  = elements of all edges over block_threads, rounded up
// block = block_threads threads, one element per thread

#include "common.cuh"

extern "C" __global__ void __launch_bounds__(Config::block_threads)
    gather(const int *__restrict__ columns, const float *__restrict__ X,
           float *__restrict__ messages, long long n_edges, int n_cols) {
    RECORD_WARP;
    const long long i = (long long)blockIdx.x * Config::block_threads + threadIdx.x;
    if (i >= n_edges * n_cols) return;
    messages[i] = X[element(columns[i / n_cols], int(i % n_cols), n_cols)];
}

extern "C" __global__ void __launch_bounds__(Config::block_threads)
    apply_edge(const float *__restrict__ values, float *__restrict__ messages, long long n_edges,
               int n_cols) {
    RECORD_WARP;
    const long long i = (long long)blockIdx.x * Config::block_threads + threadIdx.x;
    if (i >= n_edges * n_cols) return;
    messages[i] *= values[i / n_cols];
}

extern "C" __global__ void __launch_bounds__(Config::block_threads)
    scatter(const int *__restrict__ rows, const float *__restrict__ messages, float *__restrict__ Y,
            long long n_edges, int n_cols) {
    RECORD_WARP;
    const long long i = (long long)blockIdx.x * Config::block_threads + threadIdx.x;
    if (i >= n_edges * n_cols) return;
    atomicAdd(&Y[element(rows[i / n_cols], int(i % n_cols), n_cols)], messages[i]);
}
