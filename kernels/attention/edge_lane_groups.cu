// Our softmax over the nonzeros of each row, and its gradient. Each edge value is read once.
//
//   - A subwarp of `lanes` lanes handles one head of a row. Neighboring subwarps handle the heads
//     of one row, so that a warp reads neighboring values for any number of heads.
//   - A lane keeps lane_nonzeros nonzeros in registers and starts all their loads together. Only
//     nonzeros beyond lanes * lane_nonzeros are read a second time.
//   - A row of more than long_row nonzeros has a block of its own, whose subwarps share it. These
//     blocks come first.
//
// grid  = long rows, then rows x heads over groups, rounded up
// block = `groups` subwarps of `lanes` threads

// The plan supplies, at compile time:
//   lanes     lanes of a subwarp: 1, 2, 4, 8, 16 or 32
//   groups    subwarps of a block; groups * lanes is a multiple of 32
//   lane_nonzeros  nonzeros of a lane that stay in registers
//   long_row  most nonzeros of a row that one subwarp handles

#include "attention/edge_functors.cuh"
#include "common.cuh"

template <class State>
DEVICE_INLINE State group_state(State state) {
#pragma unroll
    for (int apart = Config::lanes / 2; apart > 0; apart /= 2) {
        state = merged(state, from_lane(state, apart));
    }
    return state;
}

// Handles a row with all subwarps of the block; each has a run of the row's nonzeros.
template <class Functor>
DEVICE_INLINE void long_row(const Functor &functor, long long begin, int degree, int n_cols) {
    __shared__ typename Functor::State parts[Config::groups];
    const int group = int(threadIdx.x) / Config::lanes, lane = int(threadIdx.x) % Config::lanes;
    const int run_nonzeros = ceil_div(degree, Config::groups);
    const int first = group * run_nonzeros + lane, last = min((group + 1) * run_nonzeros, degree);
    for (int head = 0; head < n_cols; ++head) {
        typename Functor::State state = Functor::initial();
#pragma unroll 4
        for (int k = first; k < last; k += Config::lanes) {
            Functor::accumulate(state, functor.load((begin + k) * n_cols + head));
        }
        state = group_state(state);
        __syncthreads();  // all threads have read `parts` of the previous head
        if (lane == 0) parts[group] = state;
        __syncthreads();
        state = parts[0];
        for (int g = 1; g < Config::groups; ++g) state = merged(state, parts[g]);
        for (int k = first; k < last; k += Config::lanes) {
            const long long i = (begin + k) * n_cols + head;
            functor.store(i, functor.load(i), state);
        }
    }
}

template <class Functor>
DEVICE_INLINE void row_by_group(const Functor &functor, const long long *__restrict__ row_pointers,
                                const int *__restrict__ long_rows, int n_long, int n_rows,
                                int n_cols) {
    if (int(blockIdx.x) < n_long) {
        const int row = long_rows[blockIdx.x];
        const long long begin = row_pointers[row];
        long_row(functor, begin, int(row_pointers[row + 1] - begin), n_cols);
        return;
    }
    const int group = int(threadIdx.x) / Config::lanes, lane = int(threadIdx.x) % Config::lanes;
    const long long unit = ((long long)blockIdx.x - n_long) * Config::groups + group;
    const long long row = unit / n_cols;
    const int head = int(unit % n_cols);
    // Subwarps without a row, or with a long row, continue with degree 0 because warps shuffle.
    const bool exists = row < n_rows;
    const long long begin = exists ? row_pointers[row] : 0;
    const long long nonzeros = exists ? row_pointers[row + 1] - begin : 0;
    const int degree = nonzeros > Config::long_row ? 0 : int(nonzeros);

    typename Functor::Element elements[Config::lane_nonzeros];
#pragma unroll
    for (int i = 0; i < Config::lane_nonzeros; ++i) {
        const int k = lane + i * Config::lanes;
        elements[i] =
            k < degree ? functor.load((begin + k) * n_cols + head) : typename Functor::Element{};
    }
    typename Functor::State state = Functor::initial();
#pragma unroll
    for (int i = 0; i < Config::lane_nonzeros; ++i) {
        if (lane + i * Config::lanes < degree) Functor::accumulate(state, elements[i]);
    }
    for (int k = lane + Config::lane_nonzeros * Config::lanes; k < degree; k += Config::lanes) {
        Functor::accumulate(state, functor.load((begin + k) * n_cols + head));
    }
    state = group_state(state);
#pragma unroll
    for (int i = 0; i < Config::lane_nonzeros; ++i) {
        const int k = lane + i * Config::lanes;
        if (k < degree) functor.store((begin + k) * n_cols + head, elements[i], state);
    }
    for (int k = lane + Config::lane_nonzeros * Config::lanes; k < degree; k += Config::lanes) {
        const long long i = (begin + k) * n_cols + head;
        functor.store(i, functor.load(i), state);
    }
}

extern "C" __global__ void __launch_bounds__(Config::groups *Config::lanes)
    edge_softmax(const long long *__restrict__ row_pointers, const int *__restrict__ long_rows,
                 const float *__restrict__ scores, float *__restrict__ alpha, int n_long,
                 int n_rows, int n_cols) {
    RECORD_WARP;
    row_by_group(SoftmaxForward{scores, alpha}, row_pointers, long_rows, n_long, n_rows, n_cols);
}

extern "C" __global__ void __launch_bounds__(Config::groups *Config::lanes)
    edge_softmax_gradient(const long long *__restrict__ row_pointers,
                          const int *__restrict__ long_rows, const float *__restrict__ alpha,
                          const float *__restrict__ d_alpha, float *__restrict__ d_scores,
                          int n_long, int n_rows, int n_cols) {
    RECORD_WARP;
    row_by_group(SoftmaxGradient{alpha, d_alpha, d_scores}, row_pointers, long_rows, n_long, n_rows,
                 n_cols);
}
