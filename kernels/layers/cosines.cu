// What AGNN does to rows before and after its attention; accelviz.layers.cosines says what.
#include "layers/lanes.cuh"

// scale = 1 / the row's length, Q = factor * scale * X. The factor is given, or lies in memory.
extern "C" __global__ void cosine_operands(const float *X, const float *given, float factor,
                                           float *Q, float *scale, int n_rows, int n_cols,
                                           int log_lanes, float least) {
    const OwnRow own = own_row(n_rows, log_lanes);
    const float *x = X + element(own.row, 0, n_cols);
    float squares = 0.0f;
    for (int c = own.lane; c < n_cols; c += own.lanes) squares += x[c] * x[c];
    const float inverse = 1.0f / fmaxf(sqrtf(sum_of(squares, own.lanes)), least);
    if (!own.there) return;
    if (own.lane == 0) scale[own.row] = inverse;
    const float by = (given == nullptr ? factor : *given) * inverse;
    for (int c = own.lane; c < n_cols; c += own.lanes) {
        Q[element(own.row, c, n_cols)] = x[c] * by;
    }
}

// dX from what the attention gives back, and what each row adds to the gradient by the factor.
// Unless `slope` is 0, X came from a ReLU and dX is multiplied with that where X > 0, else with 0.
extern "C" __global__ void cosine_gradient(const float *X, const float *scale, const float *given,
                                           float factor, const float *dQ, const float *dV,
                                           const float *d_scale, float *dX, float *d_factor,
                                           int n_rows, int n_cols, int log_lanes, float slope) {
    const OwnRow own = own_row(n_rows, log_lanes);
    const long long first = element(own.row, 0, n_cols);
    float along = 0.0f;
    for (int c = own.lane; c < n_cols; c += own.lanes) along += dQ[first + c] * X[first + c];
    along = sum_of(along, own.lanes);
    if (!own.there) return;
    const float inverse = scale[own.row], by = given == nullptr ? factor : *given;
    if (own.lane == 0) d_factor[own.row] = along * inverse;
    // scale is 1 / the length of X's row, so its slope is -X scale^3.
    const float back = (d_scale[own.row] + by * along) * (inverse * inverse * inverse);
    for (int c = own.lane; c < n_cols; c += own.lanes) {
        const float x = X[first + c];
        float found = dV[first + c] + by * inverse * dQ[first + c] - x * back;
        if (slope != 0.0f) found = x > 0.0f ? found * slope : 0.0f;
        dX[first + c] = found;
    }
}
