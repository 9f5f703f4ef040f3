// What a gradient of attention needs of each receiver and head, in one place: D = dY . Y beside the
// logsumexp of its scores, and GAT's own score. A receiver's is read once for each of its nonzeros.
//
// grid  = rows x heads over block_threads / head_lanes, rounded up
// block = block_threads threads, head_lanes of them for a head of a row

// The plan supplies, at compile time:
//   block_threads   threads of a block
//   vector, head_lanes, lane_vectors, whole_lanes, whole_heads   how lanes cover a head; see
//   columns.cuh

#include "attention/columns.cuh"

// Returns D to all lanes of a head, and where it is; `row` is past the last one where nothing is.
__device__ __forceinline__ float row_product(const float *__restrict__ Y,
                                             const float *__restrict__ dY, int n_receivers,
                                             int heads, int n_cols, Place &place, int &row) {
    const long long unit = (long long)blockIdx.x * (Config::block_threads / Config::head_lanes) +
                           threadIdx.x / Config::head_lanes;
    row = int(min(unit / heads, (long long)n_receivers));
    place = {int(unit % heads), int(threadIdx.x) % Config::head_lanes, heads, n_cols};
    if (row >= n_receivers) return 0.0f;
    return Place::sum(inner(place.load(Y, row), place.load(dY, row)));
}

extern "C" __global__ void __launch_bounds__(Config::block_threads)
    statistics_of_gat(const float *__restrict__ receiver, const float *__restrict__ Y,
                      const float *__restrict__ logsumexp, const float *__restrict__ dY,
                      float4 *__restrict__ statistics, int n_receivers, int heads, int n_cols) {
    RECORD_WARP;
    Place place;
    int row;
    const float D = row_product(Y, dY, n_receivers, heads, n_cols, place, row);
    if (row >= n_receivers || place.lane != 0) return;
    const long long at = place.head_of(row);
    statistics[at] = make_float4(receiver[at], logsumexp[at], D, 0.0f);
}

extern "C" __global__ void __launch_bounds__(Config::block_threads)
    statistics_of_any(const float *__restrict__ Y, const float *__restrict__ logsumexp,
                      const float *__restrict__ dY, float2 *__restrict__ statistics,
                      int n_receivers, int heads, int n_cols) {
    RECORD_WARP;
    Place place;
    int row;
    const float D = row_product(Y, dY, n_receivers, heads, n_cols, place, row);
    if (row >= n_receivers || place.lane != 0) return;
    const long long at = place.head_of(row);
    statistics[at] = make_float2(logsumexp[at], D);
}
