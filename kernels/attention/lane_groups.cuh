// How our own attention walks rows: Accel-GCN's blocks for subwarps, as kernels/spmm/
// lane_groups.cu has them. What is computed of a row is the argument Functor (forward.cuh,
// gradient.cuh).
//
//   - head_lanes lanes have a head of a row, heads_together heads side by side are a group; further
//     heads are further tiles of the grid. So a group reads a whole row of several heads at once;
//   - a block loads the columns of its nonzeros into shared memory, all at once, and a lane has the
//     loads of at_once nonzeros on their way: of one row, or of several of one or two nonzeros;
//   - a row's state stays in registers. Where groups share a row, their states meet in shared
//     memory; the parts of a cut row meet in a scratch buffer, and the last to arrive merges them.
//
// grid  = (blocks in the metadata, tiles of heads_together heads)
// block = `groups` subwarps of heads_together * head_lanes threads, rounded up to whole warps
#pragma once

#include "attention/gradient.cuh"
#include "lane_blocks.cuh"

constexpr int GROUP_LANES = Config::heads_together * Config::head_lanes;
constexpr int TILE = GROUP_LANES * WIDTH;  // floats of a group's state, of each output

// The nonzeros of a block: their columns, and which they are.
struct Nonzeros {
    const int *columns;
    Walked walked;
};

// What the parts of cut rows leave for the last of them: (cut blocks, tiles, ...).
struct Scratch {
    float *sums;         // OUTPUTS * TILE
    float2 *heads;       // heads_together
    unsigned *arrivals;  // one
};

template <class Functor>
DEVICE_INLINE State<Functor::OUTPUTS> nothing() {
    State<Functor::OUTPUTS> state = {};
    state.head = Functor::none();
    return state;
}

template <class Functor>
DEVICE_INLINE void write(const Functor &functor, const Position &position, int row,
                         const State<Functor::OUTPUTS> &state) {
#pragma unroll
    for (int o = 0; o < Functor::OUTPUTS; ++o) {
        Columns results;
#pragma unroll
        for (int c = 0; c < WIDTH; ++c) {
            results.x[c] = Functor::result(state.sums[o].x[c], state.head);
        }
        position.store(functor.out(o), row, results);
    }
    if (position.lane == 0 && position.exists()) functor.finish(position.head_of(row), state.head);
}

// Takes N nonzeros from `first` on, as far as they lie below `end`.
template <int N, class Functor>
DEVICE_INLINE void gather(const Functor &functor, const Nonzeros &nonzeros, int first, int end,
                          const Position &position, int (&columns)[N],
                          typename Functor::Item (&items)[N]) {
#pragma unroll
    for (int n = 0; n < N; ++n) columns[n] = first + n < end ? nonzeros.columns[first + n] : -1;
#pragma unroll
    for (int n = 0; n < N; ++n) {
        items[n] = columns[n] >= 0 ? functor.item(position, columns[n]) : typename Functor::Item{};
    }
}

// What those are multiplied with. The lanes of a head find one each and tell each other, before
// anything else is in their registers.
template <int N, class Functor>
DEVICE_INLINE void draw(const Functor &functor, const Nonzeros &nonzeros, int first, int end,
                        const Position &position, float (&multipliers)[N]) {
#pragma unroll
    for (int n = 0; n < N; ++n) multipliers[n] = 1.0f;
    if (unchanged(functor)) return;
#pragma unroll
    for (int from = 0; from < N; from += Config::head_lanes) {
        const int lane_nonzero = first + from + position.lane;
        const float results = lane_nonzero < end
                                  ? factor(functor, nonzeros.walked, lane_nonzero, position.head)
                                  : 0.0f;
#pragma unroll
        for (int n = from; n < N && n < from + Config::head_lanes; ++n) {
            multipliers[n] = Position::from_lane(results, n - from);
        }
    }
}

