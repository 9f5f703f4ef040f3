// What is computed of each row of edge values: a softmax, or its gradient. A kernel that walks rows
// takes one of them as a template argument.
//
// State    what a row comes to, of which parts can be merged
// Element  what is read of a nonzero, so that a kernel can keep it in between
#pragma once

#include "attention/softmax.cuh"

// alpha = exp(score - largest) / sum
struct Forward {
    using State = Softmax;
    using Element = float;
    const float *__restrict__ scores;
    float *__restrict__ alpha;

    static __device__ __forceinline__ State none() {
        return {LOWEST, 0.0f};
    }
    __device__ __forceinline__ Element load(long long at) const {
        return scores[at];
    }
    static __device__ __forceinline__ void take(State &state, Element score) {
        add(state, score);
    }
    __device__ __forceinline__ void store(long long at, Element score, State row) const {
        alpha[at] = __expf(score - row.largest) / row.sum;
    }
};

// d_scores = alpha (d_alpha - the row's sum of alpha d_alpha)
struct Gradient {
    using State = float;
    using Element = float2;
    const float *__restrict__ alpha;
    const float *__restrict__ d_alpha;
    float *__restrict__ d_scores;

    static __device__ __forceinline__ State none() {
        return 0.0f;
    }
    __device__ __forceinline__ Element load(long long at) const {
        return make_float2(alpha[at], d_alpha[at]);
    }
    static __device__ __forceinline__ void take(State &state, Element own) {
        state += own.x * own.y;
    }
    __device__ __forceinline__ void store(long long at, Element own, State row) const {
        d_scores[at] = own.x * (own.y - row);
    }
};
