// Our own attention: score, softmax and sum in one pass over the nonzeros, and its gradients.
//
// Each PROBLEM is what is computed of a row (forward.cuh, gradient.cuh); lane_groups.cuh is how the
// rows are walked. Rows of V are read once for each nonzero, and nothing of that size is written
// but the result: scores and softmax stay in registers, and a gradient computes them again.

// The plan supplies, at compile time:
//   PROBLEM         which of the kernels below
//   VECTOR          neighboring columns that a lane reads as one: 1, 2 or 4, a divisor of n_cols
//   HEAD_LANES      lanes of a head: 1, 2, 4, 8, 16 or 32
//   LANE_VECTORS    vectors of a lane, HEAD_LANES apart
//   WHOLE_LANES     1 if the columns of a head fill every lane, else 0
//   HEADS_TOGETHER  heads of a group
//   WHOLE_HEADS     1 if the heads fill every group, else 0
//   GROUPS          groups of a block
//   BLOCK_THREADS   threads of a block: those of its groups rounded up to whole warps
//   DEG_BOUND       most nonzeros of a row that one block handles alone
//   STAGED          most nonzeros of a block
//   AT_ONCE         nonzeros whose loads a lane has on their way at once
//   BLOCKS_PER_SM   blocks that an SM should have room for, which bounds the registers
//   INFO_FIELD_BITS width of the low field of the metadata's info word
#if !defined(PROBLEM) || !defined(VECTOR) || !defined(HEAD_LANES) || !defined(LANE_VECTORS) || \
    !defined(WHOLE_LANES) || !defined(HEADS_TOGETHER) || !defined(WHOLE_HEADS) ||              \
    !defined(GROUPS) || !defined(BLOCK_THREADS) || !defined(DEG_BOUND) || !defined(STAGED) ||  \
    !defined(AT_ONCE) || !defined(BLOCKS_PER_SM) || !defined(INFO_FIELD_BITS)
#error "lane_groups.cu is compiled by accelviz, which supplies the constants listed above"
#endif

#include "attention/lane_groups.cuh"

