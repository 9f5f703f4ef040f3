// Softmax over the nonzeros of each row, and its gradient, the readable ones: a warp has a row.
//
// Its lanes take the nonzeros in turn and find what the row comes to (State), each of its own ones;
// five shuffles merge that, and a second pass writes. One head after the other.
//
// grid  = rows over block_warps, rounded up
// block = block_warps warps

// The plan supplies, at compile time:
//   block_warps  warps of a block

#include "attention/edge_functors.cuh"
#include "common.cuh"

template <class Functor>
DEVICE_INLINE void row_by_warp(const Functor &functor, const long long *__restrict__ row_pointers,
                               int n_rows, int n_cols) {
    const long long row = (long long)blockIdx.x * Config::block_warps + threadIdx.x / WARP_SIZE;
    const int lane = threadIdx.x % WARP_SIZE;
    if (row >= n_rows) return;  // a whole warp

    const long long begin = row_pointers[row], end = row_pointers[row + 1];
    for (int head = 0; head < n_cols; ++head) {
        typename Functor::State state = Functor::none();
        for (long long k = begin + lane; k < end; k += WARP_SIZE) {
            Functor::take(state, functor.load(k * n_cols + head));
        }
        for (int apart = WARP_SIZE / 2; apart > 0; apart /= 2) {
            state = merged(state, from_lane(state, apart));
        }
        for (long long k = begin + lane; k < end; k += WARP_SIZE) {
            functor.store(k * n_cols + head, functor.load(k * n_cols + head), state);
        }
    }
}

extern "C" __global__ void edge_softmax(const long long *__restrict__ row_pointers,
                                        const float *__restrict__ scores, float *__restrict__ alpha,
                                        int n_rows, int n_cols) {
    RECORD_WARP;
    row_by_warp(Forward{scores, alpha}, row_pointers, n_rows, n_cols);
}

extern "C" __global__ void edge_softmax_gradient(const long long *__restrict__ row_pointers,
                                                 const float *__restrict__ alpha,
                                                 const float *__restrict__ d_alpha,
                                                 float *__restrict__ d_scores, int n_rows,
                                                 int n_cols) {
    RECORD_WARP;
    row_by_warp(Gradient{alpha, d_alpha, d_scores}, row_pointers, n_rows, n_cols);
}
