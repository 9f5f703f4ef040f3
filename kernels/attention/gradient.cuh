// What the gradients of attention compute of a row and its nonzeros. With
//   alpha = exp(score - logsumexp[i]),  g = dY[i] . V[j],  D[i] = dY[i] . Y[i],
//   d_score = alpha (multiplier g - D[i])
// where `multiplier` is 0 or 1 / (1 - rate). "Senders" walk the transposed matrix: a row is j, and
// its items are receivers i; "receivers" walk the matrix itself. `statistics` has, for each
// receiver and head, what a kernel before has put there: (logsumexp, D), of GAT (receiver,
// logsumexp, D, 0).
#pragma once

#include "attention/forward.cuh"

// What all have in common: sums, which parts add up to.
struct Sums {
    static DEVICE_INLINE float2 none() {
        return make_float2(0.0f, 0.0f);
    }
    static DEVICE_INLINE float2 together(float2 a, float2 b) {
        return make_float2(a.x + b.x, 0.0f);
    }
    static DEVICE_INLINE float share(float2, float2) {
        return 1.0f;
    }
    static DEVICE_INLINE float result(float sum, float2) {
        return sum;
    }
    DEVICE_INLINE void finish(long long, float2) const {
    }
};

// And functors that add one nonzero after another: `add` of one that is there or not.
template <class Functor>
struct NonzeroByNonzero : Sums {
    template <int N, class Head, class Row, class Item>
    DEVICE_INLINE void take(Head &state, const Row &row, const Item (&items)[N],
                            const int (&columns)[N], float (&multipliers)[N], const Position &) {
#pragma unroll
        for (int n = 0; n < N; ++n) {
            static_cast<Functor &>(*this).add(state, row, items[n], columns[n] >= 0,
                                              multipliers[n]);
        }
    }
};

DEVICE_INLINE float2 statistics_of(Input statistics, const Position &position, int i) {
    const float2 *all = reinterpret_cast<const float2 *>(statistics);
    return position.exists() ? __ldg(&all[position.head_of(i)]) : float2{};
}

// Of GAT: what alpha comes to, and d_score times the slope of the LeakyReLU; `known` is a
// receiver's.
DEVICE_INLINE float2 gat_weights(float sender, float g, float4 known, float multiplier,
                                 float slope) {
    const float x = known.x + sender;
    const float alpha = __expf(leaky(x, slope) - known.y);
    const float d_score = alpha * (multiplier * g - known.z);
    return make_float2(alpha * multiplier, x > 0.0f ? d_score : slope * d_score);
}

// dV[j] and d_sender[j]
struct GatSenders : Sums, NoTotals {
    static constexpr int OUTPUTS = 1;
    struct Row {
        Columns v;
        float sender;
    };
    struct Item {
        Columns dy;
        float4 known;
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
        const float4 *all = reinterpret_cast<const float4 *>(statistics);
        return {position.load(dY, i),
                position.exists() ? __ldg(&all[position.head_of(i)]) : float4{}};
    }
    template <int N>
    DEVICE_INLINE void take(State<1> &state, const Row &row, const Item (&items)[N],
                            const int (&columns)[N], float (&multipliers)[N],
                            const Position &position) {
        float g[N];
#pragma unroll
        for (int n = 0; n < N; ++n) g[n] = Position::sum(inner(items[n].dy, row.v));
#pragma unroll
        for (int n = 0; n < N; ++n) {
            if (columns[n] < 0) continue;
            const float2 weights =
                gat_weights(row.sender, g[n], items[n].known, multipliers[n], slope);
            state.head.x += weights.y;
            add_product(state.sums[0], weights.x, items[n].dy);
        }
    }
    DEVICE_INLINE float *out(int) const {
        return dV;
    }
    DEVICE_INLINE void finish(long long row_head, float2 head) const {
        d_sender[row_head] = head.x;
    }
};

// d_receiver[i], which has no columns: nothing is kept but a number of each head.
struct GatReceivers : NonzeroByNonzero<GatReceivers>, NoTotals {
    static constexpr int OUTPUTS = 0;
    struct Row {
        Columns dy;
        float4 known;
    };
    using Item = GatScore::Item;
    Input statistics, sender, V, dY;
    float slope;
    Dropout dropout;
    Output d_receiver;

    DEVICE_INLINE Row row(const Position &position, int i) const {
        const float4 *all = reinterpret_cast<const float4 *>(statistics);
        return {position.load(dY, i),
                position.exists() ? __ldg(&all[position.head_of(i)]) : float4{}};
    }
    DEVICE_INLINE Item item(const Position &position, int j) const {
        return GatScore{nullptr, sender, V, slope}.item(position, j);
    }
    DEVICE_INLINE void add(State<0> &state, const Row &row, const Item &item, bool present,
                           float multiplier) {
        const float g = Position::sum(inner(row.dy, item.v));
        if (!present) return;
        state.head.x += gat_weights(item.sender, g, row.known, multiplier, slope).y;
    }
    DEVICE_INLINE float *out(int) const {
        return nullptr;
    }
    DEVICE_INLINE void finish(long long row_head, float2 head) const {
        d_receiver[row_head] = head.x;
    }
};

// alpha multiplier, and d_score.
DEVICE_INLINE float2 weights_of(float score, float g, float2 known, float multiplier) {
    const float alpha = __expf(score - known.x);
    return make_float2(alpha * multiplier, alpha * (multiplier * g - known.y));
}

