// fuseGNN's fused-GAR (ICCAD 2020, Algorithm 3): Y = A X, fp32, CSR.
//
// Gather, apply edge, reduce: a block handles one row of A and adds it up on chip, without atomics.
// With fewer columns than threads, `groups` = floor(threads / columns) groups of n_cols threads
// take the row's nonzeros in turn and add their sums in shared memory; else each thread loops over
// all nonzeros for its columns. The paper's extra weight of a self-loop is omitted: a diagonal is
// among the nonzeros.
//
// grid  = (rows, heads)
// block = block_threads threads

// The plan supplies, at compile time:
//   block_threads  threads of a block
//   heads          number of heads; each has its own weights and n_cols columns

#include "common.cuh"
#include "spmm/fusegnn.cuh"

// Nonzeros of a thread whose loads are in flight together.
constexpr int BATCH = 4;

// Sums nonzeros first, first + step, ... below `count` of a row, for one column of X. Nonzeros past
// the end are masked one by one, so that the loads of a short row are in flight together, too.
DEVICE_INLINE float dot(const int *__restrict__ columns, const float *__restrict__ values,
                        const float *__restrict__ X, unsigned first, unsigned count, unsigned step,
                        int column, int n_cols) {
    float sum = 0.0f;
    for (unsigned k = first; k < count; k += BATCH * step) {
        int sources[BATCH];
        float weights[BATCH], x[BATCH];
#pragma unroll
        for (unsigned j = 0; j < BATCH; ++j) {
            const unsigned nonzero = k + j * step;
            sources[j] = nonzero < count ? columns[nonzero] : 0;
            weights[j] = nonzero < count ? values[(long long)nonzero * Config::heads] : 0.0f;
        }
#pragma unroll
        for (unsigned j = 0; j < BATCH; ++j) {
            x[j] = k + j * step < count ? X[element(sources[j], column, Config::heads * n_cols)]
                                        : 0.0f;
        }
#pragma unroll
        for (unsigned j = 0; j < BATCH; ++j) sum += weights[j] * x[j];
    }
    return sum;
}

DEVICE_INLINE void aggregate(const long long *__restrict__ row_pointers,
                             const int *__restrict__ columns, const float *__restrict__ values,
                             const float *__restrict__ X, float *__restrict__ Y, int n_cols,
                             int groups) {
    __shared__ float buffer[Config::block_threads];

    const int row = blockIdx.x;
    const int thread = threadIdx.x;
    const long long begin = row_pointers[row];
    const int degree = int(row_pointers[row + 1] - begin);
    columns += begin;
    const int head = blockIdx.y;
    values += begin * Config::heads + head;
    X += head * n_cols;
    Y += element(row, head * n_cols, Config::heads * n_cols);

    if (groups > 1) {
        const int group = thread / n_cols;
        const int column = thread % n_cols;
        buffer[thread] =
            group < groups ? dot(columns, values, X, group, degree, groups, column, n_cols) : 0.0f;
        // At most one group per nonzero, as in line 9, which prints m for the number of the others.
        group_reduce(buffer, min(groups, degree), thread, n_cols);
        if (thread < n_cols) Y[column] = buffer[thread];
    } else {
        for (int column = thread; column < n_cols; column += Config::block_threads) {
            Y[column] = dot(columns, values, X, 0, degree, 1, column, n_cols);
        }
    }
}

extern "C" __global__ void __launch_bounds__(Config::block_threads)
    fusegnn_gar(const long long *__restrict__ row_pointers, const int *__restrict__ columns,
                const float *__restrict__ values, const float *__restrict__ X,
                float *__restrict__ Y, int n_cols, int groups) {
    RECORD_WARP;
    aggregate(row_pointers, columns, values, X, Y, n_cols, groups);
}

// The same for attention: one weight per head and edge.
extern "C" __global__ void __launch_bounds__(Config::block_threads)
    fusegnn_gar_heads(const long long *__restrict__ row_pointers, const int *__restrict__ columns,
                      const float *__restrict__ weights, const float *__restrict__ V,
                      float *__restrict__ Y, int n_cols, int groups) {
    RECORD_WARP;
    aggregate(row_pointers, columns, weights, V, Y, n_cols, groups);
}
