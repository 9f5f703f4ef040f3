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
    static DEVICE_INLINE bool beats(float x, float best) {
        return x > best;
    }
    static DEVICE_INLINE void replace(float &best, float x) {
        EXTREMUM_OF("max", >, best, x);
    }
};

struct Least {
    static DEVICE_INLINE float neutral() {
        return __int_as_float(0x7f800000);
    }
    static DEVICE_INLINE bool beats(float x, float best) {
        return x < best;
    }
    static DEVICE_INLINE void replace(float &best, float x) {
        EXTREMUM_OF("min", <, best, x);
    }
};

// Sources of an extremum: the column of the only nonzero that has it, else ~k for k equal nonzeros,
// so that -1 is none. Numbers of Columns hold their bits.
DEVICE_INLINE int n_equal(int source) {
    return source < 0 ? ~source : 1;
}
DEVICE_INLINE int joined(int source, int other) {
    if (source == -1) return other;
    return other == -1 ? source : ~(n_equal(source) + n_equal(other));
}

// Y[i], the extremum of X[j] over the nonzeros (i, j), and its source. With `first`, the source is
// the first of equal nonzeros. If the extremum is NaN, the source is ~1: no X is equal to it.
template <class Reduction>
struct Extremum : Sums, NoTotals {
    static constexpr int OUTPUTS = 2;
    struct Row {};
    struct Item {
        Columns x;
    };
    Input X;
    float first;
    Output Y;
    int *__restrict__ source;
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
        for (int c = 0; c < WIDTH; ++c) {
            state.sums[0].x[c] = Reduction::neutral();
            state.sums[1].x[c] = __int_as_float(-1);
        }
    }
    // Returns the source of equal extrema, of which `source` comes first.
    DEVICE_INLINE int merged(int source, int other) const {
        return first != 0.0f && source >= 0 ? source : joined(source, other);
    }
    // Finds the extremum of all nonzeros first: then each costs one comparison to count.
    template <int N>
    DEVICE_INLINE void accumulate(State<2> &state, const Row &, const Item (&items)[N],
                                  const int (&columns)[N], float (&)[N], const Position &) {
#pragma unroll
        for (int c = 0; c < WIDTH; ++c) {
            float &best = state.sums[0].x[c], &bits = state.sums[1].x[c];
            const float before = best;
#pragma unroll
            for (int n = 0; n < N; ++n) Reduction::replace(best, items[n].x.x[c]);
            int number = 0, column = -1;
#pragma unroll
            for (int n = N - 1; n >= 0; --n) {
                if (items[n].x.x[c] == best && columns[n] >= 0) {
                    ++number;
                    column = columns[n];
                }
            }
            const int of_batch = number > 1 && first == 0.0f ? ~number : column;
            bits =
                __int_as_float(before == best ? merged(__float_as_int(bits), of_batch) : of_batch);
        }
    }
    // Accumulates nonzeros `begin` to `end` - 1 of a block; absent items follow them. Sources are
    // indices of nonzeros in place of columns, so that equal numbers, which are rare, can be
    // counted afterwards: a number costs four instructions. The source of a NaN has no meaning.
    template <int N>
    DEVICE_INLINE void accumulate_run(State<2> &state, const Item (&items)[N], int begin,
                                      int end) const {
        bool any_equal = false;
#pragma unroll
        for (int c = 0; c < WIDTH; ++c) {
            float &best = state.sums[0].x[c], &bits = state.sums[1].x[c];
#pragma unroll
            for (int n = 0; n < N; ++n) {
                const float x = items[n].x.x[c];
                any_equal |= x == best;
                if (Reduction::beats(x, best)) bits = __int_as_float(begin + n);
                Reduction::replace(best, x);
            }
        }
        if (!any_equal) return;
#pragma unroll
        for (int c = 0; c < WIDTH; ++c) {
            float &bits = state.sums[1].x[c];
            int number = 0, earliest = -1;
#pragma unroll
            for (int n = N - 1; n >= 0; --n) {
                if (items[n].x.x[c] == state.sums[0].x[c] && begin + n < end) {
                    ++number;
                    earliest = begin + n;
                }
            }
            const int source = __float_as_int(bits);
            const int of_batch = number > 1 && first == 0.0f ? ~number : earliest;
            bits = __int_as_float(source >= begin ? of_batch : merged(source, of_batch));
        }
    }
    DEVICE_INLINE void merge_sums(State<2> &state, const State<2> &part, float) const {
#pragma unroll
        for (int c = 0; c < WIDTH; ++c) {
            const float before = state.sums[0].x[c], x = part.sums[0].x[c];
            float &best = state.sums[0].x[c], &bits = state.sums[1].x[c];
            Reduction::replace(best, x);
            const int source = before == best ? __float_as_int(bits) : -1;
            const int other = x == best ? __float_as_int(part.sums[1].x[c]) : -1;
            bits = __int_as_float(merged(source, other));
        }
    }
    DEVICE_INLINE void finish(State<2> &state) const {
#pragma unroll
        for (int c = 0; c < WIDTH; ++c) {
            float &best = state.sums[0].x[c];
            int source = __float_as_int(state.sums[1].x[c]);
            if (best != best) {
                source = ~1;
            } else if (source == -1) {
                best = 0.0f;
            }
#ifdef ITEMS  // PyTorch counts the initial 0 among the equal extrema
            else if (best == 0.0f && first == 0.0f)
                source = ~(n_equal(source) + 1);
#endif
            state.sums[1].x[c] = __int_as_float(source);
        }
    }
    DEVICE_INLINE float *output(int o) const {
        return o == 0 ? Y : reinterpret_cast<float *>(source);
    }
};

