// What AGNN does to rows before and after its attention; accelviz.layers.cosines says what.
#include "layers/lanes.cuh"

// scale = 1 / the row's length, Q = factor * scale * X. The factor is given, or lies in memory.
extern "C" __global__ void cosine_operands(const float *X, const float *factor_in_memory,
                                           float factor, float *Q, float *scale, int n_rows,
                                           int n_cols, int log_lanes, float least) {
    const RowOfThread thread = row_of_thread(n_rows, log_lanes);
    const float *x = X + element(thread.row, 0, n_cols);
    float squares = 0.0f;
    for (int c = thread.lane; c < n_cols; c += thread.lanes) squares += x[c] * x[c];
    const float inverse = 1.0f / fmaxf(sqrtf(sum_of(squares, thread.lanes)), least);
    if (!thread.exists) return;
    if (thread.lane == 0) scale[thread.row] = inverse;
    const float by = (factor_in_memory == nullptr ? factor : *factor_in_memory) * inverse;
    for (int c = thread.lane; c < n_cols; c += thread.lanes) {
        Q[element(thread.row, c, n_cols)] = x[c] * by;
    }
}

// dX from what the attention gives back, and what each row adds to the gradient by the factor.
// Unless `slope` is 0, X came from a ReLU and dX is multiplied with that where X > 0, else with 0.
extern "C" __global__ void cosine_gradient(const float *X, const float *scale,
                                           const float *factor_in_memory, float factor,
                                           const float *dQ, const float *dV, const float *d_scale,
                                           float *dX, float *d_factor, int n_rows, int n_cols,
                                           int log_lanes, float slope) {
    const RowOfThread thread = row_of_thread(n_rows, log_lanes);
    const long long first = element(thread.row, 0, n_cols);
    float along = 0.0f;
    for (int c = thread.lane; c < n_cols; c += thread.lanes) along += dQ[first + c] * X[first + c];
    along = sum_of(along, thread.lanes);
    if (!thread.exists) return;
    const float inverse = scale[thread.row],
                by = factor_in_memory == nullptr ? factor : *factor_in_memory;
    if (thread.lane == 0) d_factor[thread.row] = along * inverse;
    // scale is 1 / the length of X's row, so its slope is -X scale^3.
    const float back = (d_scale[thread.row] + by * along) * (inverse * inverse * inverse);
    for (int c = thread.lane; c < n_cols; c += thread.lanes) {
        const float x = X[first + c];
        float gradient = dV[first + c] + by * inverse * dQ[first + c] - x * back;
        if (slope != 0.0f) gradient = x > 0.0f ? gradient * slope : 0.0f;
        dX[first + c] = gradient;
    }
}
