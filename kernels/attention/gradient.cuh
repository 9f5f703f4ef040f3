// What the gradients of attention compute of a row and its nonzeros. With
//   alpha = exp(score - logsumexp[i]),  g = dY[i] . V[j],  D[i] = dY[i] . Y[i],
//   d_score = alpha (kept g - D[i])
// where `kept` is 0 or 1 / (1 - rate). "Senders" walk the transposed matrix: a row is j, and its
// items are receivers i; "receivers" walk the matrix itself. `statistics` has, for each receiver
// and head, what a kernel before has put there: (logsumexp, D), of GAT (receiver, logsumexp, D, 0).
#pragma once

#include "attention/forward.cuh"

// What all have in common: sums, which parts add up to.
struct Sums {
    static __device__ __forceinline__ float2 none() {
        return make_float2(0.0f, 0.0f);
    }
    static __device__ __forceinline__ float2 together(float2 a, float2 b) {
        return make_float2(a.x + b.x, 0.0f);
    }
    static __device__ __forceinline__ float share(float2, float2) {
        return 1.0f;
    }
    static __device__ __forceinline__ float result(float sum, float2) {
        return sum;
    }
    __device__ __forceinline__ void finish(long long, float2) const {
    }
};

__device__ __forceinline__ float2 statistics_of(const float *__restrict__ statistics,
                                                const Place &place, int i) {
    const float2 *all = reinterpret_cast<const float2 *>(statistics);
    return place.there() ? __ldg(&all[place.head_of(i)]) : float2{};
}

// Of GAT: what alpha comes to, and d_score times the slope of the LeakyReLU; `known` is a
// receiver's.
__device__ __forceinline__ float2 gat_weights(float sender, float g, float4 known, float kept,
                                              float slope) {
    const float x = known.x + sender;
    const float alpha = __expf(leaky(x, slope) - known.y);
    const float d_score = alpha * (kept * g - known.z);
    return make_float2(alpha * kept, x > 0.0f ? d_score : slope * d_score);
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
    const float *__restrict__ statistics;
    const float *__restrict__ sender;
    const float *__restrict__ V;
    const float *__restrict__ dY;
    float slope;
    Dropout dropout;
    float *__restrict__ d_sender;
    float *__restrict__ dV;

    __device__ __forceinline__ Row row(const Place &place, int j) const {
        return {place.load(V, j), place.there() ? __ldg(&sender[place.head_of(j)]) : 0.0f};
    }
    __device__ __forceinline__ Item item(const Place &place, int i) const {
        const float4 *all = reinterpret_cast<const float4 *>(statistics);
        return {place.load(dY, i), place.there() ? __ldg(&all[place.head_of(i)]) : float4{}};
    }
    template <int N>
    __device__ __forceinline__ void take(State<1> &state, const Row &row, const Item (&items)[N],
                                         const int (&columns)[N], float (&kept)[N],
                                         const Place &place) {
        float g[N];
#pragma unroll
        for (int n = 0; n < N; ++n) g[n] = Place::sum(inner(items[n].dy, row.v));
#pragma unroll
        for (int n = 0; n < N; ++n) {
            if (columns[n] < 0) continue;
            const float2 weights = gat_weights(row.sender, g[n], items[n].known, kept[n], slope);
            state.head.x += weights.y;
            add_product(state.sums[0], weights.x, items[n].dy);
        }
    }
    __device__ __forceinline__ float *out(int) const {
        return dV;
    }
    __device__ __forceinline__ void finish(long long row_head, float2 head) const {
        d_sender[row_head] = head.x;
    }
};

// d_receiver[i], which has no columns: nothing is kept but a number of each head.
struct GatReceivers : Sums, NoTotals {
    static constexpr int OUTPUTS = 0;
    struct Row {
        Columns dy;
        float4 known;
    };
    using Item = GatScore::Item;
    const float *__restrict__ statistics;
    const float *__restrict__ sender;
    const float *__restrict__ V;
    const float *__restrict__ dY;
    float slope;
    Dropout dropout;
    float *__restrict__ d_receiver;

    __device__ __forceinline__ Row row(const Place &place, int i) const {
        const float4 *all = reinterpret_cast<const float4 *>(statistics);
        return {place.load(dY, i), place.there() ? __ldg(&all[place.head_of(i)]) : float4{}};
    }
    __device__ __forceinline__ Item item(const Place &place, int j) const {
        return GatScore{nullptr, sender, V, slope}.item(place, j);
    }
    template <int N>
    __device__ __forceinline__ void take(State<0> &state, const Row &row, const Item (&items)[N],
                                         const int (&columns)[N], float (&kept)[N],
                                         const Place &place) {
#pragma unroll
        for (int n = 0; n < N; ++n) {
            const float g = Place::sum(inner(row.dy, items[n].v));
            if (columns[n] < 0) continue;
            state.head.x += gat_weights(items[n].sender, g, row.known, kept[n], slope).y;
        }
    }
    __device__ __forceinline__ float *out(int) const {
        return nullptr;
    }
    __device__ __forceinline__ void finish(long long row_head, float2 head) const {
        d_receiver[row_head] = head.x;
    }
};

