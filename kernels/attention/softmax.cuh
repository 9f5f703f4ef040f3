// Online softmax: largest score and sum of exponentials, updated score by score in one pass.
#pragma once

#include "common.cuh"

// Operands of attention. Arrays do not overlap: inputs are only read and outputs only written.
using Input = const float *__restrict__;
using Output = float *__restrict__;

constexpr float LOWEST = -3.402823466e38f;

struct Softmax {
    float largest;  // of the scores so far; LOWEST before the first
    float sum;      // of exp(score - largest) over the scores so far
};

DEVICE_INLINE void add(Softmax &state, float score) {
    const float factor = __expf(-fabsf(score - state.largest));
    state.sum = score > state.largest ? state.sum * factor + 1.0f : state.sum + factor;
    state.largest = fmaxf(state.largest, score);
}

DEVICE_INLINE Softmax merged(Softmax a, Softmax b) {
    const float largest = fmaxf(a.largest, b.largest);
    return {largest, a.sum * __expf(a.largest - largest) + b.sum * __expf(b.largest - largest)};
}

// Returns the state of lane `lane` xor `apart` of the warp.
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
