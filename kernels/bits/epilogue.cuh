// Steps after a product of bit matrices. The including file's Config defines `relu`: 1 to replace
// negative results by zero.
#pragma once

#include "bits/planes.cuh"

// `level_of` of one range, without a division: three products with the rounded reciprocal of `step`
// are as exact (P. Markstein, Computation of elementary functions on the IBM RISC System/6000
// processor, IBM J. Res. Dev. 34, 1990), since quotients of levels neither overflow nor underflow.
class Quantizer {
    float _low, _scale, _step, _inverse, _most;
    int _max_level;

   public:
    DEVICE_INLINE Quantizer(float low, float step, int bits)
        : _low(low),
          _scale(step < 0x1p-30f  ? 0x1p90f
                 : step > 0x1p60f ? 0x1p-60f
                                  : 1.0f),
          _step(step * _scale),
          _inverse(step > 0 ? __fdiv_rn(1.0f, _step) : 0.0f),
          _most(_step * float((1 << bits) + 1)),
          _max_level((1 << bits) - 1) {
    }

    DEVICE_INLINE unsigned level(float value) const {
        const float scaled = __fmul_rn(__fsub_rn(value, _low), _scale);
        const float above = scaled > _most ? _most : scaled;  // infinity has no remainder
        float steps = __fmul_rn(above, _inverse);
#pragma unroll
        for (int i = 0; i < 2; ++i) steps = fmaf(fmaf(-steps, _step, above), _inverse, steps);
        return unsigned(max(min(__float2int_rd(steps), _max_level), 0));
    }
};

// Turns a sum into an element of the result: scales it, adds row and column terms, applies ReLU.
struct Epilogue {
    const float *__restrict__ alpha;
    const float *__restrict__ beta;
    const float *__restrict__ gamma;
    const float *__restrict__ row_scale;
    int rows, columns;

    // The coefficients of a column; zeros beyond the last one.
    struct Column {
        float alpha, beta, gamma;
    };
    DEVICE_INLINE Column column(int i) const {
        return i < columns ? Column{__ldg(&alpha[i]), __ldg(&beta[i]), __ldg(&gamma[i])} : Column{};
    }
    DEVICE_INLINE float scale(int row) const {
        return row < rows ? __ldg(&row_scale[row]) : 0.0f;
    }

    // Each operation is rounded separately, so that the host computes the same bits.
    static DEVICE_INLINE float value(int sum, int row_sum, float scale, const Column &column) {
        float x =
            __fadd_rn(__fmul_rn(float(sum), column.alpha), __fmul_rn(float(row_sum), column.beta));
        x = __fadd_rn(__fmul_rn(x, scale), column.gamma);
        return Config::relu ? fmaxf(x, 0.0f) : x;
    }
};
