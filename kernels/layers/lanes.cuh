// Assigns 2^log_lanes neighboring lanes to each row; they handle neighboring columns.
#pragma once

#include "common.cuh"

// A thread's row and its lane there. Lanes past the last row read it, too, but must not write.
struct RowOfThread {
    int row, lane, lanes;
    bool exists;
};

DEVICE_INLINE RowOfThread row_of_thread(int n_rows, int log_lanes) {
    const int lanes = 1 << log_lanes;
    const long long row = ((long long)blockIdx.x * blockDim.x + threadIdx.x) >> log_lanes;
    const bool exists = row < n_rows;
    return {exists ? int(row) : n_rows - 1, int(threadIdx.x) & (lanes - 1), lanes, exists};
}

// Reductions over the `lanes` lanes of a row, a power of two. All lanes get the result.
DEVICE_INLINE float largest_of(float value, int lanes) {
    for (int other = lanes / 2; other > 0; other /= 2) {
        value = fmaxf(value, __shfl_xor_sync(ALL_LANES, value, other));
    }
    return value;
}
DEVICE_INLINE float sum_of(float value, int lanes) {
    for (int other = lanes / 2; other > 0; other /= 2) {
        value += __shfl_xor_sync(ALL_LANES, value, other);
    }
    return value;
}