// alpha kept, and d_score.
__device__ __forceinline__ float2 weights_of(float score, float g, float2 known, float kept) {
    const float alpha = __expf(score - known.x);
    return make_float2(alpha * kept, alpha * (kept * g - known.y));
}

// dV[j]
struct Gatv2Senders : Sums, NoTotals {
    static constexpr int OUTPUTS = 1;
    struct Row {
        Columns v, a;
    };
    struct Item {
        Columns r, dy;
        float2 known;
    };
    const float *__restrict__ statistics;
    const float *__restrict__ R;
    const float *__restrict__ V;
    const float *__restrict__ a;
    const float *__restrict__ dY;
    float slope;
    Dropout dropout;
    float *__restrict__ dV;

    __device__ __forceinline__ Row row(const Place &place, int j) const {
        return {place.load(V, j), place.load(a, 0)};
    }
    __device__ __forceinline__ Item item(const Place &place, int i) const {
        return {place.load(R, i), place.load(dY, i), statistics_of(statistics, place, i)};
    }
    template <int N>
    __device__ __forceinline__ void take(State<1> &state, const Row &row, const Item (&items)[N],
                                         const int (&columns)[N], float (&kept)[N],
                                         const Place &place) {
#pragma unroll
        for (int n = 0; n < N; ++n) {
            const float score = Place::sum(leaky_dot(row.a, items[n].r, row.v, slope));
            const float g = Place::sum(inner(items[n].dy, row.v));
            if (columns[n] < 0) continue;
            const float2 weights = weights_of(score, g, items[n].known, kept[n]);
#pragma unroll
            for (int c = 0; c < WIDTH; ++c) {
                const float rise = items[n].r.x[c] + row.v.x[c] > 0.0f ? 1.0f : slope;
                state.sums[0].x[c] += weights.x * items[n].dy.x[c] + weights.y * rise * row.a.x[c];
            }
        }
    }
    __device__ __forceinline__ float *out(int) const {
        return dV;
    }
};

// dR[i], and of all nonzeros together da.
struct Gatv2Receivers : Sums {
    static constexpr int OUTPUTS = 1;
    struct Row {
        Columns r, a, dy;
        float2 known;
    };
    struct Item {
        Columns v;
    };
    const float *__restrict__ statistics;
    const float *__restrict__ R;
    const float *__restrict__ V;
    const float *__restrict__ a;
    const float *__restrict__ dY;
    float slope;
    Dropout dropout;
    float *__restrict__ dR;
    Columns da;  // the lane's part, of all its rows

    __device__ __forceinline__ Row row(const Place &place, int i) const {
        return {place.load(R, i), place.load(a, 0), place.load(dY, i),
                statistics_of(statistics, place, i)};
    }
    __device__ __forceinline__ Item item(const Place &place, int j) const {
        return {place.load(V, j)};
    }
    template <int N>
    __device__ __forceinline__ void take(State<1> &state, const Row &row, const Item (&items)[N],
                                         const int (&columns)[N], float (&kept)[N],
                                         const Place &place) {
#pragma unroll
        for (int n = 0; n < N; ++n) {
            const float score = Place::sum(leaky_dot(row.a, row.r, items[n].v, slope));
            const float g = Place::sum(inner(row.dy, items[n].v));
            if (columns[n] < 0) continue;
            const float2 weights = weights_of(score, g, row.known, kept[n]);
#pragma unroll
            for (int c = 0; c < WIDTH; ++c) {
                const float x = row.r.x[c] + items[n].v.x[c];
                const float rise = x > 0.0f ? weights.y : slope * weights.y;
                state.sums[0].x[c] += rise * row.a.x[c];
                da.x[c] += rise * x;
            }
        }
    }
    __device__ __forceinline__ float *out(int) const {
        return dR;
    }
    __device__ __forceinline__ const Columns *totals() const {
        return &da;
    }
};

// d_scale[j] and dV[j]
struct CosineSenders : Sums, NoTotals {
    static constexpr int OUTPUTS = 1;
    struct Row {
        Columns v;
        float scale;
    };
    struct Item {
        Columns q, dy;
        float2 known;
    };
    const float *__restrict__ statistics;
    const float *__restrict__ Q;
    const float *__restrict__ V;
    const float *__restrict__ scale;
    const float *__restrict__ dY;
    Dropout dropout;
    float *__restrict__ d_scale;
    float *__restrict__ dV;

