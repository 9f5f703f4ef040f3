// Functors of SpMM with a maximum or minimum in place of the sum, and of their gradient.
#pragma once

#include "attention/codes.cuh"
#include "attention/gradient.cuh"

// The larger or smaller number; NaN if one of them is NaN.
#if !defined(EMULATOR) && __CUDA_ARCH__ >= 800
#define EXTREMUM_OF(word, beats, a, b) asm(word ".NaN.f32 %0, %0, %1;" : "+f"(a) : "f"(b))
#else
#define EXTREMUM_OF(word, beats, a, b) a = b beats a || b != b ? b : a
#endif

struct Largest {
    static DEVICE_INLINE float neutral() {
        return __int_as_float(0xff800000);
    }
    static DEVICE_INLINE void replace(float &best, float x) {
        EXTREMUM_OF("max", >, best, x);
    }
};

struct Least {
    static DEVICE_INLINE float neutral() {
        return __int_as_float(0x7f800000);
    }
    static DEVICE_INLINE void replace(float &best, float x) {
        EXTREMUM_OF("min", <, best, x);
    }
};

// Y[i], the extremum of X[j] over the nonzeros (i, j), and share[i], one over the number of
// nonzeros that have it. Both are 0 for an empty row. The state holds the extremum and that number,
// which stays 0 if the extremum is NaN.
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
    static DEVICE_INLINE void initialize(State<2> &state) {
        state = {};
#pragma unroll
        for (int c = 0; c < WIDTH; ++c) state.sums[0].x[c] = Reduction::neutral();
    }
    // Finds the extremum of all nonzeros first: then each costs one comparison to count.
    template <int N>
    DEVICE_INLINE void accumulate(State<2> &state, const Row &, const Item (&items)[N],
                                  const int (&columns)[N], float (&)[N], const Position &) {
        float weights[N];  // absent items are equal to an extremum of infinity
#pragma unroll
        for (int n = 0; n < N; ++n) weights[n] = columns[n] >= 0 ? 1.0f : 0.0f;
#pragma unroll
        for (int c = 0; c < WIDTH; ++c) {
            float &best = state.sums[0].x[c], &number = state.sums[1].x[c];
            const float before = best;
#pragma unroll
            for (int n = 0; n < N; ++n) Reduction::replace(best, items[n].x.x[c]);
            number = before == best ? number : 0.0f;
#pragma unroll
            for (int n = 0; n < N; ++n) {
                if (items[n].x.x[c] == best) number += weights[n];
            }
        }
    }
    static DEVICE_INLINE void merge_sums(State<2> &state, const State<2> &part, float) {
#pragma unroll
        for (int c = 0; c < WIDTH; ++c) {
            const float before = state.sums[0].x[c], x = part.sums[0].x[c];
            float &best = state.sums[0].x[c], &number = state.sums[1].x[c];
            Reduction::replace(best, x);
            number = (before == best ? number : 0.0f) + (x == best ? part.sums[1].x[c] : 0.0f);
        }
    }
    static DEVICE_INLINE void finish(State<2> &state) {
#pragma unroll
        for (int c = 0; c < WIDTH; ++c) {
            float &best = state.sums[0].x[c], &number = state.sums[1].x[c];
            if (best != best) number = 1.0f;
            if (number == 0.0f) best = 0.0f;
#ifdef ITEMS  // PyTorch counts the initial 0 among the equal extrema
            if (number > 0.0f && best == 0.0f) number += 1.0f;
#endif
            number = number > 0.0f ? 1.0f / number : 0.0f;
        }
    }
    DEVICE_INLINE float *output(int o) const {
        return o == 0 ? Y : share;
    }
};

template <class Reduction>
DEVICE_INLINE typename Extremum<Reduction>::Item absent_item(const Extremum<Reduction> &) {
    typename Extremum<Reduction>::Item item;
#pragma unroll
    for (int c = 0; c < WIDTH; ++c) item.x.x[c] = Reduction::neutral();
    return item;
}

