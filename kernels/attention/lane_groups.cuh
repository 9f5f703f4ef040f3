// How our own attention walks rows: Accel-GCN's blocks for lane groups, as kernels/spmm/
// lane_groups.cu has them. What is computed of a row is the argument Problem (forward.cuh,
// gradient.cuh).
//
//   - HEAD_LANES lanes have a head of a row, HEADS_TOGETHER heads side by side are a group; further
//     heads are further tiles of the grid. So a group reads a whole row of several heads at once;
//   - a block loads the columns of its nonzeros into shared memory, all at once, and a lane has the
//     loads of AT_ONCE nonzeros on their way: of one row, or of several of one or two nonzeros;
//   - a row's state stays in registers. Where groups share a row, their states meet in shared
//     memory; the parts of a cut row meet in a scratch buffer, and the last to arrive merges them.
//
// grid  = (blocks in the metadata, tiles of HEADS_TOGETHER heads)
// block = GROUPS groups of HEADS_TOGETHER * HEAD_LANES threads, rounded up to whole warps
#pragma once

#include "attention/gradient.cuh"
#include "lane_blocks.cuh"

#define GROUP_LANES (HEADS_TOGETHER * HEAD_LANES)
#define TILE (GROUP_LANES * WIDTH)  // floats of a group's state, of each output

// The nonzeros of a block: their columns, and which they are.
struct Nonzeros {
    const int *columns;
    Walked walked;
};

// What the parts of cut rows leave for the last of them: (cut blocks, tiles, ...).
struct Scratch {
    float *sums;         // OUTPUTS * TILE
    float2 *heads;       // HEADS_TOGETHER
    unsigned *arrivals;  // one
};

template <class Problem>
__device__ __forceinline__ State<Problem::OUTPUTS> nothing() {
    State<Problem::OUTPUTS> state = {};
    state.head = Problem::none();
    return state;
}

template <class Problem>
__device__ __forceinline__ void write(const Problem &problem, const Place &place, int row,
                                      const State<Problem::OUTPUTS> &state) {
#pragma unroll
    for (int o = 0; o < Problem::OUTPUTS; ++o) {
        Columns found;
#pragma unroll
        for (int c = 0; c < WIDTH; ++c) {
            found.x[c] = Problem::result(state.sums[o].x[c], state.head);
        }
        place.store(problem.out(o), row, found);
    }
    if (place.lane == 0 && place.there()) problem.finish(place.head_of(row), state.head);
}

// Takes N nonzeros from `first` on, as far as they lie below `end`.
template <int N, class Problem>
__device__ __forceinline__ void gather(const Problem &problem, const Nonzeros &nonzeros, int first,
                                       int end, const Place &place, int (&columns)[N],
                                       typename Problem::Item (&items)[N]) {
#pragma unroll
    for (int n = 0; n < N; ++n) columns[n] = first + n < end ? nonzeros.columns[first + n] : -1;
#pragma unroll
    for (int n = 0; n < N; ++n) {
        items[n] = columns[n] >= 0 ? problem.item(place, columns[n]) : typename Problem::Item{};
    }
}

// What those are multiplied with. The lanes of a head find one each and tell each other, before
// anything else is in their registers.
template <int N, class Problem>
__device__ __forceinline__ void draw(const Problem &problem, const Nonzeros &nonzeros, int first,
                                     int end, const Place &place, float (&kept)[N]) {
#pragma unroll
    for (int n = 0; n < N; ++n) kept[n] = 1.0f;
    if (unchanged(problem)) return;
#pragma unroll
    for (int from = 0; from < N; from += HEAD_LANES) {
        const int own = first + from + place.lane;
        const float found = own < end ? factor(problem, nonzeros.walked, own, place.head) : 0.0f;
#pragma unroll
        for (int n = from; n < N && n < from + HEAD_LANES; ++n) {
            kept[n] = Place::from_lane(found, n - from);
        }
    }
}

// Takes them, and writes what is left of each.
template <int N, class Problem>
__device__ __forceinline__ void take(Problem &problem, const Nonzeros &nonzeros, int first, int end,
                                     const Place &place, State<Problem::OUTPUTS> &state,
                                     const typename Problem::Row &own, const int (&columns)[N],
                                     const typename Problem::Item (&items)[N], float (&kept)[N]) {
    problem.take(state, own, items, columns, kept, place);
#pragma unroll
    for (int n = 0; n < N; ++n) {
        const bool mine = place.lane == n % HEAD_LANES && first + n < end;
        if (mine) leave(problem, nonzeros.walked, first + n, kept[n]);
    }
}

// Nonzeros begin..end-1 of a row.
template <class Problem>
__device__ __forceinline__ State<Problem::OUTPUTS> run(Problem &problem, const Nonzeros &nonzeros,
                                                       int begin, int end, int row,
                                                       const Place &place) {
    State<Problem::OUTPUTS> state = nothing<Problem>();
    const typename Problem::Row own = problem.row(place, row);
    for (int k = begin; k < end; k += AT_ONCE) {
        int columns[AT_ONCE];
        float kept[AT_ONCE];
        typename Problem::Item items[AT_ONCE];
        draw(problem, nonzeros, k, end, place, kept);
        gather(problem, nonzeros, k, end, place, columns, items);
        take(problem, nonzeros, k, end, place, state, own, columns, items, kept);
    }
    return state;
}

