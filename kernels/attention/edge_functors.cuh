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
    Input scores;
    Output alpha;

    static DEVICE_INLINE State none() {
        return {LOWEST, 0.0f};
    }
    DEVICE_INLINE Element load(long long at) const {
        return scores[at];
    }
    static DEVICE_INLINE void take(State &state, Element score) {
        add(state, score);
    }
    DEVICE_INLINE void store(long long at, Element score, State row) const {
        alpha[at] = __expf(score - row.largest) / row.sum;
    }
};

// d_scores = alpha (d_alpha - the row's sum of alpha d_alpha)
struct Gradient {
    using State = float;
    using Element = float2;
    Input alpha, d_alpha;
    Output d_scores;

    static DEVICE_INLINE State none() {
        return 0.0f;
    }
    DEVICE_INLINE Element load(long long at) const {
        return make_float2(alpha[at], d_alpha[at]);
    }
    static DEVICE_INLINE void take(State &state, Element element) {
        state += element.x * element.y;
    }
    DEVICE_INLINE void store(long long at, Element element, State row) const {
        d_scores[at] = element.x * (element.y - row);
    }
};
