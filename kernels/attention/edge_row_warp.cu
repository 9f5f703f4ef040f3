// Readable softmax over the nonzeros of each row, and its gradient: one warp per row.
//
// The lanes take the nonzeros in turn and reduce them to a State each; five shuffles merge the
// states, and a second pass over the nonzeros writes. Heads are handled one after another.
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
    if (row >= n_rows) return;  // for all lanes of the warp

    const long long begin = row_pointers[row], end = row_pointers[row + 1];
    for (int head = 0; head < n_cols; ++head) {
        typename Functor::State state = Functor::initial();
        for (long long k = begin + lane; k < end; k += WARP_SIZE) {
            Functor::accumulate(state, functor.load(k * n_cols + head));
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
    row_by_warp(SoftmaxForward{scores, alpha}, row_pointers, n_rows, n_cols);
}

extern "C" __global__ void edge_softmax_gradient(const long long *__restrict__ row_pointers,
                                                 const float *__restrict__ alpha,
                                                 const float *__restrict__ d_alpha,
                                                 float *__restrict__ d_scores, int n_rows,
                                                 int n_cols) {
    RECORD_WARP;
    row_by_warp(SoftmaxGradient{alpha, d_alpha, d_scores}, row_pointers, n_rows, n_cols);
}