// Takes them, and writes what is left of each.
template <int N, class Functor>
DEVICE_INLINE void take(Functor &functor, const Nonzeros &nonzeros, int first, int end,
                        const Position &position, State<Functor::OUTPUTS> &state,
                        const typename Functor::Row &lane_nonzero, const int (&columns)[N],
                        const typename Functor::Item (&items)[N], float (&multipliers)[N]) {
    functor.take(state, lane_nonzero, items, columns, multipliers, position);
#pragma unroll
    for (int n = 0; n < N; ++n) {
        const bool mine = position.lane == n % Config::head_lanes && first + n < end;
        if (mine) leave(functor, nonzeros.walked, first + n, multipliers[n]);
    }
}

// Nonzeros begin..end-1 of a row.
template <class Functor>
DEVICE_INLINE State<Functor::OUTPUTS> run(Functor &functor, const Nonzeros &nonzeros, int begin,
                                          int end, int row, const Position &position) {
    State<Functor::OUTPUTS> state = nothing<Functor>();
    const typename Functor::Row lane_nonzero = functor.row(position, row);
    for (int k = begin; k < end; k += Config::at_once) {
        int columns[Config::at_once];
        float multipliers[Config::at_once];
        typename Functor::Item items[Config::at_once];
        draw(functor, nonzeros, k, end, position, multipliers);
        gather(functor, nonzeros, k, end, position, columns, items);
        take(functor, nonzeros, k, end, position, state, lane_nonzero, columns, items, multipliers);
    }
    return state;
}

// Rows of at most N nonzeros that have a group each, ROWS rows of a group at a time.
template <int ROWS, int N, class Functor>
DEVICE_INLINE void short_rows(Functor &functor, const Nonzeros &nonzeros,
                              const int *__restrict__ output_rows, const Block &block, int group,
                              const Position &position) {
    const int degree = block.row_nzs;
    for (int first = group; first < block.rows; first += Config::groups * ROWS) {
        int rows[ROWS], columns[ROWS][N];
        float multipliers[ROWS][N];
        typename Functor::Row lane_nonzero[ROWS];
        typename Functor::Item items[ROWS][N];
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const int row = first + r * Config::groups;
            const int end = row < block.rows ? (row + 1) * degree : 0;
            draw(functor, nonzeros, row * degree, end, position, multipliers[r]);
        }
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const int row = first + r * Config::groups;
            rows[r] = row < block.rows ? output_rows[row] : -1;
            gather(functor, nonzeros, row * degree, rows[r] >= 0 ? (row + 1) * degree : 0, position,
                   columns[r], items[r]);
        }
#pragma unroll
        for (int r = 0; r < ROWS; ++r) lane_nonzero[r] = functor.row(position, max(rows[r], 0));
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            State<Functor::OUTPUTS> state = nothing<Functor>();
            if (rows[r] < 0) break;
            const int begin = (first + r * Config::groups) * degree;
            if (degree > 0) {
                take(functor, nonzeros, begin, begin + degree, position, state, lane_nonzero[r],
                     columns[r], items[r], multipliers[r]);
            }
            write(functor, position, rows[r], state);
        }
    }
}

// Leaves a block's totals, of all its rows: those of its groups, in their order.
template <class Functor>
DEVICE_INLINE void leave_totals(const Functor &functor, float *memory, float *totals, bool busy,
                                int group, const Position &position) {
    const Columns *lane_nonzero = functor.totals();
    if (lane_nonzero == nullptr) return;
    const int lane = int(threadIdx.x) % GROUP_LANES;
    __syncthreads();
#pragma unroll
    for (int c = 0; c < WIDTH; ++c) {
        if (busy) memory[group * TILE + c * GROUP_LANES + lane] = lane_nonzero->x[c];
    }
    __syncthreads();
    if (group > 0) return;  // the first group adds them up
    float *to = totals + (long long)blockIdx.x * position.heads * position.n_cols;
#pragma unroll
    for (int c = 0; c < WIDTH; ++c) {
        float sum = 0.0f;
        for (int g = 0; g < Config::groups; ++g) sum += memory[g * TILE + c * GROUP_LANES + lane];
        const int column = position.column(c / Config::vector) + c % Config::vector;
        if (position.has(c / Config::vector)) to[position.head * position.n_cols + column] = sum;
    }
}

