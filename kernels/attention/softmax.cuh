// A softmax as it is found on the way: nobody has to know the largest score beforehand.
#pragma once

#include "common.cuh"

constexpr float LOWEST = -3.402823466e38f;

struct Softmax {
    float largest;  // of the scores so far; LOWEST before the first
    float sum;      // of exp(score - largest)
};

__device__ __forceinline__ void add(Softmax &own, float score) {
    const float other = __expf(-fabsf(score - own.largest));
    own.sum = score > own.largest ? own.sum * other + 1.0f : own.sum + other;
    own.largest = fmaxf(own.largest, score);
}

__device__ __forceinline__ Softmax merged(Softmax a, Softmax b) {
    const float largest = fmaxf(a.largest, b.largest);
    return {largest, a.sum * __expf(a.largest - largest) + b.sum * __expf(b.largest - largest)};
}

// Lanes of a warp: that of lane `lane` xor `apart`.
__device__ __forceinline__ Softmax from_lane(Softmax own, int apart) {
    return {__shfl_xor_sync(ALL_LANES, own.largest, apart),
            __shfl_xor_sync(ALL_LANES, own.sum, apart)};
}
__device__ __forceinline__ float from_lane(float own, int apart) {
    return __shfl_xor_sync(ALL_LANES, own, apart);
}
__device__ __forceinline__ float merged(float a, float b) {
    return a + b;
}
