// Our attention: score, softmax and sum in one pass over the nonzeros, and its gradients.
//
// A functor defines the computation per row (forward.cuh, gradient.cuh); lane_groups.cuh assigns
// rows to threads. Each nonzero reads one row of V, and nothing of that size is written except the
// result: scores and softmax stay in registers, and a gradient computes them again.

// The plan supplies, at compile time:
//   vector          neighboring columns per load of a lane: 1, 2 or 4, a divisor of n_cols
//   head_lanes      lanes of a head: 1, 2, 4, 8, 16 or 32
//   lane_vectors    vectors of a lane, head_lanes apart
//   whole_lanes     1 if the columns of a head fill every lane, else 0
//   heads_together  heads of a group of lanes
//   whole_heads     1 if the heads fill every group, else 0
//   groups          groups of a block
//   block_threads   threads of a block: those of its groups rounded up to whole warps
//   deg_bound       most nonzeros of a row that one block handles alone
//   staged          most nonzeros of a block
//   at_once         nonzeros whose loads a lane starts together
//   blocks_per_sm   blocks that must fit on an SM; bounds the registers
//   info_field_bits width of the low field of the metadata's info word

#include "attention/lane_groups.cuh"

template <class Config>
__global__ void __launch_bounds__(Config::block_threads, Config::blocks_per_sm)
    gat(const int4 *__restrict__ metadata, const int *__restrict__ output_rows,
        const int *__restrict__ columns, const unsigned *__restrict__ order, Input receiver,
        Input sender, Input V, Output Y, Output row_max, Output row_sum, float *part_sums,
        float2 *part_heads, unsigned *arrivals, float slope, float rate,
        const unsigned *__restrict__ random, int heads, int n_cols) {
    RECORD_WARP;
    walk(Attention<GatScore>{{}, {receiver, sender, V, slope}, {rate, random}, Y, row_max, row_sum},
         metadata, output_rows, columns, order, {part_sums, part_heads, arrivals}, nullptr, heads,
         n_cols);
}

template <class Config>
__global__ void __launch_bounds__(Config::block_threads, Config::blocks_per_sm)
    dot(const int4 *__restrict__ metadata, const int *__restrict__ output_rows,
        const int *__restrict__ columns, const unsigned *__restrict__ order, Input Q, Input K,
        Input V, Output Y, Output row_max, Output row_sum, float *part_sums, float2 *part_heads,
        unsigned *arrivals, float rate, const unsigned *__restrict__ random, int heads,
        int n_cols) {
    RECORD_WARP;
    walk(Attention<DotScore>{{}, {Q, K, V}, {rate, random}, Y, row_max, row_sum}, metadata,
         output_rows, columns, order, {part_sums, part_heads, arrivals}, nullptr, heads, n_cols);
}

template <class Config>
__global__ void __launch_bounds__(Config::block_threads, Config::blocks_per_sm)
    cosine(const int4 *__restrict__ metadata, const int *__restrict__ output_rows,
           const int *__restrict__ columns, const unsigned *__restrict__ order, Input Q, Input V,
           Input scale, Output Y, Output row_max, Output row_sum, float *part_sums,
           float2 *part_heads, unsigned *arrivals, float rate, const unsigned *__restrict__ random,
           int heads, int n_cols) {
    RECORD_WARP;
    walk(Attention<CosineScore>{{}, {Q, V, scale}, {rate, random}, Y, row_max, row_sum}, metadata,
         output_rows, columns, order, {part_sums, part_heads, arrivals}, nullptr, heads, n_cols);
}

template <class Config>
__global__ void __launch_bounds__(Config::block_threads, Config::blocks_per_sm)
    gatv2(const int4 *__restrict__ metadata, const int *__restrict__ output_rows,
          const int *__restrict__ columns, const unsigned *__restrict__ order, Input R, Input V,
          Input a, Output Y, Output row_max, Output row_sum, float *part_sums, float2 *part_heads,
          unsigned *arrivals, float slope, float rate, const unsigned *__restrict__ random,
          int heads, int n_cols) {
    RECORD_WARP;
    walk(Attention<Gatv2Score>{{}, {R, V, a, slope}, {rate, random}, Y, row_max, row_sum}, metadata,
         output_rows, columns, order, {part_sums, part_heads, arrivals}, nullptr, heads, n_cols);
}

template <class Config>
__global__ void __launch_bounds__(Config::block_threads, Config::blocks_per_sm)
    gat_sources(const int4 *__restrict__ metadata, const int *__restrict__ output_rows,
                const int *__restrict__ columns, const unsigned *__restrict__ order,
                Input statistics, Input sender, Input V, Input dY, Output d_sender, Output dV,
                float *part_sums, float2 *part_heads, unsigned *arrivals, float slope, float rate,
                const unsigned *__restrict__ random, int heads, int n_cols) {
    RECORD_WARP;
    walk(GatSources{{}, {}, statistics, sender, V, dY, slope, {rate, random}, d_sender, dV},
         metadata, output_rows, columns, order, {part_sums, part_heads, arrivals}, nullptr, heads,
         n_cols);
}

