// Functors over the edge values of a row: a softmax and its gradient. A kernel takes one of them as
// a template argument.
//
// State    reduction over a row; the states of two parts of a row can be merged
// Element  the values loaded for one nonzero, which a kernel may keep in registers
#pragma once

#include "attention/softmax.cuh"

// alpha = exp(score - largest) / sum
struct SoftmaxForward {
    using State = Softmax;
    using Element = float;
    Input scores;
    Output alpha;

    static DEVICE_INLINE State initial() {
        return {LOWEST, 0.0f};
    }
    DEVICE_INLINE Element load(long long i) const {
        return scores[i];
    }
    static DEVICE_INLINE void accumulate(State &state, Element score) {
        add(state, score);
    }
    DEVICE_INLINE void store(long long i, Element score, State row) const {
        alpha[i] = __expf(score - row.largest) / row.sum;
    }
};

// d_scores = alpha (d_alpha - sum of alpha d_alpha over the row)
struct SoftmaxGradient {
    using State = float;
    using Element = float2;
    Input alpha, d_alpha;
    Output d_scores;

    static DEVICE_INLINE State initial() {
        return 0.0f;
    }
    DEVICE_INLINE Element load(long long i) const {
        return make_float2(alpha[i], d_alpha[i]);
    }
    static DEVICE_INLINE void accumulate(State &state, Element element) {
        state += element.x * element.y;
    }
    DEVICE_INLINE void store(long long i, Element element, State row) const {
        d_scores[i] = element.x * (element.y - row);
    }
};
