// Our own softmax over the nonzeros of each row, and its gradient: each edge value is read once.
//
//   - A group of LANES lanes has a head of a row. Groups side by side have the heads of one row, so
//     that a warp reads neighboring values whatever the number of heads;
//   - a lane keeps KEPT nonzeros in registers, all of whose loads are on their way at once. Only
//   what
//     a row has beyond LANES * KEPT nonzeros is read a second time;
//   - a row of more than LONG_ROW nonzeros has a block for itself, whose groups share it. These
//     blocks come first.
//
// grid  = long rows, then rows x heads over GROUPS, rounded up
// block = GROUPS groups of LANES threads

// The plan supplies, at compile time:
//   LANES     lanes of a group: 1, 2, 4, 8, 16 or 32
//   GROUPS    groups of a block, of which whole warps can be made
//   KEPT      nonzeros of a lane that stay in registers
//   LONG_ROW  most nonzeros of a row that one group has
#if !defined(LANES) || !defined(GROUPS) || !defined(KEPT) || !defined(LONG_ROW)
#error "edge_lane_groups.cu is compiled by accelviz, which supplies the constants listed above"
#endif

#include "attention/edge_problems.cuh"
#include "common.cuh"

template <class State>
__device__ __forceinline__ State group_state(State state) {
#pragma unroll
    for (int apart = LANES / 2; apart > 0; apart /= 2) {
        state = merged(state, from_lane(state, apart));
    }
    return state;
}

// A row of a block's own; every group has a run of its nonzeros.
template <class Problem>
__device__ __forceinline__ void long_row(const Problem &problem, long long begin, int degree,
                                         int n_cols) {
    __shared__ typename Problem::State parts[GROUPS];
    const int group = int(threadIdx.x) / LANES, lane = int(threadIdx.x) % LANES;
    const int share = ceil_div(degree, GROUPS);
    const int first = group * share + lane, last = min((group + 1) * share, degree);
    for (int head = 0; head < n_cols; ++head) {
        typename Problem::State state = Problem::none();
#pragma unroll 4
        for (int k = first; k < last; k += LANES) {
            Problem::take(state, problem.load((begin + k) * n_cols + head));
        }
        state = group_state(state);
        __syncthreads();  // the head before has been read
        if (lane == 0) parts[group] = state;
        __syncthreads();
        state = parts[0];
        for (int g = 1; g < GROUPS; ++g) state = merged(state, parts[g]);
        for (int k = first; k < last; k += LANES) {
            const long long at = (begin + k) * n_cols + head;
            problem.store(at, problem.load(at), state);
        }
    }
}

template <class Problem>
__device__ __forceinline__ void row_by_group(const Problem &problem,
                                             const long long *__restrict__ row_pointers,
                                             const int *__restrict__ long_rows, int n_long,
                                             int n_rows, int n_cols) {
    if (int(blockIdx.x) < n_long) {
        const int row = long_rows[blockIdx.x];
        const long long begin = row_pointers[row];
        long_row(problem, begin, int(row_pointers[row + 1] - begin), n_cols);
        return;
    }
    const int group = int(threadIdx.x) / LANES, lane = int(threadIdx.x) % LANES;
    const long long unit = ((long long)blockIdx.x - n_long) * GROUPS + group;
    const long long row = unit / n_cols;
    const int head = int(unit % n_cols);
    // A group without a row, or with one that a block has, does nothing where lanes meet.
    const bool there = row < n_rows;
    const long long begin = there ? row_pointers[row] : 0;
    const long long nonzeros = there ? row_pointers[row + 1] - begin : 0;
    const int degree = nonzeros > LONG_ROW ? 0 : int(nonzeros);

    typename Problem::Element kept[KEPT];
#pragma unroll
    for (int i = 0; i < KEPT; ++i) {
        const int k = lane + i * LANES;
        kept[i] =
            k < degree ? problem.load((begin + k) * n_cols + head) : typename Problem::Element{};
    }
    typename Problem::State state = Problem::none();
#pragma unroll
    for (int i = 0; i < KEPT; ++i) {
        if (lane + i * LANES < degree) Problem::take(state, kept[i]);
    }
    for (int k = lane + KEPT * LANES; k < degree; k += LANES) {
        Problem::take(state, problem.load((begin + k) * n_cols + head));
    }
    state = group_state(state);
#pragma unroll
    for (int i = 0; i < KEPT; ++i) {
        const int k = lane + i * LANES;
        if (k < degree) problem.store((begin + k) * n_cols + head, kept[i], state);
    }
    for (int k = lane + KEPT * LANES; k < degree; k += LANES) {
        const long long at = (begin + k) * n_cols + head;
        problem.store(at, problem.load(at), state);
    }
}

extern "C" __global__ void __launch_bounds__(GROUPS *LANES)
    edge_softmax(const long long *__restrict__ row_pointers, const int *__restrict__ long_rows,
                 const float *__restrict__ scores, float *__restrict__ alpha, int n_long,
                 int n_rows, int n_cols) {
    RECORD_WARP;
    row_by_group(Forward{scores, alpha}, row_pointers, long_rows, n_long, n_rows, n_cols);
}

extern "C" __global__ void __launch_bounds__(GROUPS *LANES)
    edge_softmax_gradient(const long long *__restrict__ row_pointers,
                          const int *__restrict__ long_rows, const float *__restrict__ alpha,
                          const float *__restrict__ d_alpha, float *__restrict__ d_scores,
                          int n_long, int n_rows, int n_cols) {
    RECORD_WARP;
    row_by_group(Gradient{alpha, d_alpha, d_scores}, row_pointers, long_rows, n_long, n_rows,
                 n_cols);
}
