// Products of matrices as tall as a graph with small ones, on tensor cores but to float32's
// accuracy: each number is the sum of two TF32 numbers, and of the four products of two such sums
// the three that count are taken (3xTF32). Sums leave the tensor cores, which truncate, after a few
// steps and go on in float32.
#pragma once

#include "fragments.cuh"
#include "layers/finish.cuh"

static_assert(Config::inner % 16 == 0 && Config::columns % 16 == 0, "tiles have 16 columns");

// Matrices side by side: the columns of the left factor, and those of the right one.
constexpr int LEFT = Config::in_parts * Config::inner, RIGHT = Config::out_parts * Config::columns;

template <int N>
DEVICE_INLINE void split(const float (&x)[N], unsigned (&high)[N], unsigned (&low)[N]) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
        // As `to_tf32` rounds, in arithmetic that runs at full rate.
        high[i] = (__float_as_uint(x[i]) + 0x1000u) & 0xffffe000u;
        low[i] = __float_as_uint(x[i] - __uint_as_float(high[i]));
    }
}

// Products of one factor A with several B, each into sums of its own. Those of a sum wait for each
// other, so the others come in between; the small products come first, while a sum is small.
template <int N>
DEVICE_INLINE void mma_float(float (*sums)[4], const unsigned (&a_high)[4],
                             const unsigned (&a_low)[4], const unsigned (&b_high)[N][2],
                             const unsigned (&b_low)[N][2]) {
#pragma unroll
    for (int j = 0; j < N; ++j) mma_tf32_k8(sums[j], a_low, b_high[j]);
#pragma unroll
    for (int j = 0; j < N; ++j) mma_tf32_k8(sums[j], a_high, b_low[j]);
#pragma unroll
    for (int j = 0; j < N; ++j) mma_tf32_k8(sums[j], a_high, b_high[j]);
}
