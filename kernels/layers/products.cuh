// Products of matrices with as many rows as the graph and small matrices, on tensor cores at the
// accuracy of float32 (3xTF32): each number is the sum of two TF32 numbers, and of the four
// products of two such sums the three largest are added. Tensor cores truncate, so their sums are
// added to float32 sums after a few steps.
#pragma once

#include "fragments.cuh"
#include "layers/finish.cuh"

static_assert(Config::inner % 16 == 0 && Config::columns % 16 == 0, "tiles have 16 columns");

// Parts of a matrix are side by side: columns of all parts of the left and of the right factor.
constexpr int LEFT = Config::in_parts * Config::inner, RIGHT = Config::out_parts * Config::columns;

template <int N>
DEVICE_INLINE void split(const float (&x)[N], unsigned (&high)[N], unsigned (&low)[N]) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
        // Rounds as `to_tf32` does, with arithmetic that runs at full rate.
        high[i] = (__float_as_uint(x[i]) + 0x1000u) & 0xffffe000u;
        low[i] = __float_as_uint(x[i] - __uint_as_float(high[i]));
    }
}

// Multiplies one factor A by N factors B, each into its own sums. Products into the same sum are
// dependent, so those of the other sums run in between. Small terms are added first.
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
