// Readable attention and its gradients: one warp per row and head.
//
// Functors define the computation (forward.cuh, gradient.cuh); row_warp.cuh loops over rows.

// The plan supplies, at compile time:
//   block_warps   warps of a block
//   lane_vectors  columns of a lane, 32 apart
//   whole_lanes   1 if the columns of a head fill every lane, else 0
#include "attention/row_warp.cuh"

template <class Config>
__global__ void gat(const long long *__restrict__ row_pointers, const int *__restrict__ columns,
                    Input receiver, Input sender, Input V, Output Y, Output row_max, Output row_sum,
                    float slope, float rate, const unsigned *__restrict__ random, int n_rows,
                    int heads, int n_cols) {
    RECORD_WARP;
    walk(Attention<GatScore>{{}, {receiver, sender, V, slope}, {rate, random}, Y, row_max, row_sum},
         row_pointers, columns, nullptr, nullptr, n_rows, heads, n_cols);
}

template <class Config>
__global__ void dot(const long long *__restrict__ row_pointers, const int *__restrict__ columns,
                    Input Q, Input K, Input V, Output Y, Output row_max, Output row_sum, float rate,
                    const unsigned *__restrict__ random, int n_rows, int heads, int n_cols) {
    RECORD_WARP;
    walk(Attention<DotScore>{{}, {Q, K, V}, {rate, random}, Y, row_max, row_sum}, row_pointers,
         columns, nullptr, nullptr, n_rows, heads, n_cols);
}

template <class Config>
__global__ void cosine(const long long *__restrict__ row_pointers, const int *__restrict__ columns,
                       Input Q, Input V, Input scale, Output Y, Output row_max, Output row_sum,
                       float rate, const unsigned *__restrict__ random, int n_rows, int heads,
                       int n_cols) {
    RECORD_WARP;
    walk(Attention<CosineScore>{{}, {Q, V, scale}, {rate, random}, Y, row_max, row_sum},
         row_pointers, columns, nullptr, nullptr, n_rows, heads, n_cols);
}

template <class Config>
__global__ void gatv2(const long long *__restrict__ row_pointers, const int *__restrict__ columns,
                      Input R, Input V, Input a, Output Y, Output row_max, Output row_sum,
                      float slope, float rate, const unsigned *__restrict__ random, int n_rows,
                      int heads, int n_cols) {
    RECORD_WARP;
    walk(Attention<Gatv2Score>{{}, {R, V, a, slope}, {rate, random}, Y, row_max, row_sum},
         row_pointers, columns, nullptr, nullptr, n_rows, heads, n_cols);
}

template <class Config>
__global__ void gat_sources(const long long *__restrict__ row_pointers,
                            const int *__restrict__ columns, const unsigned *__restrict__ order,
                            Input statistics, Input sender, Input V, Input dY, Output d_sender,
                            Output dV, float slope, float rate, const unsigned *__restrict__ random,
                            int n_rows, int heads, int n_cols) {
    RECORD_WARP;
    walk(GatSources{{}, {}, statistics, sender, V, dY, slope, {rate, random}, d_sender, dV},
         row_pointers, columns, order, nullptr, n_rows, heads, n_cols);
}

template <class Config>
__global__ void dot_sources(const long long *__restrict__ row_pointers,
                            const int *__restrict__ columns, const unsigned *__restrict__ order,
                            Input statistics, Input Q, Input K, Input V, Input dY, Output dK,
                            Output dV, float rate, const unsigned *__restrict__ random, int n_rows,
                            int heads, int n_cols) {
    RECORD_WARP;
    walk(ProductSources<DotScore>{{}, {}, {Q, K, V}, statistics, dY, {rate, random}, dV, dK},
         row_pointers, columns, order, nullptr, n_rows, heads, n_cols);
}

template <class Config>
__global__ void cosine_sources(const long long *__restrict__ row_pointers,
                               const int *__restrict__ columns, const unsigned *__restrict__ order,
                               Input statistics, Input Q, Input V, Input scale, Input dY,
                               Output d_scale, Output dV, float rate,
                               const unsigned *__restrict__ random, int n_rows, int heads,
                               int n_cols) {
    RECORD_WARP;
    walk(
        ProductSources<CosineScore>{
            {}, {}, {Q, V, scale}, statistics, dY, {rate, random}, dV, d_scale},
        row_pointers, columns, order, nullptr, n_rows, heads, n_cols);
}

