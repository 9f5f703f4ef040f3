// A softmax as it is found on the way: nobody has to know the largest score beforehand.
#pragma once

#include "common.cuh"

// Operands of attention: nobody else writes what a kernel reads, or reads what it writes.
using Input = const float *__restrict__;
using Output = float *__restrict__;

constexpr float LOWEST = -3.402823466e38f;

struct Softmax {
    float largest;  // of the scores so far; LOWEST before the first
    float sum;      // of exp(score - largest)
};

DEVICE_INLINE void add(Softmax &state, float score) {
    const float other = __expf(-fabsf(score - state.largest));
    state.sum = score > state.largest ? state.sum * other + 1.0f : state.sum + other;
    state.largest = fmaxf(state.largest, score);
}

DEVICE_INLINE Softmax merged(Softmax a, Softmax b) {
    const float largest = fmaxf(a.largest, b.largest);
    return {largest, a.sum * __expf(a.largest - largest) + b.sum * __expf(b.largest - largest)};
}

// Lanes of a warp: that of lane `lane` xor `apart`.
DEVICE_INLINE Softmax from_lane(Softmax state, int apart) {
    return {__shfl_xor_sync(ALL_LANES, state.largest, apart),
            __shfl_xor_sync(ALL_LANES, state.sum, apart)};
}
DEVICE_INLINE float from_lane(float state, int apart) {
    return __shfl_xor_sync(ALL_LANES, state, apart);
}
DEVICE_INLINE float merged(float a, float b) {
    return a + b;
}
