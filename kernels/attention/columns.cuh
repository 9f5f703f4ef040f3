// The columns of one attention head in the registers of a lane. head_lanes lanes cover the n_cols
// columns of a head with vectors of `vector` neighboring columns. A lane has lane_vectors vectors,
// head_lanes vectors apart. The including file's Config defines these constants.
//
// If columns do not depend on each other (`gat`, maxima), a head may be a tile of a head's columns:
// head_tiles neighboring heads are then one head of the operation, and have the same scores.
#pragma once

#include "attention/softmax.cuh"
#include "common.cuh"
#include "vectors.cuh"

using Vector = Floats<Config::vector>;
constexpr int WIDTH = Config::lane_vectors * Config::vector;  // columns of a lane

struct Columns {
    float x[WIDTH];
};

// A thread's head and its lane within the head. The last heads of the grid may be beyond `heads`.
struct Position {
    int head, lane, heads, n_cols;

    DEVICE_INLINE bool exists() const {
        return Config::whole_heads || head < heads;
    }
    DEVICE_INLINE int column(int i) const {  // first column of the lane's vector i
        return (lane + i * Config::head_lanes) * Config::vector;
    }
    DEVICE_INLINE bool has(int i) const {
        return exists() && (Config::whole_lanes || column(i) < n_cols);
    }
    DEVICE_INLINE long long head_of(int row) const {
        return (long long)row * heads + head;
    }
    // Index of a row's score among those of all rows and heads of the operation.
    DEVICE_INLINE long long score_of(int row) const {
        return (long long)row * (heads / Config::head_tiles) + head / Config::head_tiles;
    }
    // Index of the lane's vector i of a row. Only the first product depends on the row.
    DEVICE_INLINE long long element(int row, int i) const {
        const long long first = head * n_cols + lane * Config::vector;
        return (long long)row * (heads * n_cols) + first + i * Config::head_lanes * Config::vector;
    }
    DEVICE_INLINE bool is_first_tile() const {
        return head % Config::head_tiles == 0;
    }

    DEVICE_INLINE const Vector *vector(const float *__restrict__ matrix, int row, int i) const {
        return reinterpret_cast<const Vector *>(matrix + element(row, i));
    }

    // Loads the lane's columns of a row of a matrix (rows, heads, n_cols); zeros beyond n_cols.
    DEVICE_INLINE Columns load(const float *__restrict__ matrix, int row) const {
        Columns result;
#pragma unroll
        for (int i = 0; i < Config::lane_vectors; ++i) {
            const Vector vector = has(i) ? __ldg(this->vector(matrix, row, i)) : Vector{};
#pragma unroll
            for (int j = 0; j < Config::vector; ++j)
                result.x[i * Config::vector + j] = part(vector, j);
        }
        return result;
    }

    DEVICE_INLINE void store(float *__restrict__ matrix, int row, const Columns &columns) const {
#pragma unroll
        for (int i = 0; i < Config::lane_vectors; ++i) {
            if (!has(i)) continue;
            Vector vector;
            gather(vector, &columns.x[i * Config::vector]);
            stream(reinterpret_cast<Vector *>(matrix + element(row, i)), vector);
        }
    }

    // The lanes of this head, starting at `first_lane`. Other heads of the warp may have diverged,
    // so shuffles name these lanes only.
    static DEVICE_INLINE int first_lane() {
        return int(threadIdx.x) % WARP_SIZE / Config::head_lanes * Config::head_lanes;
    }
    static DEVICE_INLINE unsigned lanes() {
        return (Config::head_lanes == 32 ? 0xffffffffu : (1u << Config::head_lanes % 32) - 1)
               << first_lane();
    }
    static DEVICE_INLINE float sum(float value) {
        const unsigned mask = lanes();
#pragma unroll
        for (int apart = Config::head_lanes / 2; apart > 0; apart /= 2) {
            value += __shfl_xor_sync(mask, value, apart);
        }
        return value;
    }
    static DEVICE_INLINE float from_lane(float value, int lane_of_head) {
        return __shfl_sync(lanes(), value, first_lane() + lane_of_head);
    }
};

// Scores near 1e6 have units of 0.06, so a backward pass has to compute them bit for bit as the
// forward pass did. Functions of scores therefore name their roundings (fmaf, __fmul_rn), which
// leaves the compiler no choice of multiplications to fuse.
DEVICE_INLINE float inner(const Columns &a, const Columns &b) {
    float sum = 0.0f;
#pragma unroll
    for (int c = 0; c < WIDTH; ++c) sum = fmaf(a.x[c], b.x[c], sum);
    return sum;
}

DEVICE_INLINE void add_product(Columns &sum, float weight, const Columns &x) {
#pragma unroll
    for (int c = 0; c < WIDTH; ++c) sum.x[c] += weight * x.x[c];
}

DEVICE_INLINE float leaky(float x, float slope) {
    return x > 0.0f ? x : __fmul_rn(slope, x);
}

// Returns a . LeakyReLU(x + y) over the lane's columns.
DEVICE_INLINE float leaky_dot(const Columns &a, const Columns &x, const Columns &y, float slope) {
    float sum = 0.0f;
#pragma unroll
    for (int c = 0; c < WIDTH; ++c) sum = fmaf(a.x[c], leaky(x.x[c] + y.x[c], slope), sum);
    return sum;
}
