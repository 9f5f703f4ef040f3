// Statistics of each row and head, which the gradients of attention read once per nonzero:
// D = dY . Y and the logsumexp of the row's scores, for GAT also the row's score term `receiver`.
// They are stored side by side, so that one load fetches all of them.
//
// grid  = rows x heads over block_threads / head_lanes, rounded up
// block = block_threads threads, head_lanes of them per row and head

// The plan supplies, at compile time:
//   block_threads   threads of a block
//   vector, head_lanes, lane_vectors, whole_lanes, whole_heads   how lanes cover a head; see
//   columns.cuh

#include "attention/columns.cuh"

// Returns D to all lanes of a head, and sets `position` and `row`. If the thread's unit is beyond
// the last row, `row` is n_targets.
DEVICE_INLINE float row_product(Input Y, Input dY, int n_targets, int heads, int n_cols,
                                Position &position, int &row) {
    const long long unit = (long long)blockIdx.x * (Config::block_threads / Config::head_lanes) +
                           threadIdx.x / Config::head_lanes;
    row = int(min(unit / heads, (long long)n_targets));
    position = {int(unit % heads), int(threadIdx.x) % Config::head_lanes, heads, n_cols};
    if (row >= n_targets) return 0.0f;
    return Position::sum(inner(position.load(Y, row), position.load(dY, row)));
}

extern "C" __global__ void __launch_bounds__(Config::block_threads)
    statistics_of_gat(Input receiver, Input Y, Input logsumexp, Input dY,
                      float4 *__restrict__ statistics, int n_targets, int heads, int n_cols) {
    RECORD_WARP;
    Position position;
    int row;
    const float D = row_product(Y, dY, n_targets, heads, n_cols, position, row);
    if (row >= n_targets || position.lane != 0) return;
    const long long index = position.head_of(row);
    statistics[index] = make_float4(receiver[index], logsumexp[index], D, 0.0f);
}

extern "C" __global__ void __launch_bounds__(Config::block_threads)
    statistics_of_any(Input Y, Input logsumexp, Input dY, float2 *__restrict__ statistics,
                      int n_targets, int heads, int n_cols) {
    RECORD_WARP;
    Position position;
    int row;
    const float D = row_product(Y, dY, n_targets, heads, n_cols, position, row);
    if (row >= n_targets || position.lane != 0) return;
    const long long index = position.head_of(row);
    statistics[index] = make_float2(logsumexp[index], D);
}