template <class Config>
__global__ void __launch_bounds__(Config::block_threads, Config::blocks_per_sm)
    dot_sources(const int4 *__restrict__ metadata, const int *__restrict__ output_rows,
                const int *__restrict__ columns, const unsigned *__restrict__ order,
                Input statistics, Input Q, Input K, Input V, Input dY, Output dK, Output dV,
                float *part_sums, float2 *part_heads, unsigned *arrivals, float rate,
                const unsigned *__restrict__ random, int heads, int n_cols) {
    RECORD_WARP;
    walk(ProductSources<DotScore>{{}, {}, {Q, K, V}, statistics, dY, {rate, random}, dV, dK},
         metadata, output_rows, columns, order, {part_sums, part_heads, arrivals}, nullptr, heads,
         n_cols);
}

template <class Config>
__global__ void __launch_bounds__(Config::block_threads, Config::blocks_per_sm)
    cosine_sources(const int4 *__restrict__ metadata, const int *__restrict__ output_rows,
                   const int *__restrict__ columns, const unsigned *__restrict__ order,
                   Input statistics, Input Q, Input V, Input scale, Input dY, Output d_scale,
                   Output dV, float *part_sums, float2 *part_heads, unsigned *arrivals, float rate,
                   const unsigned *__restrict__ random, int heads, int n_cols) {
    RECORD_WARP;
    walk(
        ProductSources<CosineScore>{
            {}, {}, {Q, V, scale}, statistics, dY, {rate, random}, dV, d_scale},
        metadata, output_rows, columns, order, {part_sums, part_heads, arrivals}, nullptr, heads,
        n_cols);
}

template <class Config>
__global__ void __launch_bounds__(Config::block_threads, Config::blocks_per_sm)
    dot_targets(const int4 *__restrict__ metadata, const int *__restrict__ output_rows,
                const int *__restrict__ columns, const unsigned *__restrict__ order,
                Input statistics, Input Q, Input K, Input V, Input dY, Output dQ, float *part_sums,
                float2 *part_heads, unsigned *arrivals, float rate,
                const unsigned *__restrict__ random, int heads, int n_cols) {
    RECORD_WARP;
    walk(ProductTargets<DotScore>{{}, {}, {Q, K, V}, statistics, dY, {rate, random}, dQ}, metadata,
         output_rows, columns, order, {part_sums, part_heads, arrivals}, nullptr, heads, n_cols);
}

template <class Config>
__global__ void __launch_bounds__(Config::block_threads, Config::blocks_per_sm)
    cosine_targets(const int4 *__restrict__ metadata, const int *__restrict__ output_rows,
                   const int *__restrict__ columns, const unsigned *__restrict__ order,
                   Input statistics, Input Q, Input V, Input scale, Input dY, Output dQ,
                   float *part_sums, float2 *part_heads, unsigned *arrivals, float rate,
                   const unsigned *__restrict__ random, int heads, int n_cols) {
    RECORD_WARP;
    walk(ProductTargets<CosineScore>{{}, {}, {Q, V, scale}, statistics, dY, {rate, random}, dQ},
         metadata, output_rows, columns, order, {part_sums, part_heads, arrivals}, nullptr, heads,
         n_cols);
}

template <class Config>
__global__ void __launch_bounds__(Config::block_threads, Config::blocks_per_sm)
    gatv2_sources(const int4 *__restrict__ metadata, const int *__restrict__ output_rows,
                  const int *__restrict__ columns, const unsigned *__restrict__ order,
                  Input statistics, Input R, Input V, Input a, Input dY, Output dV,
                  float *part_sums, float2 *part_heads, unsigned *arrivals, float slope, float rate,
                  const unsigned *__restrict__ random, int heads, int n_cols) {
    RECORD_WARP;
    walk(Gatv2Sources{{}, {}, statistics, R, V, a, dY, slope, {rate, random}, dV}, metadata,
         output_rows, columns, order, {part_sums, part_heads, arrivals}, nullptr, heads, n_cols);
}

