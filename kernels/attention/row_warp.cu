// Attention and its gradients, the readable ones: a warp has a head of a row.
//
// A functor says what is computed of a row (forward.cuh, gradient.cuh); row_warp.cuh is how the
// rows are walked.

// The plan supplies, at compile time:
//   block_warps   warps of a block
//   lane_vectors  columns of a lane, 32 apart
//   whole_lanes   1 if the columns of a head fill every lane, else 0
#include "attention/row_warp.cuh"

template <class Config>
__global__ void gat(const long long *__restrict__ row_pointers, const int *__restrict__ columns,
                    Input receiver, Input sender, Input V, Output Y, Output logsumexp, float slope,
                    float rate, const unsigned *__restrict__ random, int n_rows, int heads,
                    int n_cols) {
    RECORD_WARP;
    walk(Attention<GatScore>{{}, {receiver, sender, V, slope}, {rate, random}, Y, logsumexp},
         row_pointers, columns, nullptr, nullptr, n_rows, heads, n_cols);
}

template <class Config>
__global__ void cosine(const long long *__restrict__ row_pointers, const int *__restrict__ columns,
                       Input Q, Input V, Input scale, Output Y, Output logsumexp, float rate,
                       const unsigned *__restrict__ random, int n_rows, int heads, int n_cols) {
    RECORD_WARP;
    walk(Attention<CosineScore>{{}, {Q, V, scale}, {rate, random}, Y, logsumexp}, row_pointers,
         columns, nullptr, nullptr, n_rows, heads, n_cols);
}

template <class Config>
__global__ void gatv2(const long long *__restrict__ row_pointers, const int *__restrict__ columns,
                      Input R, Input V, Input a, Output Y, Output logsumexp, float slope,
                      float rate, const unsigned *__restrict__ random, int n_rows, int heads,
                      int n_cols) {
    RECORD_WARP;
    walk(Attention<Gatv2Score>{{}, {R, V, a, slope}, {rate, random}, Y, logsumexp}, row_pointers,
         columns, nullptr, nullptr, n_rows, heads, n_cols);
}

template <class Config>
__global__ void gat_senders(const long long *__restrict__ row_pointers,
                            const int *__restrict__ columns, const unsigned *__restrict__ order,
                            Input statistics, Input sender, Input V, Input dY, Output d_sender,
                            Output dV, float slope, float rate, const unsigned *__restrict__ random,
                            int n_rows, int heads, int n_cols) {
    RECORD_WARP;
    walk(GatSenders{{}, {}, statistics, sender, V, dY, slope, {rate, random}, d_sender, dV},
         row_pointers, columns, order, nullptr, n_rows, heads, n_cols);
}

template <class Config>
__global__ void cosine_senders(const long long *__restrict__ row_pointers,
                               const int *__restrict__ columns, const unsigned *__restrict__ order,
                               Input statistics, Input Q, Input V, Input scale, Input dY,
                               Output d_scale, Output dV, float rate,
                               const unsigned *__restrict__ random, int n_rows, int heads,
                               int n_cols) {
    RECORD_WARP;
    walk(CosineSenders{{}, {}, statistics, Q, V, scale, dY, {rate, random}, d_scale, dV},
         row_pointers, columns, order, nullptr, n_rows, heads, n_cols);
}

template <class Config>
__global__ void cosine_receivers(const long long *__restrict__ row_pointers,
                                 const int *__restrict__ columns, Input statistics, Input Q,
                                 Input V, Input scale, Input dY, Output dQ, float rate,
                                 const unsigned *__restrict__ random, int n_rows, int heads,
                                 int n_cols) {
    RECORD_WARP;
    walk(CosineReceivers{{}, {}, statistics, Q, V, scale, dY, {rate, random}, dQ}, row_pointers,
         columns, nullptr, nullptr, n_rows, heads, n_cols);
}

template <class Config>
__global__ void gatv2_senders(const long long *__restrict__ row_pointers,
                              const int *__restrict__ columns, const unsigned *__restrict__ order,
                              Input statistics, Input R, Input V, Input a, Input dY, Output dV,
                              float slope, float rate, const unsigned *__restrict__ random,
                              int n_rows, int heads, int n_cols) {
    RECORD_WARP;
    walk(Gatv2Senders{{}, {}, statistics, R, V, a, dY, slope, {rate, random}, dV}, row_pointers,
         columns, order, nullptr, n_rows, heads, n_cols);
}

template <class Config>
__global__ void gatv2_receivers(const long long *__restrict__ row_pointers,
                                const int *__restrict__ columns, Input statistics, Input R, Input V,
                                Input a, Input dY, Output dR, float *block_totals, float slope,
                                float rate, const unsigned *__restrict__ random, int n_rows,
                                int heads, int n_cols) {
    RECORD_WARP;
    walk(Gatv2Receivers{{}, statistics, R, V, a, dY, slope, {rate, random}, dR, {}}, row_pointers,
         columns, nullptr, block_totals, n_rows, heads, n_cols);
}

template <class Config>
__global__ void spmm_senders(const long long *__restrict__ row_pointers,
                             const int *__restrict__ columns, const unsigned *__restrict__ order,
                             Input values, Input X, Input dY, Output d_values, Output dX,
                             int n_rows, int heads, int n_cols) {
    RECORD_WARP;
    walk(SpmmSenders{{}, {}, values, X, dY, d_values, dX}, row_pointers, columns, order, nullptr,
         n_rows, heads, n_cols);
}

template <class Config>
__global__ void gat_receivers(const long long *__restrict__ row_pointers,
                              const int *__restrict__ columns, Input statistics, Input sender,
                              Input V, Input dY, Output d_receiver, float slope, float rate,
                              const unsigned *__restrict__ random, int n_rows, int heads,
                              int n_cols) {
    RECORD_WARP;
    walk(GatReceivers{{}, {}, statistics, sender, V, dY, slope, {rate, random}, d_receiver},
         row_pointers, columns, nullptr, nullptr, n_rows, heads, n_cols);
}
