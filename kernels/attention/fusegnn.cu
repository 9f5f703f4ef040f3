// fuseGNN's fused graph processing of GAT (ICCAD 2020, section 5.1, Equations 4 and 5): the steps
// before the aggregation of features, and after its gradient. One thread per edge and head.
//
//   edge_powers    exp of the score; stored for the edge and added to the row's sum. An atomicMax
//                  finds the row's largest score, for the gradient only
//   edge_weights   divides by that sum and applies dropout
//   row_maxima     decodes the rows' largest scores and rescales the sums to them, for the gradient
//   weights_again  recomputes the weights in the order of the transposed matrix, for the gradient
//   edge_gradient  computes the gradients of `receiver` and `sender` from the weights' gradient
//
// As in the paper, the largest score is not subtracted: a score above 88 overflows float32's exp:
// NaN.
//
// grid  = edges x heads (row_maxima: rows x heads) over block_threads, rounded up
// block = block_threads threads

#include "common.cuh"
#include "philox.cuh"

struct Item {
    long long index;  // edge * heads + head
    long long edge;
    int head;

    // Index of the edge's row or column in an array (n, heads).
    DEVICE_INLINE long long end_index(const int *ends) const {
        return (long long)ends[edge] * Config::heads + head;
    }
};

DEVICE_INLINE Item thread_item() {
    const long long index = (long long)blockIdx.x * Config::block_threads + threadIdx.x;
    return {index, index / Config::heads, int(index % Config::heads)};
}

DEVICE_INLINE float leaky(float x, float slope) {
    return x > 0.0f ? x : __fmul_rn(slope, x);
}

// A key of a float: an integer that orders as floats do and exceeds 0, the key of an empty row.
DEVICE_INLINE unsigned key_of(float x) {
    const unsigned bits = __float_as_uint(x);
    return bits >> 31 ? ~bits : bits | 1u << 31;
}
DEVICE_INLINE float float_of(unsigned key) {
    return __uint_as_float(key >> 31 ? key & ~(1u << 31) : ~key);
}

extern "C" __global__ void __launch_bounds__(Config::block_threads)
    edge_powers(const int *__restrict__ rows, const int *__restrict__ columns,
                const float *__restrict__ receiver, const float *__restrict__ sender,
                float *__restrict__ weights, float *row_max, float *row_sum, float slope,
                long long n_edges) {
    RECORD_WARP;
    const Item item = thread_item();
    if (item.edge >= n_edges) return;
    const float x = receiver[item.end_index(rows)] + sender[item.end_index(columns)];
    const float score = leaky(x, slope), power = __expf(score);
    weights[item.index] = power;
    atomicAdd(&row_sum[item.end_index(rows)], power);
    unsigned *keys = reinterpret_cast<unsigned *>(row_max);
    atomicMax(&keys[item.end_index(rows)], key_of(score));
}

extern "C" __global__ void __launch_bounds__(Config::block_threads)
    edge_weights(const int *__restrict__ rows, float *__restrict__ weights,
                 const float *__restrict__ row_sum, float rate, const unsigned *__restrict__ random,
                 long long n_edges) {
    RECORD_WARP;
    const Item item = thread_item();
    if (item.edge >= n_edges) return;
    const float multiplier = Dropout{rate, random}.factor(item.edge, item.head);
    weights[item.index] = weights[item.index] / row_sum[item.end_index(rows)] * multiplier;
}

extern "C" __global__ void __launch_bounds__(Config::block_threads)
    row_maxima(float *__restrict__ row_max, float *__restrict__ row_sum, int n_rows) {
    RECORD_WARP;
    const Item item = thread_item();
    if (item.edge >= n_rows) return;
    const unsigned key = __float_as_uint(row_max[item.index]);
    const float largest = key == 0u ? 0.0f : float_of(key);
    row_max[item.index] = largest;
    row_sum[item.index] *= __expf(-largest);
}

// `statistics` of a row and head: (row_max, 1 / row_sum, dY . Y, receiver), by statistics.cu.
extern "C" __global__ void __launch_bounds__(Config::block_threads)
    weights_again(const int *__restrict__ sources, const int *__restrict__ targets,
                  const unsigned *__restrict__ order, const float4 *__restrict__ statistics,
                  const float *__restrict__ sender, float *__restrict__ weights, float slope,
                  float rate, const unsigned *__restrict__ random, long long n_edges) {
    RECORD_WARP;
    const Item item = thread_item();
    if (item.edge >= n_edges) return;
    const float4 stats = statistics[item.end_index(targets)];
    const float score = leaky(stats.w + sender[item.end_index(sources)], slope);
    const float alpha = __expf(score - stats.x) * stats.y;
    weights[item.index] = alpha * Dropout{rate, random}.factor(order[item.edge], item.head);
}

extern "C" __global__ void __launch_bounds__(Config::block_threads)
    edge_gradient(const int *__restrict__ rows, const int *__restrict__ columns,
                  const float4 *__restrict__ statistics, const float *__restrict__ sender,
                  const float *__restrict__ d_weights, float *d_receiver, float *d_sender,
                  float slope, float rate, const unsigned *__restrict__ random, long long n_edges) {
    RECORD_WARP;
    const Item item = thread_item();
    if (item.edge >= n_edges) return;
    const float4 stats = statistics[item.end_index(rows)];
    const float x = stats.w + sender[item.end_index(columns)];
    const float alpha = __expf(leaky(x, slope) - stats.x) * stats.y;
    const float multiplier = Dropout{rate, random}.factor(item.edge, item.head);
    const float d_score = alpha * (multiplier * d_weights[item.index] - stats.z);
    const float d_x = x > 0.0f ? d_score : slope * d_score;
    atomicAdd(&d_receiver[item.end_index(rows)], d_x);
    atomicAdd(&d_sender[item.end_index(columns)], d_x);
}