// Rows of at most N nonzeros that have a group each, ROWS rows of a group at a time.
template <int ROWS, int N, class Problem>
__device__ __forceinline__ void short_rows(Problem &problem, const Nonzeros &nonzeros,
                                           const int *__restrict__ output_rows, const Block &block,
                                           int group, const Place &place) {
    const int degree = block.row_nzs;
    for (int first = group; first < block.rows; first += GROUPS * ROWS) {
        int rows[ROWS], columns[ROWS][N];
        float kept[ROWS][N];
        typename Problem::Row own[ROWS];
        typename Problem::Item items[ROWS][N];
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const int row = first + r * GROUPS;
            const int end = row < block.rows ? (row + 1) * degree : 0;
            draw(problem, nonzeros, row * degree, end, place, kept[r]);
        }
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const int row = first + r * GROUPS;
            rows[r] = row < block.rows ? output_rows[row] : -1;
            gather(problem, nonzeros, row * degree, rows[r] >= 0 ? (row + 1) * degree : 0, place,
                   columns[r], items[r]);
        }
#pragma unroll
        for (int r = 0; r < ROWS; ++r) own[r] = problem.row(place, max(rows[r], 0));
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            State<Problem::OUTPUTS> state = nothing<Problem>();
            if (rows[r] < 0) break;
            const int begin = (first + r * GROUPS) * degree;
            if (degree > 0) {
                take(problem, nonzeros, begin, begin + degree, place, state, own[r], columns[r],
                     items[r], kept[r]);
            }
            write(problem, place, rows[r], state);
        }
    }
}

// Leaves a block's totals, of all its rows: those of its groups, in their order.
template <class Problem>
__device__ __forceinline__ void leave_totals(const Problem &problem, float *memory, float *totals,
                                             bool busy, int group, const Place &place) {
    const Columns *own = problem.totals();
    if (own == nullptr) return;
    const int lane = int(threadIdx.x) % GROUP_LANES;
    __syncthreads();
#pragma unroll
    for (int c = 0; c < WIDTH; ++c) {
        if (busy) memory[group * TILE + c * GROUP_LANES + lane] = own->x[c];
    }
    __syncthreads();
    if (group > 0) return;  // the first group adds them up
    float *to = totals + (long long)blockIdx.x * place.heads * place.n_cols;
#pragma unroll
    for (int c = 0; c < WIDTH; ++c) {
        float sum = 0.0f;
        for (int g = 0; g < GROUPS; ++g) sum += memory[g * TILE + c * GROUP_LANES + lane];
        const int column = place.column(c / VECTOR) + c % VECTOR;
        if (place.has(c / VECTOR)) to[place.head * place.n_cols + column] = sum;
    }
}