// Rows that have a group each.
template <class Functor>
DEVICE_INLINE void rows_alone(Functor &functor, const Nonzeros &nonzeros,
                              const int *__restrict__ output_rows, const Block &block, int group,
                              const Position &position) {
    if (block.row_nzs <= 1) {
        short_rows<Config::at_once, 1>(functor, nonzeros, output_rows, block, group, position);
    } else if (block.row_nzs == 2) {
        short_rows<(Config::at_once + 1) / 2, 2>(functor, nonzeros, output_rows, block, group,
                                                 position);
    } else {
        for (int row = group; row < block.rows; row += Config::groups) {
            const int first = row * block.row_nzs, out = output_rows[row];
            write(functor, position, out,
                  run(functor, nonzeros, first, first + block.row_nzs, out, position));
        }
    }
}

// Leaves a group's state in shared memory, where those of a row meet.
template <int OUTPUTS>
DEVICE_INLINE void leave_state(const State<OUTPUTS> &state, float *sums, float2 *group_heads,
                               int group, const Position &position) {
    const int lane = int(threadIdx.x) % GROUP_LANES;
#pragma unroll
    for (int o = 0; o < OUTPUTS; ++o) {
#pragma unroll
        for (int c = 0; c < WIDTH; ++c) {
            sums[(group * OUTPUTS + o) * TILE + c * GROUP_LANES + lane] = state.sums[o].x[c];
        }
    }
    if (position.lane == 0) {
        group_heads[group * Config::heads_together + lane / Config::head_lanes] = state.head;
    }
}

// A lane's part of the state of a row, of which groups `first` on have `count` parts.
template <class Functor>
DEVICE_INLINE State<Functor::OUTPUTS> merged_groups(const float *sums, const float2 *group_heads,
                                                    int first, int count, int lane) {
    constexpr int OUTPUTS = Functor::OUTPUTS;
    group_heads += lane / Config::head_lanes;
    State<OUTPUTS> state = nothing<Functor>();
    for (int g = first; g < first + count; ++g) {
        state.head = Functor::together(state.head, group_heads[g * Config::heads_together]);
    }
    for (int g = first; g < first + count; ++g) {
        const float share = Functor::share(group_heads[g * Config::heads_together], state.head);
#pragma unroll
        for (int o = 0; o < OUTPUTS; ++o) {
#pragma unroll
            for (int c = 0; c < WIDTH; ++c) {
                state.sums[o].x[c] +=
                    share * sums[(g * OUTPUTS + o) * TILE + c * GROUP_LANES + lane];
            }
        }
    }
    return state;
}

// Leaves a lane's state of a cut row's part number `number` for the last part.
template <int OUTPUTS>
DEVICE_INLINE void leave_part(const State<OUTPUTS> &state, const Scratch &scratch, int number,
                              int lane) {
#pragma unroll
    for (int o = 0; o < OUTPUTS; ++o) {
#pragma unroll
        for (int c = 0; c < WIDTH; ++c) {
            const int at = o * TILE + c * GROUP_LANES + lane;
            scratch.sums[(long long)number * OUTPUTS * TILE + at] = state.sums[o].x[c];
        }
    }
    if (lane % Config::head_lanes == 0) {
        scratch.heads[number * Config::heads_together + lane / Config::head_lanes] = state.head;
    }
}

