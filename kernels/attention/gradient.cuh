// Functors of the backward pass of attention, and of SpMM with weighted nonzeros. With
//   alpha = exp(score - row_max[i]) / row_sum[i],  g = dY[i] . V[j],  D[i] = dY[i] . Y[i],
//   d_score = alpha (multiplier g - D[i])
// where `multiplier` is dropout's factor, 0 or 1 / (1 - rate). A nonzero (i, j) is an edge from
// source j to target i. "Sources" functors process the transposed matrix: a row is j, its items are
// targets i. "Targets" functors process the matrix itself: a row is i, its items are sources j.
// `statistics` has four numbers per target and head, written by statistics.cu: row_max, 1 /
// row_sum, D, and the score term `receiver` of GAT.
#pragma once

#include "attention/forward.cuh"

struct Statistics {
    float row_max, inverse_sum, D, receiver;
};

// Common part of all functors here: the state is a sum, so states are merged by addition.
struct Sums {
    template <int OUTPUTS>
    static DEVICE_INLINE void initialize(State<OUTPUTS> &state) {
        state = {};
    }
    static DEVICE_INLINE float2 merge(float2 a, float2 b) {
        return make_float2(a.x + b.x, 0.0f);
    }
    static DEVICE_INLINE float part_factor(float2, float2) {
        return 1.0f;
    }
    template <int OUTPUTS>
    static DEVICE_INLINE void merge_sums(State<OUTPUTS> &state, const State<OUTPUTS> &part,
                                         float factor) {
        add_part(state, part, factor);
    }
    template <int OUTPUTS>
    static DEVICE_INLINE void finish(State<OUTPUTS> &) {
    }
    DEVICE_INLINE void store_head(long long, float2) const {
    }
};

// Base of functors with a method `add` for one nonzero, which may be absent (`present` false).
template <class Functor>
struct NonzeroByNonzero : Sums {
    template <int N, class Head, class Row, class Item>
    DEVICE_INLINE void accumulate(Head &state, const Row &row, const Item (&items)[N],
                                  const int (&columns)[N], float (&multipliers)[N],
                                  const Position &) {
#pragma unroll
        for (int n = 0; n < N; ++n) {
            static_cast<Functor &>(*this).add(state, row, items[n], columns[n] >= 0,
                                              multipliers[n]);
        }
    }
};

// Loads a target's statistics. A load of 16 bytes occupies four registers a nonzero, so that
// kernels would spill; only GAT, which needs all four numbers, has one.
template <bool RECEIVER = false>
DEVICE_INLINE Statistics statistics_of(Input statistics, const Position &position, int i) {
    if (!position.exists()) return {};
    const float *from = statistics + 4 * position.head_of(i);
    if (RECEIVER) {
        const float4 all = __ldg(reinterpret_cast<const float4 *>(from));
        return {all.x, all.y, all.z, all.w};
    }
    const float2 softmax = __ldg(reinterpret_cast<const float2 *>(from));
    return {softmax.x, softmax.y, __ldg(from + 2), 0.0f};
}

// Returns alpha * multiplier, and d_score.
DEVICE_INLINE float2 weights_of(float score, float g, const Statistics &stats, float multiplier) {
    const float alpha = __expf(score - stats.row_max) * stats.inverse_sum;
    return make_float2(alpha * multiplier, alpha * (multiplier * g - stats.D));
}

// The same for GAT, with d_score times the slope of LeakyReLU. `stats` are the target's statistics.
DEVICE_INLINE float2 gat_weights(float sender, float g, const Statistics &stats, float multiplier,
                                 float slope) {
    const float x = stats.receiver + sender;
    const float2 weights = weights_of(leaky(x, slope), g, stats, multiplier);
    return make_float2(weights.x, x > 0.0f ? weights.y : slope * weights.y);
}

// Gradients of GAT by a source: dV[j] and d_sender[j].
struct GatSources : Sums, NoTotals {
    static constexpr int OUTPUTS = 1;
    struct Row {
        Columns v;
        float sender;
    };
    struct Item {
        Columns dy;
        Statistics stats;
    };
    Input statistics, sender, V, dY;
    float slope;
    Dropout dropout;
    Output d_sender, dV;

    DEVICE_INLINE Row row(const Position &position, int j) const {
        return {position.load(V, j),
                position.exists() ? __ldg(&sender[position.head_of(j)]) : 0.0f};
    }
    DEVICE_INLINE Item item(const Position &position, int i) const {
        return {position.load(dY, i), statistics_of<true>(statistics, position, i)};
    }
    template <int N>
    DEVICE_INLINE void accumulate(State<1> &state, const Row &row, const Item (&items)[N],
                                  const int (&columns)[N], float (&multipliers)[N],
                                  const Position &position) {
        float g[N];
#pragma unroll
        for (int n = 0; n < N; ++n) g[n] = Position::sum(inner(items[n].dy, row.v));
#pragma unroll
        for (int n = 0; n < N; ++n) {
            if (columns[n] < 0) continue;
            const float2 weights =
                gat_weights(row.sender, g[n], items[n].stats, multipliers[n], slope);
            state.head.x += weights.y;
            add_product(state.sums[0], weights.x, items[n].dy);
        }
    }
    DEVICE_INLINE float *output(int) const {
        return dV;
    }
    DEVICE_INLINE void store_head(long long row_head, float2 head) const {
        d_sender[row_head] = head.x;
    }
};