    __device__ __forceinline__ Row row(const Place &place, int j) const {
        return {place.load(V, j), place.there() ? __ldg(&scale[place.head_of(j)]) : 0.0f};
    }
    __device__ __forceinline__ Item item(const Place &place, int i) const {
        return {place.load(Q, i), place.load(dY, i), statistics_of(statistics, place, i)};
    }
    template <int N>
    __device__ __forceinline__ void take(State<1> &state, const Row &row, const Item (&items)[N],
                                         const int (&columns)[N], float (&kept)[N],
                                         const Place &place) {
#pragma unroll
        for (int n = 0; n < N; ++n) {
            const float product = Place::sum(inner(items[n].q, row.v));
            const float g = Place::sum(inner(items[n].dy, row.v));
            if (columns[n] < 0) continue;
            const float2 weights = weights_of(row.scale * product, g, items[n].known, kept[n]);
            state.head.x += weights.y * product;
            add_product(state.sums[0], weights.y * row.scale, items[n].q);
            add_product(state.sums[0], weights.x, items[n].dy);
        }
    }
    __device__ __forceinline__ float *out(int) const {
        return dV;
    }
    __device__ __forceinline__ void finish(long long row_head, float2 head) const {
        d_scale[row_head] = head.x;
    }
};

// dQ[i]
struct CosineReceivers : Sums, NoTotals {
    static constexpr int OUTPUTS = 1;
    struct Row {
        Columns q, dy;
        float2 known;
    };
    using Item = CosineScore::Item;
    const float *__restrict__ statistics;
    const float *__restrict__ Q;
    const float *__restrict__ V;
    const float *__restrict__ scale;
    const float *__restrict__ dY;
    Dropout dropout;
    float *__restrict__ dQ;

    __device__ __forceinline__ Row row(const Place &place, int i) const {
        return {place.load(Q, i), place.load(dY, i), statistics_of(statistics, place, i)};
    }
    __device__ __forceinline__ Item item(const Place &place, int j) const {
        return CosineScore{Q, V, scale}.item(place, j);
    }
    template <int N>
    __device__ __forceinline__ void take(State<1> &state, const Row &row, const Item (&items)[N],
                                         const int (&columns)[N], float (&kept)[N],
                                         const Place &place) {
#pragma unroll
        for (int n = 0; n < N; ++n) {
            const float scale = items[n].scale;
            const float score = scale * Place::sum(inner(row.q, items[n].v));
            const float g = Place::sum(inner(row.dy, items[n].v));
            if (columns[n] < 0) continue;
            const float2 weights = weights_of(score, g, row.known, kept[n]);
            add_product(state.sums[0], weights.y * scale, items[n].v);
        }
    }
    __device__ __forceinline__ float *out(int) const {
        return dQ;
    }
};

// dX[j] of a product with weighted nonzeros, and d_values of each: `kept` is the weight, and what
// is left in its place is dY[i] . X[j].
struct SpmmSenders : Sums, NoTotals {
    static constexpr int OUTPUTS = 1;
    struct Row {
        Columns x;
    };
    struct Item {
        Columns dy;
    };
    const float *__restrict__ values;
    const float *__restrict__ X;
    const float *__restrict__ dY;
    float *__restrict__ d_values;
    float *__restrict__ dX;

    __device__ __forceinline__ Row row(const Place &place, int j) const {
        return {place.load(X, j)};
    }
    __device__ __forceinline__ Item item(const Place &place, int i) const {
        return {place.load(dY, i)};
    }
    template <int N>
    __device__ __forceinline__ void take(State<1> &state, const Row &row, const Item (&items)[N],
                                         const int (&columns)[N], float (&kept)[N],
                                         const Place &place) {
#pragma unroll
        for (int n = 0; n < N; ++n) {
            const float g = Place::sum(inner(items[n].dy, row.x));
            if (columns[n] >= 0) add_product(state.sums[0], kept[n], items[n].dy);
            kept[n] = g;
        }
    }
    __device__ __forceinline__ float *out(int) const {
        return dX;
    }
};

// Nonzeros that follow each other in the order in which they are walked: which they are for the
// caller (nullptr: the same), and the place of the first.
struct Walked {
    const unsigned *__restrict__ order;
    long long first;

    __device__ __forceinline__ unsigned of_caller(int k) const {
        return order == nullptr ? unsigned(first + k) : order[k];
    }
};

// What nonzero k is multiplied with: dropout's factor, of a product its weight. And whether all are
// multiplied with 1.
template <class Functor>
__device__ __forceinline__ float factor(const Functor &functor, const Walked &walked, int k,
                                        int head) {
    return functor.dropout.factor(walked.of_caller(k), head);
}
__device__ __forceinline__ float factor(const SpmmSenders &functor, const Walked &walked, int k,
                                        int) {
    return functor.values[walked.first + k];
}
template <class Functor>
__device__ __forceinline__ bool unchanged(const Functor &functor) {
    return functor.dropout.rate == 0.0f;
}
__device__ __forceinline__ bool unchanged(const SpmmSenders &) {
    return false;
}

// Writes what a product leaves of a nonzero; attention leaves nothing.
template <class Functor>
__device__ __forceinline__ void leave(const Functor &, const Walked &, int, float) {
}
__device__ __forceinline__ void leave(const SpmmSenders &functor, const Walked &walked, int k,
                                      float found) {
    functor.d_values[walked.of_caller(k)] = found;
}