template <class Reduction>
DEVICE_INLINE typename Extremum<Reduction>::Item absent_item(const Extremum<Reduction> &) {
    typename Extremum<Reduction>::Item item;
#pragma unroll
    for (int c = 0; c < WIDTH; ++c) item.x.x[c] = Reduction::neutral();
    return item;
}

// The part of dY that each equal nonzero gets.
DEVICE_INLINE float equal_part(float dy, int source) {
    return source >= 0 ? dy : dy / float(~source);
}

// dX[j], the sum of parts of dY[i] over the nonzeros (i, j) with Y[i] = X[j]; without atomics.
// Few elements are equal. Codes of a byte tell most of those that are not: Y, dY and source are
// loaded for vectors of columns with an equal code only, the candidates.
struct ExtremumSources : Sums, NoTotals {
    static constexpr int OUTPUTS = 1;
    struct Item {
        Code codes[Config::lane_vectors];
    };
    struct Row {
        Columns x;
        Item coded;
        int number;
    };
    Input X, Y, dY;
    const int *__restrict__ source;
    const unsigned char *__restrict__ codes;
    Output dX;
    Dropout dropout;  // of rate 0

    DEVICE_INLINE Row row(const Position &position, int j) const {
        Row row = {position.load(X, j), {}, j};
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
        Vector y[M] = {}, dy[M] = {}, sources[M] = {};
#pragma unroll
        for (int m = 0; m < M; ++m) {
            if (needed[m]) y[m] = __ldg(position.vector(Y, i[m], v));
            if (needed[m]) dy[m] = __ldg(position.vector(dY, i[m], v));
            if (needed[m]) sources[m] = load_sources(source, position, i[m], v);
        }
#pragma unroll
        for (int m = 0; m < M; ++m) {
#pragma unroll
            for (int j = 0; j < Config::vector; ++j) {
                const int c = v * Config::vector + j;
                const int from = __float_as_int(part(sources[m], j));
                const bool has_part = from >= 0 ? from == row.number : from < -1;
                const bool equal = has_part && part(y[m], j) == row.x.x[c];
                if (needed[m] && equal) state.sums[0].x[c] += equal_part(part(dy[m], j), from);
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

// The part of dX of equal nonzeros by atomics, row by row. `unique_extrema` (statistics.cu) added
// the others and marked the rows that are left.
struct TiedExtrema : Sums, NoTotals {
    static constexpr int OUTPUTS = 0;
    struct Row {};
    struct Item {};
    Input X, Y, dY;
    const int *__restrict__ source;
    const unsigned char *__restrict__ tied;
    Output dX;
    Dropout dropout;  // of rate 0

    DEVICE_INLINE float *output(int) const {
        return nullptr;
    }
    DEVICE_INLINE bool is_tied(int row, const Position &position) const {
        return position.exists() && tied[position.head_of(row)];
    }
    // Adds for nonzeros of row i with these columns; loads those of AT_ONCE together.
    template <int AT_ONCE>
    DEVICE_INLINE void add(const int *columns, int count, int i, const Position &position) const {
#pragma unroll
        for (int v = 0; v < Config::lane_vectors; ++v) {
            if (!position.has(v)) continue;
            const Vector sources = load_sources(source, position, i, v);
            const Vector y = __ldg(position.vector(Y, i, v));
            const Vector dy = __ldg(position.vector(dY, i, v));
            float parts[Config::vector];
            bool needed = false;
#pragma unroll
            for (int j = 0; j < Config::vector; ++j) {
                const int from = __float_as_int(part(sources, j));
                parts[j] = from < -1 ? equal_part(part(dy, j), from) : 0.0f;
                needed |= from < -1;
            }
            if (!needed) continue;
            for (int k = 0; k < count; k += AT_ONCE) {
                Vector x[AT_ONCE] = {};
#pragma unroll
                for (int n = 0; n < AT_ONCE; ++n) {
                    if (k + n < count) x[n] = __ldg(position.vector(X, columns[k + n], v));
                }
#pragma unroll
                for (int n = 0; n < AT_ONCE; ++n) {
                    if (k + n >= count) break;
                    float *to = dX + position.element(columns[k + n], v);
#pragma unroll
                    for (int j = 0; j < Config::vector; ++j) {
                        const bool is_equal = part(x[n], j) == part(y, j);
                        if (is_equal && parts[j] != 0.0f) atomicAdd(to + j, parts[j]);
                    }
                }
            }
        }
    }
};
