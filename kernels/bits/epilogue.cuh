// Steps after a product of bit matrices. The including file's Config defines `relu`: 1 to replace
// negative results by zero.
#pragma once

#include "bits/planes.cuh"

// Turns a sum into an element of the result: scales it, adds row and column terms, applies ReLU.
struct Epilogue {
    const float *__restrict__ alpha;
    const float *__restrict__ beta;
    const float *__restrict__ gamma;
    const float *__restrict__ row_scale;

    // Each operation is rounded separately, so that the host computes the same bits.
    DEVICE_INLINE float value(int sum, int row_sum, int row, int column) const {
        float x = __fadd_rn(__fmul_rn(float(sum), alpha[column]),
                            __fmul_rn(float(row_sum), beta[column]));
        x = __fadd_rn(__fmul_rn(x, row_scale[row]), gamma[column]);
        return Config::relu ? fmaxf(x, 0.0f) : x;
    }
};
