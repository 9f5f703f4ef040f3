// Row loop of our attention: thread blocks as in kernels/spmm/lane_groups.cu. The argument Functor
// defines the computation per row (forward.cuh, gradient.cuh).
//
//   - head_lanes lanes handle one head of a row. heads_together neighboring heads form a group of
//     lanes, which reads them together. Further heads are further tiles of the grid.
//   - A block loads the columns of its nonzeros into shared memory together. A lane starts the
//   loads
//     of at_once nonzeros together: of one row, or of several rows of one or two nonzeros.
//   - A row's state stays in registers. Groups that share a row merge their states in shared
//   memory.
//     The blocks of a split row store their states in global memory; the last one merges them.
//
// grid  = (blocks in the metadata, tiles of heads_together heads)
// block = `groups` subwarps of heads_together * head_lanes threads, rounded up to whole warps
#pragma once

#include "attention/extrema.cuh"
#include "lane_blocks.cuh"

constexpr int GROUP_LANES = Config::heads_together * Config::head_lanes;
constexpr int TILE = GROUP_LANES * WIDTH;  // floats of one output in a group's state

// The nonzeros of a block: their columns in shared memory, and their indices.
struct Nonzeros {
    const int *columns;
    NonzeroRange range;
};

// States of the parts of split rows, in global memory. Leading dimensions: (split blocks, tiles).
struct Scratch {
    float *sums;         // further dimensions: (OUTPUTS * TILE)
    float2 *heads;       // (heads_together)
    unsigned *arrivals;  // parts that have stored their states
};

template <class Functor>
DEVICE_INLINE State<Functor::OUTPUTS> initial_state() {
    State<Functor::OUTPUTS> state;
    Functor::initialize(state);
    return state;
}

template <class Functor>
DEVICE_INLINE void write(const Functor &functor, const Position &position, int row,
                         State<Functor::OUTPUTS> state) {
    functor.finish(state);
#pragma unroll
    for (int o = 0; o < Functor::OUTPUTS; ++o) {
        position.store(functor.output(o), row, state.sums[o]);
    }
    if (position.lane == 0 && position.exists() && position.is_first_tile())
        functor.store_head(position.score_of(row), state.head);
}

// Loads the items of N nonzeros from `first` on. Columns are -1 for nonzeros at `end` and beyond.
template <int N, class Functor>
DEVICE_INLINE void load_items(const Functor &functor, const Nonzeros &nonzeros, int first, int end,
                              const Position &position, int (&columns)[N],
                              typename Functor::Item (&items)[N]) {
#pragma unroll
    for (int n = 0; n < N; ++n) columns[n] = first + n < end ? nonzeros.columns[first + n] : -1;
#pragma unroll
    for (int n = 0; n < N; ++n) {
        items[n] = columns[n] >= 0 ? functor.item(position, columns[n]) : absent_item(functor);
    }
}

// Computes the multipliers of N nonzeros from `first` on. Each lane of a head computes one in
// turn and shares it by shuffles. Runs before the loads of items, when most registers are free.
template <int N, class Functor>
DEVICE_INLINE void load_multipliers(const Functor &functor, const Nonzeros &nonzeros, int first,
                                    int end, const Position &position, float (&multipliers)[N]) {
#pragma unroll
    for (int n = 0; n < N; ++n) multipliers[n] = 1.0f;
    if (multipliers_are_one(functor)) return;
#pragma unroll
    for (int from = 0; from < N; from += Config::head_lanes) {
        const int lane_nonzero = first + from + position.lane;
        const float lane_multiplier =
            lane_nonzero < end
                ? factor(functor, nonzeros.range, lane_nonzero, position.head / Config::head_tiles)
                : 0.0f;
#pragma unroll
        for (int n = from; n < N && n < from + Config::head_lanes; ++n) {
            multipliers[n] = Position::from_lane(lane_multiplier, n - from);
        }
    }
}

// Accumulates N loaded nonzeros and writes their gradients, if the functor has any.
template <int N, class Functor>
DEVICE_INLINE void accumulate(Functor &functor, const Nonzeros &nonzeros, int first, int end,
                              const Position &position, State<Functor::OUTPUTS> &state,
                              const typename Functor::Row &row, const int (&columns)[N],
                              const typename Functor::Item (&items)[N], float (&multipliers)[N]) {
    functor.accumulate(state, row, items, columns, multipliers, position);
#pragma unroll
    for (int n = 0; n < N; ++n) {
        const bool writes = position.lane == n % Config::head_lanes && first + n < end;
        if (writes) store_gradient(functor, nonzeros.range, first + n, multipliers[n]);
    }
}

