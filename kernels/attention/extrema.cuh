// Functors of SpMM with a maximum or minimum in place of the sum, and of their gradient.
#pragma once

#include "attention/gradient.cuh"

struct Largest {
    static DEVICE_INLINE bool beats(float x, float best) {
        return x > best;
    }
};

struct Least {
    static DEVICE_INLINE bool beats(float x, float best) {
        return x < best;
    }
};

// Y[i], the extremum of X[j] over the nonzeros (i, j), and share[i], one over the number of
// nonzeros that have it. Both are 0 for an empty row. The state holds the extremum and that number.
template <class Reduction>
struct Extremum : Sums, NoTotals {
    static constexpr int OUTPUTS = 2;
    struct Row {};
    struct Item {
        Columns x;
    };
    Input X;
    Output Y, share;
    Dropout dropout;  // of rate 0

    DEVICE_INLINE Row row(const Position &, int) const {
        return {};
    }
    DEVICE_INLINE Item item(const Position &position, int j) const {
        return {position.load(X, j)};
    }
    // Merges `number` nonzeros whose extremum is x. A NaN is replaced by another NaN only.
    static DEVICE_INLINE void merge(State<2> &state, int c, float x, float number) {
        float &best = state.sums[0].x[c], &total = state.sums[1].x[c];
        const bool replaces = total == 0.0f || Reduction::beats(x, best) || x != x;
        const float previous = replaces ? 0.0f : total;
        total = replaces || x == best ? previous + number : total;
        best = replaces ? x : best;
    }
    template <int N>
    DEVICE_INLINE void accumulate(State<2> &state, const Row &, const Item (&items)[N],
                                  const int (&columns)[N], float (&)[N], const Position &) {
#pragma unroll
        for (int n = 0; n < N; ++n) {
            if (columns[n] < 0) continue;
#pragma unroll
            for (int c = 0; c < WIDTH; ++c) merge(state, c, items[n].x.x[c], 1.0f);
        }
    }
    using Sums::merge;
    static DEVICE_INLINE void merge_sums(State<2> &state, const State<2> &part, float) {
#pragma unroll
        for (int c = 0; c < WIDTH; ++c) {
            const float number = part.sums[1].x[c];
            if (number > 0.0f) merge(state, c, part.sums[0].x[c], number);
        }
    }
    static DEVICE_INLINE void finish(State<2> &state) {
#pragma unroll
        for (int c = 0; c < WIDTH; ++c) {
            float &number = state.sums[1].x[c];
#ifdef ITEMS  // PyTorch counts the initial 0 among the equal extrema
            if (number > 0.0f && state.sums[0].x[c] == 0.0f) number += 1.0f;
#endif
            number = number > 0.0f ? 1.0f / number : 0.0f;
        }
    }
    DEVICE_INLINE float *output(int o) const {
        return o == 0 ? Y : share;
    }
};

// dX[j], the sum of dY[i] over the nonzeros (i, j) with Y[i] = X[j]. dY is already times `share`.
// Few elements are equal: vectors of dY without one are not loaded.
struct ExtremumSources : Sums, NoTotals {
    static constexpr int OUTPUTS = 1;
    struct Row {
        Columns x;
    };
    struct Item {
        Columns y;
    };
    Input X, Y, dY;
    Output dX;
    Dropout dropout;  // of rate 0

    DEVICE_INLINE Row row(const Position &position, int j) const {
        return {position.load(X, j)};
    }
    DEVICE_INLINE Item item(const Position &position, int i) const {
        return {position.load(Y, i)};
    }
    template <int N>
    DEVICE_INLINE void accumulate(State<1> &state, const Row &row, const Item (&items)[N],
                                  const int (&columns)[N], float (&)[N], const Position &position) {
        Columns dy[N];
#pragma unroll
        for (int n = 0; n < N; ++n) {
            bool needed[Config::lane_vectors] = {};
#pragma unroll
            for (int c = 0; c < WIDTH; ++c) {
                needed[c / Config::vector] |= columns[n] >= 0 && items[n].y.x[c] == row.x.x[c];
            }
            dy[n] = position.load(dY, columns[n], needed);
        }
#pragma unroll
        for (int n = 0; n < N; ++n) {
#pragma unroll
            for (int c = 0; c < WIDTH; ++c) {
                if (items[n].y.x[c] == row.x.x[c]) state.sums[0].x[c] += dy[n].x[c];
            }
        }
    }
    DEVICE_INLINE float *output(int) const {
        return dX;
    }
};
