// What a gradient of attention needs of each receiver and head, in one place: D = dY . Y beside the
// logsumexp of its scores, and GAT's own score. A receiver's is read once for each of its nonzeros.
//
// grid  = rows x heads over BLOCK_THREADS / HEAD_LANES, rounded up
// block = BLOCK_THREADS threads, HEAD_LANES of them for a head of a row

// The plan supplies, at compile time:
//   BLOCK_THREADS   threads of a block
//   VECTOR, HEAD_LANES, LANE_VECTORS, WHOLE_LANES   how lanes cover a head; see columns.cuh
#if !defined(BLOCK_THREADS) || !defined(VECTOR) || !defined(HEAD_LANES) || \
    !defined(LANE_VECTORS) || !defined(WHOLE_LANES)
#error "statistics.cu is compiled by accelviz, which supplies the constants listed above"
#endif
#define WHOLE_HEADS 1

#include "attention/columns.cuh"

// Returns D to all lanes of a head, and where it is; `row` is past the last one where nothing is.
__device__ __forceinline__ float row_product(const float *__restrict__ Y,
                                             const float *__restrict__ dY, int n_receivers,
                                             int heads, int n_cols, Place &place, int &row) {
    const long long unit =
        (long long)blockIdx.x * (BLOCK_THREADS / HEAD_LANES) + threadIdx.x / HEAD_LANES;
    row = int(min(unit / heads, (long long)n_receivers));
    place = {int(unit % heads), int(threadIdx.x) % HEAD_LANES, heads, n_cols};
    if (row >= n_receivers) return 0.0f;
    return Place::sum(inner(place.load(Y, row), place.load(dY, row)));
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
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

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
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