// dV[j]
struct Gatv2Senders : NonzeroByNonzero<Gatv2Senders>, NoTotals {
    static constexpr int OUTPUTS = 1;
    struct Row {
        Columns v, a;
    };
    struct Item {
        Columns r, dy;
        float2 known;
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
        const float2 weights = weights_of(score, g, item.known, multiplier);
#pragma unroll
        for (int c = 0; c < WIDTH; ++c) {
            const float rise = item.r.x[c] + row.v.x[c] > 0.0f ? 1.0f : slope;
            state.sums[0].x[c] += weights.x * item.dy.x[c] + weights.y * rise * row.a.x[c];
        }
    }
    DEVICE_INLINE float *out(int) const {
        return dV;
    }
};

// dR[i], and of all nonzeros together da.
struct Gatv2Receivers : NonzeroByNonzero<Gatv2Receivers> {
    static constexpr int OUTPUTS = 1;
    struct Row {
        Columns r, a, dy;
        float2 known;
    };
    struct Item {
        Columns v;
    };
    Input statistics, R, V, a, dY;
    float slope;
    Dropout dropout;
    Output dR;
    Columns da;  // the lane's part, of all its rows

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
        const float2 weights = weights_of(score, g, row.known, multiplier);
#pragma unroll
        for (int c = 0; c < WIDTH; ++c) {
            const float x = row.r.x[c] + item.v.x[c];
            const float rise = x > 0.0f ? weights.y : slope * weights.y;
            state.sums[0].x[c] += rise * row.a.x[c];
            da.x[c] += rise * x;
        }
    }
    DEVICE_INLINE float *out(int) const {
        return dR;
    }
    DEVICE_INLINE const Columns *totals() const {
        return &da;
    }
};

// d_scale[j] and dV[j]
struct CosineSenders : NonzeroByNonzero<CosineSenders>, NoTotals {
    static constexpr int OUTPUTS = 1;
    struct Row {
        Columns v;
        float scale;
    };
    struct Item {
        Columns q, dy;
        float2 known;
    };
    Input statistics, Q, V, scale, dY;
    Dropout dropout;
    Output d_scale, dV;

    DEVICE_INLINE Row row(const Position &position, int j) const {
        return {position.load(V, j), position.exists() ? __ldg(&scale[position.head_of(j)]) : 0.0f};
    }
    DEVICE_INLINE Item item(const Position &position, int i) const {
        return {position.load(Q, i), position.load(dY, i), statistics_of(statistics, position, i)};
    }
    DEVICE_INLINE void add(State<1> &state, const Row &row, const Item &item, bool present,
                           float multiplier) {
        const float product = Position::sum(inner(item.q, row.v));
        const float g = Position::sum(inner(item.dy, row.v));
        if (!present) return;
        const float2 weights = weights_of(row.scale * product, g, item.known, multiplier);
        state.head.x += weights.y * product;
        add_product(state.sums[0], weights.y * row.scale, item.q);
        add_product(state.sums[0], weights.x, item.dy);
    }
    DEVICE_INLINE float *out(int) const {
        return dV;
    }
    DEVICE_INLINE void finish(long long row_head, float2 head) const {
        d_scale[row_head] = head.x;
    }
};

// dQ[i]
struct CosineReceivers : NonzeroByNonzero<CosineReceivers>, NoTotals {
    static constexpr int OUTPUTS = 1;
    struct Row {
        Columns q, dy;
        float2 known;
    };
    using Item = CosineScore::Item;
    Input statistics, Q, V, scale, dY;
    Dropout dropout;
    Output dQ;

    DEVICE_INLINE Row row(const Position &position, int i) const {
        return {position.load(Q, i), position.load(dY, i), statistics_of(statistics, position, i)};
    }
    DEVICE_INLINE Item item(const Position &position, int j) const {
        return CosineScore{Q, V, scale}.item(position, j);
    }
    DEVICE_INLINE void add(State<1> &state, const Row &row, const Item &item, bool present,
                           float multiplier) {
        const float scale = item.scale;
        const float score = scale * Position::sum(inner(row.q, item.v));
        const float g = Position::sum(inner(row.dy, item.v));
        if (!present) return;
        const float2 weights = weights_of(score, g, row.known, multiplier);
        add_product(state.sums[0], weights.y * scale, item.v);
    }
    DEVICE_INLINE float *out(int) const {
        return dQ;
    }
};

// dX[j] of a product with weighted nonzeros, and d_values of each: `multiplier` is the weight, and
// what is left in its place is dY[i] . X[j].
struct SpmmSenders : NonzeroByNonzero<SpmmSenders>, NoTotals {
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
    DEVICE_INLINE float *out(int) const {
        return dX;
    }
};

// Nonzeros that follow each other in the order in which they are walked: which they are for the
// caller (nullptr: the same), and the place of the first.
struct Walked {
    const unsigned *__restrict__ order;
    long long first;

    DEVICE_INLINE unsigned of_caller(int k) const {
        return order == nullptr ? unsigned(first + k) : order[k];
    }
};

// What nonzero k is multiplied with: dropout's factor, of a product its weight. And whether all are
// multiplied with 1.
template <class Functor>
DEVICE_INLINE float factor(const Functor &functor, const Walked &walked, int k, int head) {
    return functor.dropout.factor(walked.of_caller(k), head);
}
DEVICE_INLINE float factor(const SpmmSenders &functor, const Walked &walked, int k, int) {
    return functor.values[walked.first + k];
}
template <class Functor>
DEVICE_INLINE bool unchanged(const Functor &functor) {
    return functor.dropout.rate == 0.0f;
}
DEVICE_INLINE bool unchanged(const SpmmSenders &) {
    return false;
}

// Writes what a product leaves of a nonzero; attention leaves nothing.
template <class Functor>
DEVICE_INLINE void leave(const Functor &, const Walked &, int, float) {
}
DEVICE_INLINE void leave(const SpmmSenders &functor, const Walked &walked, int k, float gradient) {
    functor.d_values[walked.of_caller(k)] = gradient;
}
