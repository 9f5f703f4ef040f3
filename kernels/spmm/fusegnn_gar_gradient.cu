// fuseGNN's backward fused-GAR with the gradient of edge weights (ICCAD 2020, section 5.4), fp32,
// CSC. A block handles one source vertex: dX[source] is the sum of w dY[target] over its edges, and
// d_w = dY[target] . X[source] for each edge.
//
// All edges of a block have the same source, so its row of X is read once: to registers if there
// are fewer columns than threads, else to shared memory, where dX is summed as well. Otherwise the
// kernel equals the backward fused-GAS, without atomics.
//
// grid  = (sources, heads)
// block = block_threads threads; with n_cols >= block_threads, 2 n_cols floats of shared memory

// The plan supplies, at compile time:
//   block_threads  threads of a block
//   heads          number of heads; each has its own weights and n_cols columns

#include "spmm/fusegnn.cuh"

DEVICE_INLINE void backward(const long long *__restrict__ source_pointers,
                            const int *__restrict__ targets, const unsigned *__restrict__ order,
                            const float *__restrict__ values, const float *__restrict__ X,
                            const float *__restrict__ dY, float *__restrict__ d_values,
                            float *__restrict__ dX, int n_cols, int groups) {
    __shared__ float buffer[Config::block_threads];
    DYNAMIC_SHARED(float, rows);

    const int source = blockIdx.x, thread = threadIdx.x;
    const long long begin = source_pointers[source];
    const int degree = int(source_pointers[source + 1] - begin);
    targets += begin;
    order += begin;
    const int head = blockIdx.y;
    values += begin * Config::heads + head;
    d_values += head;
    dY += head * n_cols;
    X += element(source, head * n_cols, Config::heads * n_cols);
    dX += element(source, head * n_cols, Config::heads * n_cols);

    if (groups > 1) {
        const int group = thread / n_cols, column = thread % n_cols;
        const float x = X[column];
        float sum = 0.0f;
        for (int first = 0; first < degree; first += groups) {
            const int edge = first + group;
            const bool active = group < groups && edge < degree;
            const float g =
                active ? dY[element(targets[edge], column, Config::heads * n_cols)] : 0.0f;
            if (active) sum += g * values[(long long)edge * Config::heads];
            __syncthreads();  // all threads have read the buffer of the previous edges
            if (group < groups) buffer[column * groups + group] = g * x;
            group_reduce(buffer, n_cols, thread, groups);
            if (thread < groups && first + thread < degree) {
                d_values[(long long)order[first + thread] * Config::heads] = buffer[thread];
            }
        }
        __syncthreads();
        if (group < groups) buffer[thread] = sum;
        group_reduce(buffer, groups, thread, n_cols);
        if (thread < n_cols) dX[column] = buffer[thread];
    } else {
        float *x = rows, *sums = rows + n_cols;  // a thread reads and writes its own columns only
        for (int column = thread; column < n_cols; column += Config::block_threads) {
            x[column] = X[column];
            sums[column] = 0.0f;
        }
        for (int edge = 0; edge < degree; ++edge) {
            const float weight = values[(long long)edge * Config::heads];
            const float *g = &dY[element(targets[edge], 0, Config::heads * n_cols)];
            float part = 0.0f;
            for (int column = thread; column < n_cols; column += Config::block_threads) {
                sums[column] += g[column] * weight;
                part += g[column] * x[column];
            }
            __syncthreads();
            buffer[thread] = part;
            block_reduce(buffer, thread);
            if (thread == 0) d_values[(long long)order[edge] * Config::heads] = buffer[0];
        }
        for (int column = thread; column < n_cols; column += Config::block_threads) {
            dX[column] = sums[column];
        }
    }
}

extern "C" __global__ void __launch_bounds__(Config::block_threads)
    fusegnn_gar_gradient(const long long *__restrict__ source_pointers,
                         const int *__restrict__ targets, const unsigned *__restrict__ order,
                         const float *__restrict__ values, const float *__restrict__ X,
                         const float *__restrict__ dY, float *__restrict__ d_values,
                         float *__restrict__ dX, int n_cols, int groups) {
    RECORD_WARP;
    backward(source_pointers, targets, order, values, X, dY, d_values, dX, n_cols, groups);
}

// The same for attention: one weight per head and edge.
extern "C" __global__ void __launch_bounds__(Config::block_threads)
    fusegnn_gar_gradient_heads(const long long *__restrict__ source_pointers,
                               const int *__restrict__ targets, const unsigned *__restrict__ order,
                               const float *__restrict__ weights, const float *__restrict__ V,
                               const float *__restrict__ dY, float *__restrict__ d_weights,
                               float *__restrict__ dV, int n_cols, int groups) {
    RECORD_WARP;
    backward(source_pointers, targets, order, weights, V, dY, d_weights, dV, n_cols, groups);
}