// Gradient of GAT by a target: d_receiver[i], one number per head and no columns.
struct GatTargets : NonzeroByNonzero<GatTargets>, NoTotals {
    static constexpr int OUTPUTS = 0;
    struct Row {
        Columns dy;
        Statistics stats;
    };
    using Item = GatScore::Item;
    Input statistics, sender, V, dY;
    float slope;
    Dropout dropout;
    Output d_receiver;

    DEVICE_INLINE Row row(const Position &position, int i) const {
        return {position.load(dY, i), statistics_of<true>(statistics, position, i)};
    }
    DEVICE_INLINE Item item(const Position &position, int j) const {
        return GatScore{nullptr, sender, V, slope}.item(position, j);
    }
    DEVICE_INLINE void add(State<0> &state, const Row &row, const Item &item, bool present,
                           float multiplier) {
        const float g = Position::sum(inner(row.dy, item.v));
        if (!present) return;
        state.head.x += gat_weights(item.sender, g, row.stats, multiplier, slope).y;
    }
    DEVICE_INLINE float *output(int) const {
        return nullptr;
    }
    DEVICE_INLINE void store_head(long long row_head, float2 head) const {
        d_receiver[row_head] = head.x;
    }
};

// Gradient of GATv2 by a source: dV[j].
struct Gatv2Sources : NonzeroByNonzero<Gatv2Sources>, NoTotals {
    static constexpr int OUTPUTS = 1;
    struct Row {
        Columns v, a;
    };
    struct Item {
        Columns r, dy;
        Statistics stats;
    };
    Input statistics, R, V, a, dY;
    float slope;
    Dropout dropout;
    Output dV;

    DEVICE_INLINE Row row(const Position &position, int j) const {
        return {position.load(V, j), position.load(a, 0)};
    }
    DEVICE_INLINE Item item(const Position &position, int i) const {
        return {position.load(R, i), position.load(dY, i), statistics_of(statistics, position, i)};
    }
    DEVICE_INLINE void add(State<1> &state, const Row &row, const Item &item, bool present,
                           float multiplier) {
        const float score = Position::sum(leaky_dot(row.a, item.r, row.v, slope));
        const float g = Position::sum(inner(item.dy, row.v));
        if (!present) return;
        const float2 weights = weights_of(score, g, item.stats, multiplier);
#pragma unroll
        for (int c = 0; c < WIDTH; ++c) {
            const float slope_here = item.r.x[c] + row.v.x[c] > 0.0f ? 1.0f : slope;
            state.sums[0].x[c] += weights.x * item.dy.x[c] + weights.y * slope_here * row.a.x[c];
        }
    }
    DEVICE_INLINE float *output(int) const {
        return dV;
    }
};

// Gradients of GATv2 by a target, dR[i], and by the vector a, summed over all nonzeros.
struct Gatv2Targets : NonzeroByNonzero<Gatv2Targets> {
    static constexpr int OUTPUTS = 1;
    struct Row {
        Columns r, a, dy;
        Statistics stats;
    };
    struct Item {
        Columns v;
    };
    Input statistics, R, V, a, dY;
    float slope;
    Dropout dropout;
    Output dR;
    Columns da;  // sum over all rows of this lane

    DEVICE_INLINE Row row(const Position &position, int i) const {
        return {position.load(R, i), position.load(a, 0), position.load(dY, i),
                statistics_of(statistics, position, i)};
    }
    DEVICE_INLINE Item item(const Position &position, int j) const {
        return {position.load(V, j)};
    }
    DEVICE_INLINE void add(State<1> &state, const Row &row, const Item &item, bool present,
                           float multiplier) {
        const float score = Position::sum(leaky_dot(row.a, row.r, item.v, slope));
        const float g = Position::sum(inner(row.dy, item.v));
        if (!present) return;
        const float2 weights = weights_of(score, g, row.stats, multiplier);
#pragma unroll
        for (int c = 0; c < WIDTH; ++c) {
            const float x = row.r.x[c] + item.v.x[c];
            const float slope_here = x > 0.0f ? weights.y : slope * weights.y;
            state.sums[0].x[c] += slope_here * row.a.x[c];
            da.x[c] += slope_here * x;
        }
    }
    DEVICE_INLINE float *output(int) const {
        return dR;
    }
    DEVICE_INLINE const Columns *totals() const {
        return &da;
    }
};

// Gradients of dot and cosine attention by a source. Of dot: dV[j] and dK[j]. Of cosine, whose keys
// are V: dV[j] and d_scale[j].
template <class Score>
struct ProductSources : NonzeroByNonzero<ProductSources<Score>>, NoTotals {
    static constexpr int OUTPUTS = Score::SCALED ? 1 : 2, KEYS = OUTPUTS - 1;
    using Row = typename Score::Item;
    struct Item {
        Columns q, dy;
        Statistics stats;
    };
    Score score;
    Input statistics, dY;
    Dropout dropout;
    Output dV, d_keys;  // d_keys: dK or d_scale