// dX[j], the sum of dY[i] over the nonzeros (i, j) with Y[i] = X[j]. dY is already times `share`.
// Few elements are equal. Codes of a byte tell most of those that are not: Y and dY are loaded for
// vectors of columns with an equal code only, the candidates.
struct ExtremumSources : Sums, NoTotals {
    static constexpr int OUTPUTS = 1;
    struct Item {
        Code codes[Config::lane_vectors];
    };
    struct Row {
        Columns x;
        Item coded;
    };
    Input X, Y, dY;
    const unsigned char *__restrict__ codes;
    Output dX;
    Dropout dropout;  // of rate 0

    DEVICE_INLINE Row row(const Position &position, int j) const {
        Row row = {position.load(X, j), {}};
#pragma unroll
        for (int i = 0; i < Config::lane_vectors; ++i) row.coded.codes[i] = code_of(row.x, i);
        return row;
    }
    DEVICE_INLINE Item item(const Position &position, int i) const {
        Item item;
        load_codes(item.codes, codes, position, i);
        return item;
    }
    // Adds vector v of dY[i[m]] where it is equal, for each m that is `needed`.
    template <int M>
    DEVICE_INLINE void add(State<1> &state, const Row &row, int v, const int (&i)[M],
                           const bool (&needed)[M], const Position &position) const {
        Vector y[M] = {}, dy[M] = {};
#pragma unroll
        for (int m = 0; m < M; ++m) {
            if (needed[m]) y[m] = __ldg(position.vector(Y, i[m], v));
            if (needed[m]) dy[m] = __ldg(position.vector(dY, i[m], v));
        }
#pragma unroll
        for (int m = 0; m < M; ++m) {
#pragma unroll
            for (int j = 0; j < Config::vector; ++j) {
                const int c = v * Config::vector + j;
                const bool equal = needed[m] && part(y[m], j) == row.x.x[c];
                if (equal) state.sums[0].x[c] += part(dy[m], j);
            }
        }
    }
    template <int N>
    DEVICE_INLINE void accumulate(State<1> &state, const Row &row, const Item (&items)[N],
                                  const int (&columns)[N], float (&)[N], const Position &position) {
#pragma unroll
        for (int v = 0; v < Config::lane_vectors; ++v) {
            bool needed[N];
#pragma unroll
            for (int n = 0; n < N; ++n) {
                needed[n] = columns[n] >= 0 && position.has(v) &&
                            has_equal_code(items[n].codes[v], row.coded.codes[v]);
            }
            add(state, row, v, columns, needed, position);
        }
    }
    // Accumulates nonzeros with these columns. Finds the candidates of many nonzeros first, so that
    // few lanes wait for those of others, and loads two at a time.
    DEVICE_INLINE void accumulate_run(State<1> &state, const Row &row, const int *columns,
                                      int count, const Position &position) const {
        constexpr int SCANNED = Config::lane_vectors > 4 ? 4 : 16 / Config::lane_vectors;
        for (int first = 0; first < count; first += SCANNED, columns += SCANNED) {
            unsigned candidates[Config::lane_vectors] = {};
            Item items[SCANNED];
#pragma unroll
            for (int n = 0; n < SCANNED; ++n) {
                if (first + n < count) items[n] = item(position, columns[n]);
            }
#pragma unroll
            for (int n = 0; n < SCANNED; ++n) {
#pragma unroll
                for (int v = 0; v < Config::lane_vectors; ++v) {
                    const bool equal = has_equal_code(items[n].codes[v], row.coded.codes[v]);
                    if (first + n < count && equal && position.has(v)) candidates[v] |= 1u << n;
                }
            }
            unsigned left = 0;
            do {
                left = 0;
#pragma unroll
                for (int v = 0; v < Config::lane_vectors; ++v) {
                    bool needed[2];
                    int i[2];
#pragma unroll
                    for (int m = 0; m < 2; ++m) {
                        needed[m] = candidates[v] != 0;
                        i[m] = columns[needed[m] ? __ffs(candidates[v]) - 1 : 0];
                        candidates[v] &= candidates[v] - 1;
                    }
                    add(state, row, v, i, needed, position);
                    left |= candidates[v];
                }
            } while (left);
        }
    }
    DEVICE_INLINE float *output(int) const {
        return dX;
    }
};