template <class Problem>
__device__ __forceinline__ void walk(Problem problem, const int4 *__restrict__ metadata,
                                     const int *__restrict__ output_rows,
                                     const int *__restrict__ columns,
                                     const unsigned *__restrict__ order, const Scratch &scratch,
                                     float *totals, int heads, int n_cols) {
    constexpr int OUTPUTS = Problem::OUTPUTS;
    __shared__ int stage[STAGED];
    __shared__ float sums[GROUPS * (OUTPUTS > 0 ? OUTPUTS : 1) * TILE];
    __shared__ float2 parts[GROUPS * HEADS_TOGETHER];
    __shared__ bool is_last;

    const Block block = decode(metadata[blockIdx.x]);
    const int group = int(threadIdx.x) / GROUP_LANES, group_lane = int(threadIdx.x) % GROUP_LANES;
    const bool busy = group < GROUPS;  // threads beyond the last group only help
    const Place place = {int(blockIdx.y) * HEADS_TOGETHER + group_lane / HEAD_LANES,
                         group_lane % HEAD_LANES, heads, n_cols};
    output_rows += block.first_row;

    const int staged = block.rows * block.row_nzs;
    for (int i = threadIdx.x; i < staged; i += BLOCK_THREADS) {
        stage[i] = __ldcs(&columns[block.first_nz + i]);
    }
    __syncthreads();
    const Nonzeros nonzeros = {stage, {order + block.first_nz, block.first_nz}};

    if (!block.cut && block.row_nzs <= block.group_nzs) {
        if (busy) {
            if (block.row_nzs <= 1) {
                short_rows<AT_ONCE, 1>(problem, nonzeros, output_rows, block, group, place);
            } else if (block.row_nzs == 2) {
                short_rows<(AT_ONCE + 1) / 2, 2>(problem, nonzeros, output_rows, block, group,
                                                 place);
            } else {
                for (int row = group; row < block.rows; row += GROUPS) {
                    const int first = row * block.row_nzs, out = output_rows[row];
                    write(problem, place, out,
                          run(problem, nonzeros, first, first + block.row_nzs, out, place));
                }
            }
        }
        leave_totals(problem, sums, totals, busy, group, place);
        return;
    }

    // Several groups share each row. Their states meet in shared memory.
    const int groups_per_row = ceil_div(block.row_nzs, block.group_nzs);
    const int row = group / groups_per_row;
    if (busy && row < block.rows) {
        const int begin = group % groups_per_row * block.group_nzs;
        const int end = min(begin + block.group_nzs, block.row_nzs), first = row * block.row_nzs;
        const State<OUTPUTS> state =
            run(problem, nonzeros, first + begin, first + end, output_rows[row], place);
#pragma unroll
        for (int o = 0; o < OUTPUTS; ++o) {
#pragma unroll
            for (int c = 0; c < WIDTH; ++c) {
                sums[(group * OUTPUTS + o) * TILE + c * GROUP_LANES + group_lane] =
                    state.sums[o].x[c];
            }
        }
        if (place.lane == 0) {
            parts[group * HEADS_TOGETHER + group_lane / HEAD_LANES] = state.head;
        }
    }
    __syncthreads();

    // A lane of each row for each float of a group's state. A cut row's go to its part of scratch.
    const int first_part = int(blockIdx.x) - block.part;
    const int own_part = int(blockIdx.x * gridDim.y + blockIdx.y);
    const int work = block.rows * GROUP_LANES;
    for (int i = threadIdx.x; i < work; i += BLOCK_THREADS) {
        const int own = i / GROUP_LANES, lane = i % GROUP_LANES, in_tile = lane / HEAD_LANES;
        const Place there = {int(blockIdx.y) * HEADS_TOGETHER + in_tile, lane % HEAD_LANES, heads,
                             n_cols};
        const int first = own * groups_per_row;
        State<OUTPUTS> state = nothing<Problem>();
        for (int g = first; g < first + groups_per_row; ++g) {
            state.head = Problem::together(state.head, parts[g * HEADS_TOGETHER + in_tile]);
        }
        for (int g = first; g < first + groups_per_row; ++g) {
            const float share = Problem::share(parts[g * HEADS_TOGETHER + in_tile], state.head);
#pragma unroll
            for (int o = 0; o < OUTPUTS; ++o) {
#pragma unroll
                for (int c = 0; c < WIDTH; ++c) {
                    state.sums[o].x[c] +=
                        share * sums[(g * OUTPUTS + o) * TILE + c * GROUP_LANES + lane];
                }
            }
        }
        if (!block.cut) {
            write(problem, there, output_rows[own], state);
            continue;
        }
#pragma unroll
        for (int o = 0; o < OUTPUTS; ++o) {
#pragma unroll
            for (int c = 0; c < WIDTH; ++c) {
                const int at = o * TILE + c * GROUP_LANES + lane;
                scratch.sums[(long long)own_part * OUTPUTS * TILE + at] = state.sums[o].x[c];
            }
        }
        if (there.lane == 0) scratch.heads[own_part * HEADS_TOGETHER + in_tile] = state.head;
    }
    leave_totals(problem, sums, totals, busy, group, place);
    if (!block.cut) return;

    // The last part to arrive merges all of them, and leaves the scratch as it was: zero.
    __threadfence();
    __syncthreads();
    unsigned *arrived = &scratch.arrivals[first_part * gridDim.y + blockIdx.y];
    if (threadIdx.x == 0) {
        is_last = atomicAdd(arrived, 1u) == unsigned(block.parts) - 1;
        __threadfence();
    }
    __syncthreads();
    if (!is_last) return;
    if (threadIdx.x == 0) *arrived = 0u;
    State<OUTPUTS> state = nothing<Problem>();
    const int lane = threadIdx.x;
    const bool merges = lane < GROUP_LANES;
    for (int pass = 0; pass < 2; ++pass) {
        for (int p = 0; merges && p < block.parts; ++p) {
            const long long from = (long long)(first_part + p) * gridDim.y + blockIdx.y;
            const float2 part = __ldcg(&scratch.heads[from * HEADS_TOGETHER + lane / HEAD_LANES]);
            if (pass == 0) {
                state.head = Problem::together(state.head, part);
                continue;
            }
            const float share = Problem::share(part, state.head);
#pragma unroll
            for (int o = 0; o < OUTPUTS; ++o) {
#pragma unroll
                for (int c = 0; c < WIDTH; ++c) {
                    float *sum =
                        &scratch.sums[(from * OUTPUTS + o) * TILE + c * GROUP_LANES + lane];
                    state.sums[o].x[c] += share * __ldcg(sum);
                    *sum = 0.0f;
                }
            }
        }
    }
    if (merges) write(problem, place, output_rows[0], state);
    __syncthreads();  // all lanes of a head have read it
    for (int p = 0; merges && place.lane == 0 && p < block.parts; ++p) {
        const long long from = (long long)(first_part + p) * gridDim.y + blockIdx.y;
        scratch.heads[from * HEADS_TOGETHER + lane / HEAD_LANES] = make_float2(0.0f, 0.0f);
    }
}