// Merges all parts of a cut row, and leaves the scratch as it was: zero.
template <class Functor>
DEVICE_INLINE void merge_parts(const Functor &functor, const Scratch &scratch, int first_part,
                               int parts, int row, const Position &position) {
    constexpr int OUTPUTS = Functor::OUTPUTS;
    State<OUTPUTS> state = nothing<Functor>();
    const int lane = threadIdx.x, head = lane / Config::head_lanes;
    const bool merges = lane < GROUP_LANES;
    for (int pass = 0; pass < 2; ++pass) {
        for (int p = 0; merges && p < parts; ++p) {
            const long long from = (long long)(first_part + p) * gridDim.y + blockIdx.y;
            const float2 part = __ldcg(&scratch.heads[from * Config::heads_together + head]);
            if (pass == 0) {
                state.head = Functor::together(state.head, part);
                continue;
            }
            const float share = Functor::share(part, state.head);
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
    if (merges) write(functor, position, row, state);
    __syncthreads();  // all lanes of a head have read it
    for (int p = 0; merges && position.lane == 0 && p < parts; ++p) {
        const long long from = (long long)(first_part + p) * gridDim.y + blockIdx.y;
        scratch.heads[from * Config::heads_together + head] = make_float2(0.0f, 0.0f);
    }
}

template <class Functor>
DEVICE_INLINE void walk(Functor functor, const int4 *__restrict__ metadata,
                        const int *__restrict__ output_rows, const int *__restrict__ columns,
                        const unsigned *__restrict__ order, const Scratch &scratch, float *totals,
                        int heads, int n_cols) {
    constexpr int OUTPUTS = Functor::OUTPUTS;
    __shared__ int stage[Config::staged];
    __shared__ float sums[Config::groups * (OUTPUTS > 0 ? OUTPUTS : 1) * TILE];
    __shared__ float2 group_heads[Config::groups * Config::heads_together];
    __shared__ bool is_last;

    const Block block = decode(metadata[blockIdx.x]);
    const int group = int(threadIdx.x) / GROUP_LANES;
    const bool busy = group < Config::groups;  // threads beyond the last group only help
    const auto position_of = [&](int lane) -> Position {
        return {int(blockIdx.y) * Config::heads_together + lane / Config::head_lanes,
                lane % Config::head_lanes, heads, n_cols};
    };
    const Position position = position_of(int(threadIdx.x) % GROUP_LANES);
    output_rows += block.first_row;
    for (int i = threadIdx.x; i < block.rows * block.row_nzs; i += Config::block_threads) {
        stage[i] = __ldcs(&columns[block.first_nz + i]);
    }
    __syncthreads();
    const Nonzeros nonzeros = {stage, {order + block.first_nz, block.first_nz}};

    if (!block.cut && block.row_nzs <= block.group_nzs) {
        if (busy) rows_alone(functor, nonzeros, output_rows, block, group, position);
        leave_totals(functor, sums, totals, busy, group, position);
        return;
    }

    // Several groups share each row. Their states meet in shared memory.
    const int groups_per_row = ceil_div(block.row_nzs, block.group_nzs);
    const int row = group / groups_per_row;
    if (busy && row < block.rows) {
        const int begin = group % groups_per_row * block.group_nzs;
        const int end = min(begin + block.group_nzs, block.row_nzs), first = row * block.row_nzs;
        leave_state(run(functor, nonzeros, first + begin, first + end, output_rows[row], position),
                    sums, group_heads, group, position);
    }
    __syncthreads();

    // A lane of each row for each float of a group's state. A cut row's go to its part of scratch.
    const int number = int(blockIdx.x * gridDim.y + blockIdx.y);
    for (int i = threadIdx.x; i < block.rows * GROUP_LANES; i += Config::block_threads) {
        const int own_row = i / GROUP_LANES, lane = i % GROUP_LANES;
        const State<OUTPUTS> state = merged_groups<Functor>(
            sums, group_heads, own_row * groups_per_row, groups_per_row, lane);
        if (block.cut) {
            leave_part(state, scratch, number, lane);
        } else {
            write(functor, position_of(lane), output_rows[own_row], state);
        }
    }
    leave_totals(functor, sums, totals, busy, group, position);
    if (!block.cut) return;
    const int first_part = int(blockIdx.x) - block.part;
    unsigned *arrived = &scratch.arrivals[first_part * gridDim.y + blockIdx.y];
    if (!is_last_block(is_last, arrived, block.parts)) return;
    merge_parts(functor, scratch, first_part, block.parts, output_rows[0], position);
}
