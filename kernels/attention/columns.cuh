// The columns that a lane has of one head: head_lanes lanes cover a head with vectors of vector
// columns, lane_vectors to a lane, head_lanes apart. The including file has these constants.
#pragma once

#include "common.cuh"
#include "vectors.cuh"

using Vector = Floats<Config::vector>;
constexpr int WIDTH = Config::lane_vectors * Config::vector;  // columns of a lane

struct Columns {
    float x[WIDTH];
};

// A lane's head and its lane there. Of `heads` heads of `n_cols` columns, the last of a grid may
// not be there.
struct Place {
    int head, lane, heads, n_cols;

    __device__ __forceinline__ bool there() const {
        return Config::whole_heads || head < heads;
    }
    __device__ __forceinline__ int column(int i) const {  // first of the lane's vector i
        return (lane + i * Config::head_lanes) * Config::vector;
    }
    __device__ __forceinline__ bool has(int i) const {
        return there() && (Config::whole_lanes || column(i) < n_cols);
    }
    __device__ __forceinline__ long long head_of(int row) const {
        return (long long)row * heads + head;
    }

    // The lane's columns of a row of a matrix (rows, heads, n_cols); zeros where it has none.
    __device__ __forceinline__ Columns load(const float *__restrict__ matrix, int row) const {
        const float *__restrict__ from = matrix + head_of(row) * n_cols;
        Columns found;
#pragma unroll
        for (int i = 0; i < Config::lane_vectors; ++i) {
            const Vector *place = reinterpret_cast<const Vector *>(from + column(i));
            const Vector vector = has(i) ? __ldg(place) : Vector{};
#pragma unroll
            for (int j = 0; j < Config::vector; ++j)
                found.x[i * Config::vector + j] = part(vector, j);
        }
        return found;
    }

    __device__ __forceinline__ void store(float *__restrict__ matrix, int row,
                                          const Columns &own) const {
        float *__restrict__ to = matrix + head_of(row) * n_cols;
#pragma unroll
        for (int i = 0; i < Config::lane_vectors; ++i) {
            if (!has(i)) continue;
            Vector vector;
            gather(vector, &own.x[i * Config::vector]);
            stream(reinterpret_cast<Vector *>(to + column(i)), vector);
        }
    }

    // The lanes of the head, of which the first is `first_lane`. Other heads of the warp need not
    // be where these meet.
    static __device__ __forceinline__ int first_lane() {
        return int(threadIdx.x) % WARP_SIZE / Config::head_lanes * Config::head_lanes;
    }
    static __device__ __forceinline__ unsigned lanes() {
        return (Config::head_lanes == 32 ? 0xffffffffu : (1u << Config::head_lanes % 32) - 1)
               << first_lane();
    }
    static __device__ __forceinline__ float sum(float own) {
        const unsigned together = lanes();
#pragma unroll
        for (int apart = Config::head_lanes / 2; apart > 0; apart /= 2) {
            own += __shfl_xor_sync(together, own, apart);
        }
        return own;
    }
    static __device__ __forceinline__ float from_lane(float own, int of_head) {
        return __shfl_sync(lanes(), own, first_lane() + of_head);
    }
};

__device__ __forceinline__ float inner(const Columns &a, const Columns &b) {
    float sum = 0.0f;
#pragma unroll
    for (int c = 0; c < WIDTH; ++c) sum += a.x[c] * b.x[c];
    return sum;
}

__device__ __forceinline__ void add_product(Columns &sum, float weight, const Columns &x) {
#pragma unroll
    for (int c = 0; c < WIDTH; ++c) sum.x[c] += weight * x.x[c];
}

__device__ __forceinline__ float leaky(float x, float slope) {
    return x > 0.0f ? x : slope * x;
}

// a . LeakyReLU(x + y), of the lane's columns.
__device__ __forceinline__ float leaky_dot(const Columns &a, const Columns &x, const Columns &y,
                                           float slope) {
    float sum = 0.0f;
#pragma unroll
    for (int c = 0; c < WIDTH; ++c) sum += a.x[c] * leaky(x.x[c] + y.x[c], slope);
    return sum;
}
