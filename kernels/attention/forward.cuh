// What attention computes of a row i and its nonzeros (i, j), for one head: a score of each, their
// softmax alpha, and the sum of alpha V[j]. Three ways to score; a kernel that walks rows takes one
// of these as a template argument.
//
// Row     what is read of row i, once
// Item    what is read of a nonzero; all of its loads, so that those of several are on their way
// State   what the row comes to so far, of which parts can be merged
#pragma once

#include "attention/columns.cuh"
#include "attention/softmax.cuh"
#include "philox.cuh"

// `head` says something of the head, and the columns are sums for each output.
template <int OUTPUTS>
struct State {
    float2 head;
    Columns sums[OUTPUTS > 0 ? OUTPUTS : 1];
};

struct NoTotals {
    __device__ __forceinline__ const Columns *totals() const {
        return nullptr;
    }
};

// What the three have in common. The head of a state is (largest score, sum of exp).
template <class Score>
struct Attention : NoTotals {
    static constexpr int OUTPUTS = 1;
    using Row = typename Score::Row;
    using Item = typename Score::Item;
    Score score;
    Dropout dropout;
    float *__restrict__ Y;
    float *__restrict__ logsumexp;

    __device__ __forceinline__ Row row(const Place &place, int i) const {
        return score.row(place, i);
    }
    __device__ __forceinline__ Item item(const Place &place, int j) const {
        return score.item(place, j);
    }
    static __device__ __forceinline__ float2 none() {
        return make_float2(LOWEST, 0.0f);
    }

    // Adds N nonzeros, which are there where `columns` are not negative; `kept` is dropout's
    // factor of each.
    template <int N>
    __device__ __forceinline__ void take(State<1> &state, const Row &row, const Item (&items)[N],
                                         const int (&columns)[N], float (&kept)[N],
                                         const Place &place) {
        float scores[N], largest = state.head.x;
#pragma unroll
        for (int n = 0; n < N; ++n) {
            const float found = score.of(row, items[n]);
            scores[n] = columns[n] >= 0 ? found : LOWEST;
            largest = fmaxf(largest, scores[n]);
        }
        const float before = __expf(state.head.x - largest);
        state.head = make_float2(largest, state.head.y * before);
#pragma unroll
        for (int c = 0; c < WIDTH; ++c) state.sums[0].x[c] *= before;
#pragma unroll
        for (int n = 0; n < N; ++n) {
            const float power = columns[n] >= 0 ? __expf(scores[n] - largest) : 0.0f;
            state.head.y += power;
            add_product(state.sums[0], power * kept[n], items[n].v);
        }
    }

    static __device__ __forceinline__ float2 together(float2 a, float2 b) {
        const Softmax all = merged(Softmax{a.x, a.y}, Softmax{b.x, b.y});
        return make_float2(all.largest, all.sum);
    }
    // What a part's sums count in the whole.
    static __device__ __forceinline__ float share(float2 part, float2 all) {
        return __expf(part.x - all.x);
    }
    __device__ __forceinline__ float *out(int) const {
        return Y;
    }
    static __device__ __forceinline__ float result(float sum, float2 head) {
        return head.y > 0.0f ? sum / head.y : sum;
    }
    __device__ __forceinline__ void finish(long long row_head, float2 head) const {
        logsumexp[row_head] = head.y > 0.0f ? head.x + __logf(head.y) : 0.0f;
    }
};

// GAT: LeakyReLU(receiver[i] + sender[j])
struct GatScore {
    struct Row {
        float receiver;
    };
    struct Item {
        Columns v;
        float sender;
    };
    const float *__restrict__ receiver;
    const float *__restrict__ sender;
    const float *__restrict__ V;
    float slope;

    __device__ __forceinline__ Row row(const Place &place, int i) const {
        return {place.there() ? __ldg(&receiver[place.head_of(i)]) : 0.0f};
    }
    __device__ __forceinline__ Item item(const Place &place, int j) const {
        return {place.load(V, j), place.there() ? __ldg(&sender[place.head_of(j)]) : 0.0f};
    }
    __device__ __forceinline__ float of(const Row &row, const Item &item) const {
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
    const float *__restrict__ R;
    const float *__restrict__ V;
    const float *__restrict__ a;
    float slope;

    __device__ __forceinline__ Row row(const Place &place, int i) const {
        return {place.load(R, i), place.load(a, 0)};
    }
    __device__ __forceinline__ Item item(const Place &place, int j) const {
        return {place.load(V, j)};
    }
    __device__ __forceinline__ float of(const Row &row, const Item &item) const {
        return Place::sum(leaky_dot(row.a, row.r, item.v, slope));
    }
};

// Cosines: scale[j] Q[i] . V[j], so that what is added up is what is scored.
struct CosineScore {
    struct Row {
        Columns q;
    };
    struct Item {
        Columns v;
        float scale;
    };
    const float *__restrict__ Q;
    const float *__restrict__ V;
    const float *__restrict__ scale;

    __device__ __forceinline__ Row row(const Place &place, int i) const {
        return {place.load(Q, i)};
    }
    __device__ __forceinline__ Item item(const Place &place, int j) const {
        return {place.load(V, j), place.there() ? __ldg(&scale[place.head_of(j)]) : 0.0f};
    }
    __device__ __forceinline__ float of(const Row &row, const Item &item) const {
        return item.scale * Place::sum(inner(row.q, item.v));
    }
};