template <class Config>
__global__ void __launch_bounds__(Config::block_threads, Config::blocks_per_sm)
    gatv2_targets(const int4 *__restrict__ metadata, const int *__restrict__ output_rows,
                  const int *__restrict__ columns, const unsigned *__restrict__ order,
                  Input statistics, Input R, Input V, Input a, Input dY, Output dR,
                  float *part_sums, float2 *part_heads, unsigned *arrivals, float *block_totals,
                  float slope, float rate, const unsigned *__restrict__ random, int heads,
                  int n_cols) {
    RECORD_WARP;
    walk(Gatv2Targets{{}, statistics, R, V, a, dY, slope, {rate, random}, dR, {}}, metadata,
         output_rows, columns, order, {part_sums, part_heads, arrivals}, block_totals, heads,
         n_cols);
}

template <class Config>
__global__ void __launch_bounds__(Config::block_threads, Config::blocks_per_sm)
    spmm_sources(const int4 *__restrict__ metadata, const int *__restrict__ output_rows,
                 const int *__restrict__ columns, const unsigned *__restrict__ order, Input values,
                 Input X, Input dY, Output d_values, Output dX, float *part_sums,
                 float2 *part_heads, unsigned *arrivals, int heads, int n_cols) {
    RECORD_WARP;
    walk(SpmmSources{{}, {}, values, X, dY, d_values, dX}, metadata, output_rows, columns, order,
         {part_sums, part_heads, arrivals}, nullptr, heads, n_cols);
}

template <class Config>
__global__ void __launch_bounds__(Config::block_threads, Config::blocks_per_sm)
    gat_targets(const int4 *__restrict__ metadata, const int *__restrict__ output_rows,
                const int *__restrict__ columns, const unsigned *__restrict__ order,
                Input statistics, Input sender, Input V, Input dY, Output d_receiver,
                float *part_sums, float2 *part_heads, unsigned *arrivals, float slope, float rate,
                const unsigned *__restrict__ random, int heads, int n_cols) {
    RECORD_WARP;
    walk(GatTargets{{}, {}, statistics, sender, V, dY, slope, {rate, random}, d_receiver}, metadata,
         output_rows, columns, order, {part_sums, part_heads, arrivals}, nullptr, heads, n_cols);
}

template <class Config>
__global__ void __launch_bounds__(Config::block_threads, Config::blocks_per_sm)
    largest(const int4 *__restrict__ metadata, const int *__restrict__ output_rows,
            const int *__restrict__ columns, const unsigned *__restrict__ order, Input X,
            float first, Output Y, int *__restrict__ source, float *part_sums, float2 *part_heads,
            unsigned *arrivals, int heads, int n_cols) {
    RECORD_WARP;
    walk(Extremum<Largest>{{}, {}, X, first, Y, source, {0.0f, nullptr}}, metadata, output_rows,
         columns, order, {part_sums, part_heads, arrivals}, nullptr, heads, n_cols);
}

template <class Config>
__global__ void __launch_bounds__(Config::block_threads, Config::blocks_per_sm)
    least(const int4 *__restrict__ metadata, const int *__restrict__ output_rows,
          const int *__restrict__ columns, const unsigned *__restrict__ order, Input X, float first,
          Output Y, int *__restrict__ source, float *part_sums, float2 *part_heads,
          unsigned *arrivals, int heads, int n_cols) {
    RECORD_WARP;
    walk(Extremum<Least>{{}, {}, X, first, Y, source, {0.0f, nullptr}}, metadata, output_rows,
         columns, order, {part_sums, part_heads, arrivals}, nullptr, heads, n_cols);
}

template <class Config>
__global__ void __launch_bounds__(Config::block_threads, Config::blocks_per_sm)
    extremum_sources(const int4 *__restrict__ metadata, const int *__restrict__ output_rows,
                     const int *__restrict__ columns, const unsigned *__restrict__ order, Input X,
                     Input Y, Input dY, const int *__restrict__ source,
                     const unsigned char *__restrict__ codes, Output dX, float *part_sums,
                     float2 *part_heads, unsigned *arrivals, int heads, int n_cols) {
    RECORD_WARP;
    walk(ExtremumSources{{}, {}, X, Y, dY, source, codes, dX, {0.0f, nullptr}}, metadata,
         output_rows, columns, order, {part_sums, part_heads, arrivals}, nullptr, heads, n_cols);
}

template <class Config>
__global__ void __launch_bounds__(Config::block_threads, Config::blocks_per_sm)
    tied_extrema(const int4 *__restrict__ metadata, const int *__restrict__ output_rows,
                 const int *__restrict__ columns, const unsigned *__restrict__ order, Input X,
                 Input Y, Input dY, const int *__restrict__ source,
                 const unsigned char *__restrict__ tied, Output dX, float *part_sums,
                 float2 *part_heads, unsigned *arrivals, int heads, int n_cols) {
    RECORD_WARP;
    walk(TiedExtrema{{}, {}, X, Y, dY, source, tied, dX, {0.0f, nullptr}}, metadata, output_rows,
         columns, order, {part_sums, part_heads, arrivals}, nullptr, heads, n_cols);
}
