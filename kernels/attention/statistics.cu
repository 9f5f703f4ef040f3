// What a gradient of attention needs of each receiver and head, in one position: D = dY . Y beside
// the logsumexp of its scores, and GAT's own score. A receiver's is read once for each of its
// nonzeros.
//
// grid  = rows x heads over block_threads / head_lanes, rounded up
// block = block_threads threads, head_lanes of them for a head of a row

// The plan supplies, at compile time:
//   block_threads   threads of a block
//   vector, head_lanes, lane_vectors, whole_lanes, whole_heads   how lanes cover a head; see
//   columns.cuh

#include "attention/columns.cuh"

// Returns D to all lanes of a head, and where it is; `row` is past the last one where nothing is.
DEVICE_INLINE float row_product(Input Y, Input dY, int n_receivers, int heads, int n_cols,
                                Position &position, int &row) {
    const long long unit = (long long)blockIdx.x * (Config::block_threads / Config::head_lanes) +
                           threadIdx.x / Config::head_lanes;
    row = int(min(unit / heads, (long long)n_receivers));
    position = {int(unit % heads), int(threadIdx.x) % Config::head_lanes, heads, n_cols};
    if (row >= n_receivers) return 0.0f;
    return Position::sum(inner(position.load(Y, row), position.load(dY, row)));
}

extern "C" __global__ void __launch_bounds__(Config::block_threads)
    statistics_of_gat(Input receiver, Input Y, Input logsumexp, Input dY,
                      float4 *__restrict__ statistics, int n_receivers, int heads, int n_cols) {
    RECORD_WARP;
    Position position;
    int row;
    const float D = row_product(Y, dY, n_receivers, heads, n_cols, position, row);
    if (row >= n_receivers || position.lane != 0) return;
    const long long at = position.head_of(row);
    statistics[at] = make_float4(receiver[at], logsumexp[at], D, 0.0f);
}

extern "C" __global__ void __launch_bounds__(Config::block_threads)
    statistics_of_any(Input Y, Input logsumexp, Input dY, float2 *__restrict__ statistics,
                      int n_receivers, int heads, int n_cols) {
    RECORD_WARP;
    Position position;
    int row;
    const float D = row_product(Y, dY, n_receivers, heads, n_cols, position, row);
    if (row >= n_receivers || position.lane != 0) return;
    const long long at = position.head_of(row);
    statistics[at] = make_float2(logsumexp[at], D);
}