#if PROBLEM == 0
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_SM)
    gat(const int4 *__restrict__ metadata, const int *__restrict__ output_rows,
        const int *__restrict__ columns, const unsigned *__restrict__ order,
        const float *__restrict__ receiver, const float *__restrict__ sender,
        const float *__restrict__ V, float *__restrict__ Y, float *__restrict__ logsumexp,
        float *part_sums, float2 *part_heads, unsigned *arrivals, float slope, float rate,
        const unsigned *__restrict__ random, int heads, int n_cols) {
    RECORD_WARP;
    walk(Attention<GatScore>{{}, {receiver, sender, V, slope}, {rate, random}, Y, logsumexp},
         metadata, output_rows, columns, order, {part_sums, part_heads, arrivals}, nullptr, heads,
         n_cols);
}
#elif PROBLEM == 1
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_SM)
    cosine(const int4 *__restrict__ metadata, const int *__restrict__ output_rows,
           const int *__restrict__ columns, const unsigned *__restrict__ order,
           const float *__restrict__ Q, const float *__restrict__ V,
           const float *__restrict__ scale, float *__restrict__ Y, float *__restrict__ logsumexp,
           float *part_sums, float2 *part_heads, unsigned *arrivals, float rate,
           const unsigned *__restrict__ random, int heads, int n_cols) {
    RECORD_WARP;
    walk(Attention<CosineScore>{{}, {Q, V, scale}, {rate, random}, Y, logsumexp}, metadata,
         output_rows, columns, order, {part_sums, part_heads, arrivals}, nullptr, heads, n_cols);
}
#elif PROBLEM == 2
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_SM)
    gatv2(const int4 *__restrict__ metadata, const int *__restrict__ output_rows,
          const int *__restrict__ columns, const unsigned *__restrict__ order,
          const float *__restrict__ R, const float *__restrict__ V, const float *__restrict__ a,
          float *__restrict__ Y, float *__restrict__ logsumexp, float *part_sums,
          float2 *part_heads, unsigned *arrivals, float slope, float rate,
          const unsigned *__restrict__ random, int heads, int n_cols) {
    RECORD_WARP;
    walk(Attention<Gatv2Score>{{}, {R, V, a, slope}, {rate, random}, Y, logsumexp}, metadata,
         output_rows, columns, order, {part_sums, part_heads, arrivals}, nullptr, heads, n_cols);
}
#elif PROBLEM == 3
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_SM)
    gat_senders(const int4 *__restrict__ metadata, const int *__restrict__ output_rows,
                const int *__restrict__ columns, const unsigned *__restrict__ order,
                const float *__restrict__ statistics, const float *__restrict__ sender,
                const float *__restrict__ V, const float *__restrict__ dY,
                float *__restrict__ d_sender, float *__restrict__ dV, float *part_sums,
                float2 *part_heads, unsigned *arrivals, float slope, float rate,
                const unsigned *__restrict__ random, int heads, int n_cols) {
    RECORD_WARP;
    walk(GatSenders{{}, {}, statistics, sender, V, dY, slope, {rate, random}, d_sender, dV},
         metadata, output_rows, columns, order, {part_sums, part_heads, arrivals}, nullptr, heads,
         n_cols);
}
#elif PROBLEM == 4
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_SM)
    cosine_senders(const int4 *__restrict__ metadata, const int *__restrict__ output_rows,
                   const int *__restrict__ columns, const unsigned *__restrict__ order,
                   const float *__restrict__ statistics, const float *__restrict__ Q,
                   const float *__restrict__ V, const float *__restrict__ scale,
                   const float *__restrict__ dY, float *__restrict__ d_scale,
                   float *__restrict__ dV, float *part_sums, float2 *part_heads, unsigned *arrivals,
                   float rate, const unsigned *__restrict__ random, int heads, int n_cols) {
    RECORD_WARP;
    walk(CosineSenders{{}, {}, statistics, Q, V, scale, dY, {rate, random}, d_scale, dV}, metadata,
         output_rows, columns, order, {part_sums, part_heads, arrivals}, nullptr, heads, n_cols);
}
#elif PROBLEM == 5
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_SM)
    cosine_receivers(const int4 *__restrict__ metadata, const int *__restrict__ output_rows,
                     const int *__restrict__ columns, const unsigned *__restrict__ order,
                     const float *__restrict__ statistics, const float *__restrict__ Q,
                     const float *__restrict__ V, const float *__restrict__ scale,
                     const float *__restrict__ dY, float *__restrict__ dQ, float *part_sums,
                     float2 *part_heads, unsigned *arrivals, float rate,
                     const unsigned *__restrict__ random, int heads, int n_cols) {
    RECORD_WARP;
    walk(CosineReceivers{{}, {}, statistics, Q, V, scale, dY, {rate, random}, dQ}, metadata,
         output_rows, columns, order, {part_sums, part_heads, arrivals}, nullptr, heads, n_cols);
}
#elif PROBLEM == 6
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_SM)
    gatv2_senders(const int4 *__restrict__ metadata, const int *__restrict__ output_rows,
                  const int *__restrict__ columns, const unsigned *__restrict__ order,
                  const float *__restrict__ statistics, const float *__restrict__ R,
                  const float *__restrict__ V, const float *__restrict__ a,
                  const float *__restrict__ dY, float *__restrict__ dV, float *part_sums,
                  float2 *part_heads, unsigned *arrivals, float slope, float rate,
                  const unsigned *__restrict__ random, int heads, int n_cols) {
    RECORD_WARP;
    walk(Gatv2Senders{{}, {}, statistics, R, V, a, dY, slope, {rate, random}, dV}, metadata,
         output_rows, columns, order, {part_sums, part_heads, arrivals}, nullptr, heads, n_cols);
}
#elif PROBLEM == 7
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_SM)
    gatv2_receivers(const int4 *__restrict__ metadata, const int *__restrict__ output_rows,
                    const int *__restrict__ columns, const unsigned *__restrict__ order,
                    const float *__restrict__ statistics, const float *__restrict__ R,
                    const float *__restrict__ V, const float *__restrict__ a,
                    const float *__restrict__ dY, float *__restrict__ dR, float *part_sums,
                    float2 *part_heads, unsigned *arrivals, float *block_totals, float slope,
                    float rate, const unsigned *__restrict__ random, int heads, int n_cols) {
    RECORD_WARP;
    walk(Gatv2Receivers{{}, statistics, R, V, a, dY, slope, {rate, random}, dR, {}}, metadata,
         output_rows, columns, order, {part_sums, part_heads, arrivals}, block_totals, heads,
         n_cols);
}
#elif PROBLEM == 8
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_SM)
    spmm_senders(const int4 *__restrict__ metadata, const int *__restrict__ output_rows,
                 const int *__restrict__ columns, const unsigned *__restrict__ order,
                 const float *__restrict__ values, const float *__restrict__ X,
                 const float *__restrict__ dY, float *__restrict__ d_values, float *__restrict__ dX,
                 float *part_sums, float2 *part_heads, unsigned *arrivals, int heads, int n_cols) {
    RECORD_WARP;
    walk(SpmmSenders{{}, {}, values, X, dY, d_values, dX}, metadata, output_rows, columns, order,
         {part_sums, part_heads, arrivals}, nullptr, heads, n_cols);
}
#elif PROBLEM == 9
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_SM)
    gat_receivers(const int4 *__restrict__ metadata, const int *__restrict__ output_rows,
                  const int *__restrict__ columns, const unsigned *__restrict__ order,
                  const float *__restrict__ statistics, const float *__restrict__ sender,
                  const float *__restrict__ V, const float *__restrict__ dY,
                  float *__restrict__ d_receiver, float *part_sums, float2 *part_heads,
                  unsigned *arrivals, float slope, float rate, const unsigned *__restrict__ random,
                  int heads, int n_cols) {
    RECORD_WARP;
    walk(GatReceivers{{}, {}, statistics, sender, V, dY, slope, {rate, random}, d_receiver},
         metadata, output_rows, columns, order, {part_sums, part_heads, arrivals}, nullptr, heads,
         n_cols);
}
#endif