    DEVICE_INLINE Row row(const Position &position, int j) const {
        return score.item(position, j);
    }
    DEVICE_INLINE Item item(const Position &position, int i) const {
        return {position.load(score.Q, i), position.load(dY, i),
                statistics_of(statistics, position, i)};
    }
    DEVICE_INLINE void add(State<OUTPUTS> &state, const Row &row, const Item &item, bool present,
                           float multiplier) {
        const float product = Position::sum(inner(item.q, row.key()));
        const float g = Position::sum(inner(item.dy, row.v));
        if (!present) return;
        const float2 weights = weights_of(row.scaled(product), g, item.stats, multiplier);
        if (Score::SCALED) state.head.x += weights.y * product;
        add_product(state.sums[KEYS], row.scaled(weights.y), item.q);
        add_product(state.sums[0], weights.x, item.dy);
    }
    DEVICE_INLINE float *output(int o) const {
        return o == 0 ? dV : d_keys;
    }
    DEVICE_INLINE void store_head(long long row_head, float2 head) const {
        if (Score::SCALED) d_keys[row_head] = head.x;
    }
};

// Gradient of dot and cosine attention by a target: dQ[i].
template <class Score>
struct ProductTargets : NonzeroByNonzero<ProductTargets<Score>>, NoTotals {
    static constexpr int OUTPUTS = 1;
    struct Row {
        typename Score::Row scored;
        Columns dy;
        Statistics stats;
    };
    using Item = typename Score::Item;
    Score score;
    Input statistics, dY;
    Dropout dropout;
    Output dQ;

    DEVICE_INLINE Row row(const Position &position, int i) const {
        return {score.row(position, i), position.load(dY, i),
                statistics_of(statistics, position, i)};
    }
    DEVICE_INLINE Item item(const Position &position, int j) const {
        return score.item(position, j);
    }
    DEVICE_INLINE void add(State<1> &state, const Row &row, const Item &item, bool present,
                           float multiplier) {
        const float value = score.compute(row.scored, item);
        const float g = Position::sum(inner(row.dy, item.v));
        if (!present) return;
        const float2 weights = weights_of(value, g, row.stats, multiplier);
        add_product(state.sums[0], item.scaled(weights.y), item.key());
    }
    DEVICE_INLINE float *output(int) const {
        return dQ;
    }
};

// Gradients of SpMM with weighted nonzeros: dX[j], and d_values of each nonzero. `multiplier` is
// the weight on entry and dY[i] . X[j] on return.
struct SpmmSources : NonzeroByNonzero<SpmmSources>, NoTotals {
    static constexpr int OUTPUTS = 1;
    struct Row {
        Columns x;
    };
    struct Item {
        Columns dy;
    };
    Input values, X, dY;
    Output d_values, dX;

    DEVICE_INLINE Row row(const Position &position, int j) const {
        return {position.load(X, j)};
    }
    DEVICE_INLINE Item item(const Position &position, int i) const {
        return {position.load(dY, i)};
    }
    DEVICE_INLINE void add(State<1> &state, const Row &row, const Item &item, bool present,
                           float &multiplier) {
        const float g = Position::sum(inner(item.dy, row.x));
        if (present) add_product(state.sums[0], multiplier, item.dy);
        multiplier = g;
    }
    DEVICE_INLINE float *output(int) const {
        return dX;
    }
};

// Nonzeros in processing order, from nonzero `first` on. `order` holds their indices in the
// caller's order; nullptr if both orders are the same.
struct NonzeroRange {
    const unsigned *__restrict__ order;
    long long first;

    DEVICE_INLINE unsigned caller_index(int k) const {
        return order == nullptr ? unsigned(first + k) : order[k];
    }
};

// Returns the multiplier of nonzero k: dropout's factor, or the weight in SpMM.
template <class Functor>
DEVICE_INLINE float factor(const Functor &functor, const NonzeroRange &range, int k, int head) {
    return functor.dropout.factor(range.caller_index(k), head);
}
DEVICE_INLINE float factor(const SpmmSources &functor, const NonzeroRange &range, int k, int) {
#ifdef ITEMS  // `values` is in the caller's order
    return functor.values[range.caller_index(k)];
#else
    return functor.values[range.first + k];
#endif
}
template <class Functor>
DEVICE_INLINE bool multipliers_are_one(const Functor &functor) {
    return functor.dropout.rate == 0.0f;
}
DEVICE_INLINE bool multipliers_are_one(const SpmmSources &) {
    return false;
}

// Writes d_values of nonzero k in SpMM. Attention has no output per nonzero.
template <class Functor>
DEVICE_INLINE void store_gradient(const Functor &, const NonzeroRange &, int, float) {
}
DEVICE_INLINE void store_gradient(const SpmmSources &functor, const NonzeroRange &range, int k,
                                  float gradient) {
    functor.d_values[range.caller_index(k)] = gradient;
}