template <class Config>
__global__ void dot_targets(const long long *__restrict__ row_pointers,
                            const int *__restrict__ columns, Input statistics, Input Q, Input K,
                            Input V, Input dY, Output dQ, float rate,
                            const unsigned *__restrict__ random, int n_rows, int heads,
                            int n_cols) {
    RECORD_WARP;
    walk(ProductTargets<DotScore>{{}, {}, {Q, K, V}, statistics, dY, {rate, random}, dQ},
         row_pointers, columns, nullptr, nullptr, n_rows, heads, n_cols);
}

template <class Config>
__global__ void cosine_targets(const long long *__restrict__ row_pointers,
                               const int *__restrict__ columns, Input statistics, Input Q, Input V,
                               Input scale, Input dY, Output dQ, float rate,
                               const unsigned *__restrict__ random, int n_rows, int heads,
                               int n_cols) {
    RECORD_WARP;
    walk(ProductTargets<CosineScore>{{}, {}, {Q, V, scale}, statistics, dY, {rate, random}, dQ},
         row_pointers, columns, nullptr, nullptr, n_rows, heads, n_cols);
}

template <class Config>
__global__ void gatv2_sources(const long long *__restrict__ row_pointers,
                              const int *__restrict__ columns, const unsigned *__restrict__ order,
                              Input statistics, Input R, Input V, Input a, Input dY, Output dV,
                              float slope, float rate, const unsigned *__restrict__ random,
                              int n_rows, int heads, int n_cols) {
    RECORD_WARP;
    walk(Gatv2Sources{{}, {}, statistics, R, V, a, dY, slope, {rate, random}, dV}, row_pointers,
         columns, order, nullptr, n_rows, heads, n_cols);
}

template <class Config>
__global__ void gatv2_targets(const long long *__restrict__ row_pointers,
                              const int *__restrict__ columns, Input statistics, Input R, Input V,
                              Input a, Input dY, Output dR, float *block_totals, float slope,
                              float rate, const unsigned *__restrict__ random, int n_rows,
                              int heads, int n_cols) {
    RECORD_WARP;
    walk(Gatv2Targets{{}, statistics, R, V, a, dY, slope, {rate, random}, dR, {}}, row_pointers,
         columns, nullptr, block_totals, n_rows, heads, n_cols);
}

template <class Config>
__global__ void spmm_sources(const long long *__restrict__ row_pointers,
                             const int *__restrict__ columns, const unsigned *__restrict__ order,
                             Input values, Input X, Input dY, Output d_values, Output dX,
                             int n_rows, int heads, int n_cols) {
    RECORD_WARP;
    walk(SpmmSources{{}, {}, values, X, dY, d_values, dX}, row_pointers, columns, order, nullptr,
         n_rows, heads, n_cols);
}

template <class Config>
__global__ void gat_targets(const long long *__restrict__ row_pointers,
                            const int *__restrict__ columns, Input statistics, Input sender,
                            Input V, Input dY, Output d_receiver, float slope, float rate,
                            const unsigned *__restrict__ random, int n_rows, int heads,
                            int n_cols) {
    RECORD_WARP;
    walk(GatTargets{{}, {}, statistics, sender, V, dY, slope, {rate, random}, d_receiver},
         row_pointers, columns, nullptr, nullptr, n_rows, heads, n_cols);
}

template <class Config>
__global__ void largest(const long long *__restrict__ row_pointers, const int *__restrict__ columns,
                        Input X, float first, Output Y, int *__restrict__ source, int n_rows,
                        int heads, int n_cols) {
    RECORD_WARP;
    walk(Extremum<Largest>{{}, {}, X, first, Y, source, {0.0f, nullptr}}, row_pointers, columns,
         nullptr, nullptr, n_rows, heads, n_cols);
}

template <class Config>
__global__ void least(const long long *__restrict__ row_pointers, const int *__restrict__ columns,
                      Input X, float first, Output Y, int *__restrict__ source, int n_rows,
                      int heads, int n_cols) {
    RECORD_WARP;
    walk(Extremum<Least>{{}, {}, X, first, Y, source, {0.0f, nullptr}}, row_pointers, columns,
         nullptr, nullptr, n_rows, heads, n_cols);
}

template <class Config>
__global__ void extremum_sources(const long long *__restrict__ row_pointers,
                                 const int *__restrict__ columns,
                                 const unsigned *__restrict__ order, Input X, Input Y, Input dY,
                                 const int *__restrict__ source,
                                 const unsigned char *__restrict__ codes, Output dX, int n_rows,
                                 int heads, int n_cols) {
    RECORD_WARP;
    walk(ExtremumSources{{}, {}, X, Y, dY, source, codes, dX, {0.0f, nullptr}}, row_pointers,
         columns, order, nullptr, n_rows, heads, n_cols);
}
