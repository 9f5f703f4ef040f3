// Functors of the forward pass of attention. For a row i, its nonzeros (i, j) and one head: a score
// per nonzero, the softmax alpha of the scores, and the sum of alpha V[j]. The three scores are
// GAT, GATv2, dot and cosine. A kernel takes a functor as a template argument.
//
// Row     operands of row i, loaded once
// Item    operands of one nonzero, loaded together, so that loads of several nonzeros overlap
// State   reduction over the nonzeros so far; the states of two parts of a row can be merged
#pragma once

#include "attention/columns.cuh"
#include "attention/softmax.cuh"
#include "philox.cuh"

// `head` holds two numbers per head; `sums` holds the lane's columns of each output.
template <int OUTPUTS>
struct State {
    float2 head;
    Columns sums[OUTPUTS > 0 ? OUTPUTS : 1];
};

// Adds the sums of a part of a row, times a factor, to the state.
template <int OUTPUTS>
DEVICE_INLINE void add_part(State<OUTPUTS> &state, const State<OUTPUTS> &part, float factor) {
#pragma unroll
    for (int o = 0; o < OUTPUTS; ++o) {
#pragma unroll
        for (int c = 0; c < WIDTH; ++c) state.sums[o].x[c] += factor * part.sums[o].x[c];
    }
}

// Returns the item in place of a nonzero that does not exist.
template <class Functor>
DEVICE_INLINE typename Functor::Item absent_item(const Functor &) {
    return {};
}

struct NoTotals {
    DEVICE_INLINE const Columns *totals() const {
        return nullptr;
    }
};

// The functors' base class. The head of a state is (largest score, sum of exp).
template <class Score>
struct Attention : NoTotals {
    static constexpr int OUTPUTS = 1;
    using Row = typename Score::Row;
    using Item = typename Score::Item;
    Score score;
    Dropout dropout;
    Output Y, row_max, row_sum;

    DEVICE_INLINE Row row(const Position &position, int i) const {
        return score.row(position, i);
    }
    DEVICE_INLINE Item item(const Position &position, int j) const {
        return score.item(position, j);
    }
    static DEVICE_INLINE void initialize(State<1> &state) {
        state = {};
        state.head = make_float2(LOWEST, 0.0f);
    }

    // Accumulates N nonzeros. A negative entry of `columns` stands for no nonzero; `multipliers`
    // holds the dropout factor of each nonzero.
    template <int N>
    DEVICE_INLINE void accumulate(State<1> &state, const Row &row, const Item (&items)[N],
                                  const int (&columns)[N], float (&multipliers)[N],
                                  const Position &position) {
        float scores[N], largest = state.head.x;
#pragma unroll
        for (int n = 0; n < N; ++n) {
            const float value = score.compute(row, items[n]);
            scores[n] = columns[n] >= 0 ? value : LOWEST;
            largest = fmaxf(largest, scores[n]);
        }
        const float rescale = __expf(state.head.x - largest);
        state.head = make_float2(largest, state.head.y * rescale);
#pragma unroll
        for (int c = 0; c < WIDTH; ++c) state.sums[0].x[c] *= rescale;
#pragma unroll
        for (int n = 0; n < N; ++n) {
            const float power = columns[n] >= 0 ? __expf(scores[n] - largest) : 0.0f;
            state.head.y += power;
            add_product(state.sums[0], power * multipliers[n], items[n].v);
        }
    }

    static DEVICE_INLINE float2 merge(float2 a, float2 b) {
        const Softmax all = merged(Softmax{a.x, a.y}, Softmax{b.x, b.y});
        return make_float2(all.largest, all.sum);
    }
    // Factor that rescales the sums of a part to the largest score of the merged state.
    static DEVICE_INLINE float part_factor(float2 part, float2 all) {
        return __expf(part.x - all.x);
    }
    static DEVICE_INLINE void merge_sums(State<1> &state, const State<1> &part, float factor) {
        add_part(state, part, factor);
    }
    DEVICE_INLINE float *output(int) const {
        return Y;
    }
    // Turns the state of all nonzeros of a row into the outputs.
    static DEVICE_INLINE void finish(State<1> &state) {
#pragma unroll
        for (int c = 0; c < WIDTH; ++c) {
            const float sum = state.sums[0].x[c];
            state.sums[0].x[c] = state.head.y > 0.0f ? sum / state.head.y : sum;
        }
    }
    DEVICE_INLINE void store_head(long long row_head, float2 head) const {
        row_max[row_head] = head.y == 0.0f ? 0.0f : head.x;  // 0 for a row without nonzeros
        row_sum[row_head] = head.y;
    }
};

// GAT: LeakyReLU(receiver[i] + sender[j]), with one number per head of a row i and of a column j.
struct GatScore {
    struct Row {
        float receiver;
    };
    struct Item {
        Columns v;
        float sender;
    };
    Input receiver, sender, V;
    float slope;

    DEVICE_INLINE Row row(const Position &position, int i) const {
        return {position.exists() ? __ldg(&receiver[position.score_of(i)]) : 0.0f};
    }
    DEVICE_INLINE Item item(const Position &position, int j) const {
        return {position.load(V, j),
                position.exists() ? __ldg(&sender[position.score_of(j)]) : 0.0f};
    }
    DEVICE_INLINE float compute(const Row &row, const Item &item) const {
        return leaky(row.receiver + item.sender, slope);
    }
};

// GATv2: a . LeakyReLU(R[i] + V[j])
struct Gatv2Score {
    struct Row {
        Columns r, a;
    };
    struct Item {
        Columns v;
    };
    Input R, V, a;
    float slope;

    DEVICE_INLINE Row row(const Position &position, int i) const {
        return {position.load(R, i), position.load(a, 0)};
    }
    DEVICE_INLINE Item item(const Position &position, int j) const {
        return {position.load(V, j)};
    }
    DEVICE_INLINE float compute(const Row &row, const Item &item) const {
        return Position::sum(leaky_dot(row.a, row.r, item.v, slope));
    }
};

// Dot: Q[i] . K[j], with keys K of their own.
struct DotScore {
    static constexpr bool SCALED = false;
    struct Row {
        Columns q;
    };
    struct Item {
        Columns k, v;
        DEVICE_INLINE const Columns &key() const {
            return k;
        }
        DEVICE_INLINE float scaled(float product) const {
            return product;
        }
    };
    Input Q, K, V;

    DEVICE_INLINE Row row(const Position &position, int i) const {
        return {position.load(Q, i)};
    }
    DEVICE_INLINE Item item(const Position &position, int j) const {
        return {position.load(K, j), position.load(V, j)};
    }
    DEVICE_INLINE float compute(const Row &row, const Item &item) const {
        return Position::sum(inner(row.q, item.k));
    }
};

// Cosine: scale[j] Q[i] . V[j]. V is both scored and summed, so an item loads one row.
struct CosineScore {
    static constexpr bool SCALED = true;
    using Row = DotScore::Row;
    struct Item {
        Columns v;
        float scale;
        DEVICE_INLINE const Columns &key() const {
            return v;
        }
        DEVICE_INLINE float scaled(float product) const {
            return __fmul_rn(scale, product);
        }
    };
    Input Q, V, scale;

    DEVICE_INLINE Row row(const Position &position, int i) const {
        return {position.load(Q, i)};
    }
    DEVICE_INLINE Item item(const Position &position, int j) const {
        return {position.load(V, j), position.exists() ? __ldg(&scale[position.head_of(j)]) : 0.0f};
    }
    DEVICE_INLINE float compute(const Row &row, const Item &item) const {
        return item.scaled(Position::sum(inner(row.q, item.v)));
    }
};
