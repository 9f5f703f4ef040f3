// Statistics of each row and head, which the gradients of attention read once per nonzero:
// row_max, 1 / row_sum, D = dY . Y, and for GAT the row's score term `receiver`. They are stored
// side by side, so that one load fetches all of them.
//
// grid  = rows x heads over block_threads / head_lanes, rounded up
// block = block_threads threads, head_lanes of them per row and head

// The plan supplies, at compile time:
//   block_threads   threads of a block
//   vector, head_lanes, lane_vectors, whole_lanes, whole_heads   how lanes cover a head; see
//   columns.cuh

#include "attention/codes.cuh"

// A unit is a row and head; head_lanes neighboring threads have it.
DEVICE_INLINE long long unit_of_thread() {
    return (long long)blockIdx.x * (Config::block_threads / Config::head_lanes) +
           threadIdx.x / Config::head_lanes;
}
DEVICE_INLINE Position position_of(long long unit, int heads, int n_cols) {
    return {int(unit % heads), int(threadIdx.x) % Config::head_lanes, heads, n_cols};
}

// `receiver` is nullptr but for GAT.
DEVICE_INLINE void write_statistics(Input receiver, Input Y, Input row_max, Input row_sum, Input dY,
                                    float4 *__restrict__ statistics, int n_targets, int heads,
                                    int n_cols) {
    const long long unit = unit_of_thread();
    if (unit >= (long long)n_targets * heads) return;
    const int row = int(unit / heads);
    const Position position = position_of(unit, heads, n_cols);
    const float D = Position::sum(inner(position.load(Y, row), position.load(dY, row)));
    if (position.lane != 0) return;
    statistics[unit] = make_float4(row_max[unit], 1.0f / row_sum[unit], D,
                                   receiver == nullptr ? 0.0f : receiver[unit]);
}

extern "C" __global__ void __launch_bounds__(Config::block_threads)
    statistics_of_gat(Input receiver, Input Y, Input row_max, Input row_sum, Input dY,
                      float4 *__restrict__ statistics, int n_targets, int heads, int n_cols) {
    RECORD_WARP;
    write_statistics(receiver, Y, row_max, row_sum, dY, statistics, n_targets, heads, n_cols);
}

extern "C" __global__ void __launch_bounds__(Config::block_threads)
    statistics_of_any(Input Y, Input row_max, Input row_sum, Input dY,
                      float4 *__restrict__ statistics, int n_targets, int heads, int n_cols) {
    RECORD_WARP;
    write_statistics(nullptr, Y, row_max, row_sum, dY, statistics, n_targets, heads, n_cols);
}

// Codes of the extrema Y, which their gradient reads in place of most of Y.
extern "C" __global__ void __launch_bounds__(Config::block_threads)
    codes_of_extrema(Input Y, unsigned char *__restrict__ codes, int n_targets, int heads,
                     int n_cols) {
    RECORD_WARP;
    const long long unit = unit_of_thread();
    if (unit >= (long long)n_targets * heads) return;
    const Position position = position_of(unit, heads, n_cols);
    const int row = int(unit / heads);
    const Columns y = position.load(Y, row);
#pragma unroll
    for (int i = 0; i < Config::lane_vectors; ++i) {
        Code *to = reinterpret_cast<Code *>(codes + position.element(row, i));
        if (position.has(i)) *to = code_of(y, i);
    }
}

// Adds dY of the extrema that one nonzero has to dX, and finds the rows and heads of the others.
extern "C" __global__ void __launch_bounds__(Config::block_threads)
    unique_extrema(Input dY, const int *__restrict__ source, unsigned char *__restrict__ tied,
                   Output dX, int n_targets, int heads, int n_cols) {
    RECORD_WARP;
    const long long unit = unit_of_thread();
    if (unit >= (long long)n_targets * heads) return;
    const Position position = position_of(unit, heads, n_cols);
    const int row = int(unit / heads);
    Vector sources[Config::lane_vectors] = {}, dy[Config::lane_vectors] = {};
#pragma unroll
    for (int v = 0; v < Config::lane_vectors; ++v) {
        if (!position.has(v)) continue;
        sources[v] = load_sources(source, position, row, v);
        dy[v] = __ldg(position.vector(dY, row, v));
    }
    bool is_tied = false;
#pragma unroll
    for (int v = 0; v < Config::lane_vectors; ++v) {
        if (!position.has(v)) continue;
#pragma unroll
        for (int j = 0; j < Config::vector; ++j) {
            const int from = __float_as_int(part(sources[v], j));
            is_tied |= from < -1;
            if (from >= 0) atomicAdd(dX + position.element(from, v) + j, part(dy[v], j));
        }
    }
    const bool any_tied = __any_sync(Position::lanes(), is_tied);
    if (position.lane == 0) tied[unit] = any_tied;
}
