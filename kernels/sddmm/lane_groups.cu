// Our own SDDMM: the score of a nonzero (i, j) is the dot product of row i of U and row j of V, for
// each head, fp32, nonzeros in the order of CSR.
//
// All products cost the same, so the work is cut by products and not by rows: nothing to sort, no
// row too long, and neighbors in the graph's order stay neighbors on the GPU. With several heads,
// product p is that of nonzero p / heads and head p % heads, which is the order of `scores`.
//   - `lanes` lanes, as in SpMM's lane_groups, are the subwarp that handles a product: they cover
//     the columns with vectors of `vector` columns each. A subwarp has group_products neighboring
//     products;
//   - each of its lanes loads where the rows of one product are, so that a warp reads the graph
//     coalesced, and passes that on by shuffles;
//   - each lane has its vectors of at_once rows of V on their way at once. With one head, and where
//     these products share their row of U in every group of the warp, it is read once for all;
//   - the lanes add up the at_once sums together (`group_sum`), and each ends with the product
//     whose rows it had loaded. So the scores, too, are written coalesced.
//
// grid  = products over groups * group_products, rounded up
// block = `groups` subwarps of `lanes` threads

// The plan supplies, at compile time:
//   vector          neighboring columns that a lane reads as one: 1, 2 or 4, a divisor of n_cols
//   lanes           lanes of a group: 1, 2, 4, 8, 16 or 32
//   lane_vectors    vectors of a lane in a tile, lanes apart
//   tiles           tiles of lanes * lane_vectors vectors that cover the columns
//   whole_tiles     1 if the columns fill every lane of every tile, else 0
//   group_products  products of a group: 1, 2, 4, 8, 16 or 32, at most lanes
//   at_once         products that a group computes at once, a divisor of group_products
//   groups          groups of a block, of which whole warps can be made
//   heads           dot products of a nonzero

#include "common.cuh"
#include "vectors.cuh"

using Vector = Floats<Config::vector>;

// A matrix whose rows a group reads together.
struct Rows {
    const Vector *__restrict__ vectors;
    int stride;  // vectors of a row

    // The lane's vectors of a row, `first` being the first of them.
    DEVICE_INLINE void load(Vector (&to)[Config::lane_vectors], int row, int first) const {
        const Vector *__restrict__ from = vectors + (long long)row * stride + first;
#pragma unroll
        for (int i = 0; i < Config::lane_vectors; ++i) {
            const bool inside = Config::whole_tiles || first + i * Config::lanes < stride;
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

// Adds up each of the sums over the lanes of a group, and returns to a lane the one whose number is
// lane % at_once. As long as several sums are left, a lane gives half of them away and adds what it
// is given to the other half: 7 shuffles for 8 sums and 8 lanes, where one sum after the other
// would take 24.
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

// One block on an SM is enough: the compiler should not save the registers that loads on their way
// need.
extern "C" __global__ void __launch_bounds__(Config::groups *Config::lanes, 1)
    lane_groups(const int *__restrict__ rows, const int *__restrict__ columns,
                const float *__restrict__ U, const float *__restrict__ V,
                float *__restrict__ scores, long long nnz, int n_cols) {
    RECORD_WARP;
    const Rows receivers = {reinterpret_cast<const Vector *>(U), n_cols / Config::vector};
    const Rows senders = {reinterpret_cast<const Vector *>(V), n_cols / Config::vector};
    const int group = int(threadIdx.x) / Config::lanes, lane = int(threadIdx.x) % Config::lanes;

    // The lane's own product. Past the last one it is the last one again, and not written.
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
        // Nonzeros come row by row: those between have that row too. Heads alternate.
        const bool one_row =
            Config::heads == 1 && __all_sync(ALL_LANES, row[0] == row[Config::at_once - 1]);

        float sums[Config::at_once] = {};
#pragma unroll 1
        for (int tile = 0; tile < Config::tiles; ++tile) {
            const int vector = tile * Config::lanes * Config::lane_vectors + lane;
            Vector u[Config::lane_vectors], v[Config::at_once][Config::lane_vectors];
#pragma unroll
            for (int j = 0; j < Config::at_once; ++j) senders.load(v[j], column[j], vector);
            receivers.load(u, row[0], vector);
            if (one_row) {
#pragma unroll
                for (int j = 0; j < Config::at_once; ++j) add_product(sums[j], u, v[j]);
            } else {
                add_product(sums[0], u, v[0]);
#pragma unroll
                for (int j = 1; j < Config::at_once; ++j) {
                    receivers.load(u, row[j], vector);
                    add_product(sums[j], u, v[j]);
                }
            }
        }
        const float sum = group_sum(sums, lane);
        if (lane % Config::group_products / Config::at_once == next / Config::at_once) score = sum;
    }
    if (lane < Config::group_products && lane_product < products)
        stream(&scores[lane_product], score);
}
