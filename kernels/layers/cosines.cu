// Row operations of AGNN before and after its attention, as defined in accelviz.layers.cosines.
#include "layers/lanes.cuh"

// scale = 1 / length of the row, Q = factor * scale * X. `factor` is used if the pointer is null.
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
    const float q_factor = (factor_in_memory == nullptr ? factor : *factor_in_memory) * inverse;
    for (int c = thread.lane; c < n_cols; c += thread.lanes) {
        Q[element(thread.row, c, n_cols)] = x[c] * q_factor;
    }
}

// dX from the attention's gradients, and each row's contribution to the gradient by the factor.
// If `slope` is not 0, X is a ReLU's output: dX is multiplied by `slope` where X > 0, else by 0.
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
                q_factor = factor_in_memory == nullptr ? factor : *factor_in_memory;
    if (thread.lane == 0) d_factor[thread.row] = along * inverse;
    // scale is 1 / length of X's row, so its derivative is -X scale^3.
    const float back = (d_scale[thread.row] + q_factor * along) * (inverse * inverse * inverse);
    for (int c = thread.lane; c < n_cols; c += thread.lanes) {
        const float x = X[first + c];
        float gradient = dV[first + c] + q_factor * inverse * dQ[first + c] - x * back;
        if (slope != 0.0f) gradient = x > 0.0f ? gradient * slope : 0.0f;
        dX[first + c] = gradient;
    }
}
