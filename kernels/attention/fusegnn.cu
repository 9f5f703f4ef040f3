// fuseGNN's fused graph processing of GAT (ICCAD 2020, section 5.1, Equations 4 and 5): what comes
// before the features are aggregated, and after their gradient. A thread has a head of an edge.
//
//   edge_powers    exp of the score, which is kept for the edge and added to the row's sum
//   edge_weights   divides by that sum and applies dropout
//   logarithms     turns the sums into what the gradient takes
//   weights_again  the same weights, for the gradient, in the order of the transposed matrix
//   edge_gradient  takes the gradient of the weights back to receiver and sender
//
// As in the paper, no largest score is taken off: a score above 88 is beyond float32's exp.
//
// grid  = edges x heads (logarithms: rows x heads) over block_threads, rounded up
// block = block_threads threads

#include "common.cuh"
#include "philox.cuh"

struct Item {
    long long at;  // among all heads of all edges
    long long edge;
    int head;

    DEVICE_INLINE long long of(const int *ends) const {  // an end's place in (n, heads)
        return (long long)ends[edge] * Config::heads + head;
    }
};

DEVICE_INLINE Item thread_item() {
    const long long at = (long long)blockIdx.x * Config::block_threads + threadIdx.x;
    return {at, at / Config::heads, int(at % Config::heads)};
}

DEVICE_INLINE float leaky(float x, float slope) {
    return x > 0.0f ? x : slope * x;
}

extern "C" __global__ void __launch_bounds__(Config::block_threads)
    edge_powers(const int *__restrict__ rows, const int *__restrict__ columns,
                const float *__restrict__ receiver, const float *__restrict__ sender,
                float *__restrict__ weights, float *logsumexp, float slope, long long n_edges) {
    RECORD_WARP;
    const Item item = thread_item();
    if (item.edge >= n_edges) return;
    const float x = receiver[item.of(rows)] + sender[item.of(columns)];
    const float power = __expf(leaky(x, slope));
    weights[item.at] = power;
    atomicAdd(&logsumexp[item.of(rows)], power);
}

extern "C" __global__ void __launch_bounds__(Config::block_threads)
    edge_weights(const int *__restrict__ rows, float *__restrict__ weights,
                 const float *__restrict__ logsumexp, float rate,
                 const unsigned *__restrict__ random, long long n_edges) {
    RECORD_WARP;
    const Item item = thread_item();
    if (item.edge >= n_edges) return;
    const float multiplier = Dropout{rate, random}.factor(item.edge, item.head);
    weights[item.at] = weights[item.at] / logsumexp[item.of(rows)] * multiplier;
}

extern "C" __global__ void __launch_bounds__(Config::block_threads)
    logarithms(float *__restrict__ logsumexp, int n_rows) {
    RECORD_WARP;
    const Item item = thread_item();
    if (item.edge >= n_rows) return;
    const float sum = logsumexp[item.at];
    logsumexp[item.at] = sum > 0.0f ? __logf(sum) : 0.0f;
}

// `statistics` of a receiver and head: (receiver, logsumexp, dY . Y, 0), as statistics.cu leaves
// it.
extern "C" __global__ void __launch_bounds__(Config::block_threads)
    weights_again(const int *__restrict__ sources, const int *__restrict__ targets,
                  const unsigned *__restrict__ order, const float4 *__restrict__ statistics,
                  const float *__restrict__ sender, float *__restrict__ weights, float slope,
                  float rate, const unsigned *__restrict__ random, long long n_edges) {
    RECORD_WARP;
    const Item item = thread_item();
    if (item.edge >= n_edges) return;
    const float4 known = statistics[item.of(targets)];
    const float alpha = __expf(leaky(known.x + sender[item.of(sources)], slope) - known.y);
    weights[item.at] = alpha * Dropout{rate, random}.factor(order[item.edge], item.head);
}

extern "C" __global__ void __launch_bounds__(Config::block_threads)
    edge_gradient(const int *__restrict__ rows, const int *__restrict__ columns,
                  const float4 *__restrict__ statistics, const float *__restrict__ sender,
                  const float *__restrict__ d_weights, float *d_receiver, float *d_sender,
                  float slope, float rate, const unsigned *__restrict__ random, long long n_edges) {
    RECORD_WARP;
    const Item item = thread_item();
    if (item.edge >= n_edges) return;
    const float4 known = statistics[item.of(rows)];
    const float x = known.x + sender[item.of(columns)];
    const float alpha = __expf(leaky(x, slope) - known.y);
    const float multiplier = Dropout{rate, random}.factor(item.edge, item.head);
    const float d_score = alpha * (multiplier * d_weights[item.at] - known.z);
    const float d_x = x > 0.0f ? d_score : slope * d_score;
    atomicAdd(&d_receiver[item.of(rows)], d_x);
    atomicAdd(&d_sender[item.of(columns)], d_x);
}
