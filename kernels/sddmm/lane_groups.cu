// Our SDDMM: the score of a nonzero (i, j) is the dot product of row i of U and row j of V, for
// each head, in fp32. Scores are in the order of CSR.
//
// All dot products cost the same, so work is partitioned by products, not by rows: rows need no
// sorting, long rows cause no load imbalance, and neighboring rows run at the same time. With
// several heads, product p belongs to nonzero p / heads and head p % heads, the order of `scores`.
//   - A subwarp of `lanes` lanes handles one product at a time: its lanes cover the columns with
//     vectors of `vector` columns. A subwarp has group_products neighboring products.
//   - Each lane loads the row and column of one product, so that a warp reads the matrix coalesced,
//     and shares them by shuffles.
//   - A lane starts the loads of its vectors of at_once rows of V together. With one head, if these
//     products have the same row of U in every subwarp of the warp, that row is loaded once.
//   - The lanes reduce the at_once sums together (`group_sum`). Each lane ends with the score of
//     the product whose row and column it loaded, so that scores are written coalesced.
//
// Wide rows are multiplied tile by tile of columns, a launch each, so that the tile of V stays in
// the L2. A later launch adds to the scores of the earlier ones.
//
// grid  = products over groups * group_products, rounded up
// block = `groups` subwarps of `lanes` threads

// The plan supplies, at compile time:
//   vector          neighboring columns per load of a lane: 1, 2 or 4, a divisor of n_cols
//   lanes           lanes of a subwarp: 1, 2, 4, 8, 16 or 32
//   lane_vectors    vectors of a lane in a tile, lanes apart
//   tiles           tiles of lanes * lane_vectors vectors that cover the columns of a launch
//   whole_tiles     1 if the columns of each launch fill every lane of every tile, else 0
//   launch          number of the launch, from 0
//   launch_vectors  most vectors of the columns of a launch
//   group_products  products of a subwarp: 1, 2, 4, 8, 16 or 32, at most lanes
//   at_once         products that a subwarp computes together, a divisor of group_products
//   groups          subwarps of a block; groups * lanes is a multiple of 32
//   heads           dot products of a nonzero

#include "common.cuh"
#include "vectors.cuh"

using Vector = Floats<Config::vector>;

// A matrix whose rows a subwarp loads, one row at a time.
struct Rows {
    const Vector *__restrict__ vectors;
    int stride;  // vectors of a row
    int end;     // vectors up to the end of this launch's columns

    // Loads the lane's vectors of a row. `first` is the index of the lane's first vector.
    DEVICE_INLINE void load(Vector (&to)[Config::lane_vectors], int row, int first) const {
        const Vector *__restrict__ from = vectors + (long long)row * stride + first;
#pragma unroll
        for (int i = 0; i < Config::lane_vectors; ++i) {
            const bool inside = Config::whole_tiles || first + i * Config::lanes < end;
            to[i] = inside ? __ldg(&from[i * Config::lanes]) : Vector{};
        }
    }
};

DEVICE_INLINE void add_product(float &sum, const Vector (&u)[Config::lane_vectors],
                               const Vector (&v)[Config::lane_vectors]) {
#pragma unroll
    for (int i = 0; i < Config::lane_vectors; ++i) {
#pragma unroll
        for (int j = 0; j < Config::vector; ++j) sum += part(u[i], j) * part(v[i], j);
    }
}

// Reduces at_once sums over the lanes of a subwarp; lane l gets sum l % at_once. In each step of
// the first loop a lane sends one half of its sums and adds the received sums to the other half.
// 8 sums over 8 lanes take 7 shuffles; reducing one sum after another would take 24.
DEVICE_INLINE float group_sum(float (&sums)[Config::at_once], int lane) {
#pragma unroll
    for (int half = Config::at_once / 2; half > 0; half /= 2) {
#pragma unroll
        for (int i = 0; i < half; ++i) {
            const float retained = lane & half ? sums[i + half] : sums[i];
            const float sent = lane & half ? sums[i] : sums[i + half];
            sums[i] = retained + __shfl_xor_sync(ALL_LANES, sent, half);
        }
    }
#pragma unroll
    for (int apart = Config::at_once; apart < Config::lanes; apart *= 2) {
        sums[0] += __shfl_xor_sync(ALL_LANES, sums[0], apart);
    }
    return sums[0];
}

// Launch bounds of one block per SM let the compiler use many registers, which loads in flight
// need.
extern "C" __global__ void __launch_bounds__(Config::groups *Config::lanes, 1)
    lane_groups(const int *__restrict__ rows, const int *__restrict__ columns,
                const float *__restrict__ U, const float *__restrict__ V,
                float *__restrict__ scores, long long nnz, int n_cols) {
    RECORD_WARP;
    const int stride = n_cols / Config::vector, begin = Config::launch * Config::launch_vectors;
    const int end = min(begin + Config::launch_vectors, stride);
    const Rows targets = {reinterpret_cast<const Vector *>(U), stride, end};
    const Rows sources = {reinterpret_cast<const Vector *>(V), stride, end};
    const int group = int(threadIdx.x) / Config::lanes, lane = int(threadIdx.x) % Config::lanes;

    // The lane's product. Beyond the last product it repeats the last one and writes nothing.
    const long long products = nnz * Config::heads;
    const long long first =
        ((long long)blockIdx.x * Config::groups + group) * Config::group_products;
    const long long lane_product = first + lane % Config::group_products;
    const long long product = min(lane_product, products - 1);
    const int lane_row =
        __ldcs(&rows[product / Config::heads]) * Config::heads + int(product % Config::heads);
    const int lane_column =
        __ldcs(&columns[product / Config::heads]) * Config::heads + int(product % Config::heads);

    float score = 0.0f;
#pragma unroll 1
    for (int next = 0; next < Config::group_products; next += Config::at_once) {
        int row[Config::at_once], column[Config::at_once];
#pragma unroll
        for (int j = 0; j < Config::at_once; ++j) {
            row[j] = __shfl_sync(ALL_LANES, lane_row, next + j, Config::lanes);
            column[j] = __shfl_sync(ALL_LANES, lane_column, next + j, Config::lanes);
        }
        // Nonzeros are ordered by row, so equal ends imply equal rows in between. Heads alternate.
        const bool one_row =
            Config::heads == 1 && __all_sync(ALL_LANES, row[0] == row[Config::at_once - 1]);

        float sums[Config::at_once] = {};
#pragma unroll 1
        for (int tile = 0; tile < Config::tiles; ++tile) {
            const int vector = begin + tile * Config::lanes * Config::lane_vectors + lane;
            Vector u[Config::lane_vectors], v[Config::at_once][Config::lane_vectors];
#pragma unroll
            for (int j = 0; j < Config::at_once; ++j) sources.load(v[j], column[j], vector);
            targets.load(u, row[0], vector);
            if (one_row) {
#pragma unroll
                for (int j = 0; j < Config::at_once; ++j) add_product(sums[j], u, v[j]);
            } else {
                add_product(sums[0], u, v[0]);
#pragma unroll
                for (int j = 1; j < Config::at_once; ++j) {
                    targets.load(u, row[j], vector);
                    add_product(sums[j], u, v[j]);
                }
            }
        }
        const float sum = group_sum(sums, lane);
        if (lane % Config::group_products / Config::at_once == next / Config::at_once) score = sum;
    }
    if (lane < Config::group_products && lane_product < products) {
        if (Config::launch > 0) score += __ldcs(&scores[lane_product]);
        stream(&scores[lane_product], score);
    }
}