// Returns the state of nonzeros begin to end - 1 of a row.
template <class Functor>
DEVICE_INLINE State<Functor::OUTPUTS> process_nonzeros(Functor &functor, const Nonzeros &nonzeros,
                                                       int begin, int end, int row,
                                                       const Position &position) {
    State<Functor::OUTPUTS> state = initial_state<Functor>();
    const typename Functor::Row operands = functor.row(position, row);
    for (int k = begin; k < end; k += Config::at_once) {
        int columns[Config::at_once];
        float multipliers[Config::at_once];
        typename Functor::Item items[Config::at_once];
        load_multipliers(functor, nonzeros, k, end, position, multipliers);
        load_items(functor, nonzeros, k, end, position, columns, items);
        accumulate(functor, nonzeros, k, end, position, state, operands, columns, items,
                   multipliers);
    }
    return state;
}

// Sources are indices of nonzeros until the end. Of the last nonzeros some may be absent.
template <class Reduction>
DEVICE_INLINE State<2> process_nonzeros(Extremum<Reduction> &functor, const Nonzeros &nonzeros,
                                        int begin, int end, int, const Position &position) {
    constexpr int N = Config::at_once;
    State<2> state = initial_state<Extremum<Reduction>>();
    typename Extremum<Reduction>::Item items[N];
    int k = begin;
    for (; k + N <= end; k += N) {
#pragma unroll
        for (int n = 0; n < N; ++n) items[n] = functor.item(position, nonzeros.columns[k + n]);
        functor.accumulate_run(state, items, k, k + N);
    }
    if (k < end) {
        int columns[N];
        load_items(functor, nonzeros, k, end, position, columns, items);
        functor.accumulate_run(state, items, k, end);
    }
#pragma unroll
    for (int c = 0; c < WIDTH; ++c) {
        float &bits = state.sums[1].x[c];
        const int source = __float_as_int(bits);
        if (source >= 0) bits = __int_as_float(nonzeros.columns[source]);
    }
    return state;
}

// The gradient of extrema finds the nonzeros to load before it loads them.
DEVICE_INLINE State<1> process_nonzeros(ExtremumSources &functor, const Nonzeros &nonzeros,
                                        int begin, int end, int row, const Position &position) {
    State<1> state = initial_state<ExtremumSources>();
    const ExtremumSources::Row operands = functor.row(position, row);
    functor.accumulate_run(state, operands, nonzeros.columns + begin, end - begin, position);
    return state;
}

// Of rows with equal extrema few are left.
DEVICE_INLINE State<0> process_nonzeros(TiedExtrema &functor, const Nonzeros &nonzeros, int begin,
                                        int end, int row, const Position &position) {
    if (functor.is_tied(row, position)) {
        functor.add<Config::at_once>(nonzeros.columns + begin, end - begin, row, position);
    }
    return initial_state<TiedExtrema>();
}

// Handles rows of at most N nonzeros, each by one group; a group handles ROWS rows at a time.
template <int ROWS, int N, class Functor>
DEVICE_INLINE void process_short_rows(Functor &functor, const Nonzeros &nonzeros,
                                      const int *__restrict__ output_rows, const Block &block,
                                      int group, const Position &position) {
    const int degree = block.row_nzs;
    for (int first = group; first < block.rows; first += Config::groups * ROWS) {
        int rows[ROWS], columns[ROWS][N];
        float multipliers[ROWS][N];
        typename Functor::Row operands[ROWS];
        typename Functor::Item items[ROWS][N];
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const int row = first + r * Config::groups;
            const int end = row < block.rows ? (row + 1) * degree : 0;
            load_multipliers(functor, nonzeros, row * degree, end, position, multipliers[r]);
        }
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const int row = first + r * Config::groups;
            rows[r] = row < block.rows ? output_rows[row] : -1;
            load_items(functor, nonzeros, row * degree, rows[r] >= 0 ? (row + 1) * degree : 0,
                       position, columns[r], items[r]);
        }
#pragma unroll
        for (int r = 0; r < ROWS; ++r) operands[r] = functor.row(position, max(rows[r], 0));
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            State<Functor::OUTPUTS> state = initial_state<Functor>();
            if (rows[r] < 0) break;
            const int begin = (first + r * Config::groups) * degree;
            if (degree > 0) {
                accumulate(functor, nonzeros, begin, begin + degree, position, state, operands[r],
                           columns[r], items[r], multipliers[r]);
            }
            write(functor, position, rows[r], state);
        }
    }
}

