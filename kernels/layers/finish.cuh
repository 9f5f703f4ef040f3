// The epilogue of a layer, dropout(activation(Z + bias)), for four neighboring elements, which
// share one Philox counter.
#pragma once

#include "common.cuh"
#include "philox.cuh"

constexpr int AT_ONCE = 4;

// Dropout's factors of four neighboring elements.
struct DropoutMask {
    float factor[AT_ONCE];
};

DEVICE_INLINE DropoutMask dropout_mask(long long four, float rate, const unsigned *random) {
    DropoutMask mask = {{1.0f, 1.0f, 1.0f, 1.0f}};
    if constexpr (!Config::dropout) return mask;
    const RandomWords counter = {unsigned(four), unsigned((unsigned long long)four >> 32),
                                 random[2], random[3]};
    const RandomWords drawn = philox(random[0], random[1], counter);
    const unsigned words[AT_ONCE] = {drawn.c0, drawn.c1, drawn.c2, drawn.c3};
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) {
        const bool stays = float(words[i] >> 8) * 0x1p-24f >= rate;
        mask.factor[i] = stays ? 1.0f / (1.0f - rate) : 0.0f;
    }
    return mask;
}

DEVICE_INLINE float activated(float z) {
    if (Config::activation == 1) return z > 0.0f ? z : 0.0f;
    if (Config::activation == 2) return z > 0.0f ? z : expm1f(z);
    return z;
}