template <int ROWS, int N>
DEVICE_INLINE void process_short_rows(TiedExtrema &functor, const Nonzeros &nonzeros,
                                      const int *__restrict__ output_rows, const Block &block,
                                      int group, const Position &position) {
    for (int row = group; row < block.rows; row += Config::groups) {
        const int first = row * block.row_nzs;
        process_nonzeros(functor, nonzeros, first, first + block.row_nzs, output_rows[row],
                         position);
    }
}

// Returns whether a block has something to do, for all of its threads.
template <class Functor>
DEVICE_INLINE bool has_work(const Functor &, const int *, const Block &, const Position &) {
    return true;
}
DEVICE_INLINE bool has_work(const TiedExtrema &functor, const int *__restrict__ output_rows,
                            const Block &block, const Position &position) {
    bool is_tied = false;
    const int group = int(threadIdx.x) / GROUP_LANES;
    for (int row = group; row < block.rows; row += Config::block_threads / GROUP_LANES) {
        is_tied |= functor.is_tied(output_rows[row], position);
    }
    return __syncthreads_or(is_tied);
}

// Stores the sum of a block's totals over all its rows. Groups are added in their order.
template <class Functor>
DEVICE_INLINE void store_block_totals(const Functor &functor, float *memory, float *totals,
                                      bool busy, int group, const Position &position) {
    const Columns *lane_totals = functor.totals();
    if (lane_totals == nullptr) return;
    const int lane = int(threadIdx.x) % GROUP_LANES;
    __syncthreads();
#pragma unroll
    for (int c = 0; c < WIDTH; ++c) {
        if (busy) memory[group * TILE + c * GROUP_LANES + lane] = lane_totals->x[c];
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

// Handles rows that one group each has to itself.
template <class Functor>
DEVICE_INLINE void process_unshared_rows(Functor &functor, const Nonzeros &nonzeros,
                                         const int *__restrict__ output_rows, const Block &block,
                                         int group, const Position &position) {
    if (block.row_nzs <= 1) {
        process_short_rows<Config::at_once, 1>(functor, nonzeros, output_rows, block, group,
                                               position);
    } else if (block.row_nzs == 2) {
        process_short_rows<(Config::at_once + 1) / 2, 2>(functor, nonzeros, output_rows, block,
                                                         group, position);
    } else {
        for (int row = group; row < block.rows; row += Config::groups) {
            const int first = row * block.row_nzs, output_row = output_rows[row];
            write(functor, position, output_row,
                  process_nonzeros(functor, nonzeros, first, first + block.row_nzs, output_row,
                                   position));
        }
    }
}

// Stores a group's state in shared memory, where the states of a row are merged.
template <int OUTPUTS>
DEVICE_INLINE void store_group_state(const State<OUTPUTS> &state, float *sums, float2 *group_heads,
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

// Returns the lane's part of a row's state, merged from groups first to first + count - 1.
template <class Functor>
DEVICE_INLINE State<Functor::OUTPUTS> merged_groups(const Functor &functor, const float *sums,
                                                    const float2 *group_heads, int first, int count,
                                                    int lane) {
    constexpr int OUTPUTS = Functor::OUTPUTS;
    group_heads += lane / Config::head_lanes;
    State<OUTPUTS> state = initial_state<Functor>();
    for (int g = first; g < first + count; ++g) {
        state.head = Functor::merge(state.head, group_heads[g * Config::heads_together]);
    }
    for (int g = first; g < first + count; ++g) {
        const float part_factor =
            Functor::part_factor(group_heads[g * Config::heads_together], state.head);
        State<OUTPUTS> part;
#pragma unroll
        for (int o = 0; o < OUTPUTS; ++o) {
#pragma unroll
            for (int c = 0; c < WIDTH; ++c) {
                part.sums[o].x[c] = sums[(g * OUTPUTS + o) * TILE + c * GROUP_LANES + lane];
            }
        }
        functor.merge_sums(state, part, part_factor);
    }
    return state;
}

// Stores the lane's state of block `number`, a part of a split row, for the last part to merge.
template <int OUTPUTS>
DEVICE_INLINE void store_part(const State<OUTPUTS> &state, const Scratch &scratch, int number,
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

// Merges the states of all parts of a split row and writes the row. Each group merges neighboring
// parts, then the first group merges their results.
template <class Functor>
DEVICE_INLINE void merge_parts(const Functor &functor, const Scratch &scratch, float *sums,
                               float2 *group_heads, int first_part, int parts, int row, bool busy,
                               int group, const Position &position) {
    constexpr int OUTPUTS = Functor::OUTPUTS;
    const int lane = int(threadIdx.x) % GROUP_LANES, head = lane / Config::head_lanes;
    const int group_parts = ceil_div(parts, Config::groups);
    const int begin = min(group * group_parts, parts), end = min(begin + group_parts, parts);
    const auto head_of_part = [&](int part) {
        const long long from = (long long)(first_part + part) * gridDim.y + blockIdx.y;
        return __ldcg(&scratch.heads[from * Config::heads_together + head]);
    };
    if (busy) {
        State<OUTPUTS> state = initial_state<Functor>();
#pragma unroll 4
        for (int p = begin; p < end; ++p) state.head = Functor::merge(state.head, head_of_part(p));
#pragma unroll 1  // further unrolling would need too many registers
        for (int p = begin; p < end; ++p) {
            const long long from = (long long)(first_part + p) * gridDim.y + blockIdx.y;
            State<OUTPUTS> part;
#pragma unroll
            for (int o = 0; o < OUTPUTS; ++o) {
#pragma unroll
                for (int c = 0; c < WIDTH; ++c) {
                    const int at = o * TILE + c * GROUP_LANES + lane;
                    part.sums[o].x[c] = __ldcg(&scratch.sums[from * OUTPUTS * TILE + at]);
                }
            }
            functor.merge_sums(state, part, Functor::part_factor(head_of_part(p), state.head));
        }
        store_group_state(state, sums, group_heads, group, position);
    }
    __syncthreads();
    if (group > 0) return;
    write(functor, position, row,
          merged_groups(functor, sums, group_heads, 0, Config::groups, lane));
}

// Handles all rows of a block. `totals` is null unless the functor has totals of all rows.
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
    const bool busy = group < Config::groups;  // threads beyond the last group only help with loads
    const auto position_of = [&](int lane) -> Position {
        return {int(blockIdx.y) * Config::heads_together + lane / Config::head_lanes,
                lane % Config::head_lanes, heads, n_cols};
    };
    const Position position = position_of(int(threadIdx.x) % GROUP_LANES);
    output_rows += block.first_row;
    if (!has_work(functor, output_rows, block, position)) return;
    for (int i = threadIdx.x; i < block.rows * block.row_nzs; i += Config::block_threads) {
        stage[i] = __ldcs(&columns[block.first_nz + i]);
    }
    __syncthreads();
    const Nonzeros nonzeros = {stage, {order + block.first_nz, block.first_nz}};

    if (!block.split && block.row_nzs <= block.group_nzs) {
        if (busy) process_unshared_rows(functor, nonzeros, output_rows, block, group, position);
        store_block_totals(functor, sums, totals, busy, group, position);
        return;
    }

    // Several groups share each row and merge their states in shared memory.
    const int groups_per_row = ceil_div(block.row_nzs, block.group_nzs);
    const int row = group / groups_per_row;
    if (busy && row < block.rows) {
        const int begin = group % groups_per_row * block.group_nzs;
        const int end = min(begin + block.group_nzs, block.row_nzs), first = row * block.row_nzs;
        store_group_state(process_nonzeros(functor, nonzeros, first + begin, first + end,
                                           output_rows[row], position),
                          sums, group_heads, group, position);
    }
    __syncthreads();

    // One thread per row and lane of a group merges. A split row's state goes to the scratch.
    const int number = int(blockIdx.x * gridDim.y + blockIdx.y);
    for (int i = threadIdx.x; i < block.rows * GROUP_LANES; i += Config::block_threads) {
        const int block_row = i / GROUP_LANES, lane = i % GROUP_LANES;
        const State<OUTPUTS> state = merged_groups(
            functor, sums, group_heads, block_row * groups_per_row, groups_per_row, lane);
        if (block.split) {
            store_part(state, scratch, number, lane);
        } else {
            write(functor, position_of(lane), output_rows[block_row], state);
        }
    }
    store_block_totals(functor, sums, totals, busy, group, position);
    if (!block.split) return;
    const int first_part = int(blockIdx.x) - block.part;
    unsigned *arrived = &scratch.arrivals[first_part * gridDim.y + blockIdx.y];
    if (!is_last_block(is_last, arrived, block.parts)) return;
    merge_parts(functor, scratch, sums, group_heads, first_part, block.parts, output_rows[0], busy,
                group, position);
}
