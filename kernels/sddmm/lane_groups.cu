// Our own SDDMM: the score of a nonzero (i, j) is the dot product of row i of U and row j of V, for
// each head, fp32, nonzeros in the order of CSR.
//
// All products cost the same, so the work is cut by products and not by rows: nothing to sort, no
// row too long, and neighbors in the graph's order stay neighbors on the GPU. With several heads,
// product p is that of nonzero p / HEADS and head p % HEADS, which is the order of `scores`.
//   - LANES lanes, as in SpMM's lane_groups, are the group that handles a product: they cover the
//     columns with vectors of VECTOR columns each. A group has GROUP_PRODUCTS neighboring products;
//   - each of its lanes loads where the rows of one product are, so that a warp reads the graph
//     coalesced, and passes that on by shuffles;
//   - each lane has its vectors of AT_ONCE rows of V on their way at once. With one head, and where
//     these products share their row of U in every group of the warp, it is read once for all;
//   - the lanes add up the AT_ONCE sums together (`group_sum`), and each ends with the product
//     whose rows it had loaded. So the scores, too, are written coalesced.
//
// grid  = products over GROUPS * GROUP_PRODUCTS, rounded up
// block = GROUPS groups of LANES threads

// The plan supplies, at compile time:
//   VECTOR          neighboring columns that a lane reads as one: 1, 2 or 4, a divisor of n_cols
//   LANES           lanes of a group: 1, 2, 4, 8, 16 or 32
//   LANE_VECTORS    vectors of a lane in a tile, LANES apart
//   TILES           tiles of LANES * LANE_VECTORS vectors that cover the columns
//   WHOLE_TILES     1 if the columns fill every lane of every tile, else 0
//   GROUP_PRODUCTS  products of a group: 1, 2, 4, 8, 16 or 32, at most LANES
//   AT_ONCE         products that a group computes at once, a divisor of GROUP_PRODUCTS
//   GROUPS          groups of a block, of which whole warps can be made
//   HEADS           dot products of a nonzero
#if !defined(VECTOR) || !defined(LANES) || !defined(LANE_VECTORS) || !defined(TILES) ||           \
    !defined(WHOLE_TILES) || !defined(GROUP_PRODUCTS) || !defined(AT_ONCE) || !defined(GROUPS) || \
    !defined(HEADS)
#error "lane_groups.cu is compiled by accelviz, which supplies the constants listed above"
#endif

#include "common.cuh"
#include "vectors.cuh"

#define ALL_LANES 0xffffffffu

// A matrix whose rows a group reads together.
struct Rows {
    const Vector *__restrict__ vectors;
    int stride;  // vectors of a row

    // The lane's vectors of a row, `first` being the first of them.
    __device__ __forceinline__ void load(Vector (&to)[LANE_VECTORS], int row, int first) const {
        const Vector *__restrict__ from = vectors + (long long)row * stride + first;
#pragma unroll
        for (int i = 0; i < LANE_VECTORS; ++i) {
            const bool there = WHOLE_TILES || first + i * LANES < stride;
            to[i] = there ? __ldg(&from[i * LANES]) : Vector{};
        }
    }
};

__device__ __forceinline__ void add_product(float &sum, const Vector (&u)[LANE_VECTORS],
                                            const Vector (&v)[LANE_VECTORS]) {
#pragma unroll
    for (int i = 0; i < LANE_VECTORS; ++i) {
#pragma unroll
        for (int j = 0; j < VECTOR; ++j) sum += part(u[i], j) * part(v[i], j);
    }
}

// Adds up each of the sums over the lanes of a group, and returns to a lane the one whose number is
// lane % AT_ONCE. As long as several sums are left, a lane gives half of them away and adds what it
// is given to the other half: 7 shuffles for 8 sums and 8 lanes, where one sum after the other
// would take 24.
__device__ __forceinline__ float group_sum(float (&sums)[AT_ONCE], int lane) {
#pragma unroll
    for (int half = AT_ONCE / 2; half > 0; half /= 2) {
#pragma unroll
        for (int i = 0; i < half; ++i) {
            const float kept = lane & half ? sums[i + half] : sums[i];
            const float given = lane & half ? sums[i] : sums[i + half];
            sums[i] = kept + __shfl_xor_sync(ALL_LANES, given, half);
        }
    }
#pragma unroll
    for (int apart = AT_ONCE; apart < LANES; apart *= 2) {
        sums[0] += __shfl_xor_sync(ALL_LANES, sums[0], apart);
    }
    return sums[0];
}

// One block on an SM is enough: the compiler should not save the registers that loads on their way
// need.
extern "C" __global__ void __launch_bounds__(GROUPS *LANES, 1)
    lane_groups(const int *__restrict__ rows, const int *__restrict__ columns,
                const float *__restrict__ U, const float *__restrict__ V,
                float *__restrict__ scores, long long nnz, int n_cols) {
    RECORD_WARP;
    const Rows receivers = {reinterpret_cast<const Vector *>(U), n_cols / VECTOR};
    const Rows senders = {reinterpret_cast<const Vector *>(V), n_cols / VECTOR};
    const int group = int(threadIdx.x) / LANES, lane = int(threadIdx.x) % LANES;

    // The lane's own product. Past the last one it is the last one again, and not written.
    const long long products = nnz * HEADS;
    const long long first = ((long long)blockIdx.x * GROUPS + group) * GROUP_PRODUCTS;
    const long long own = first + lane % GROUP_PRODUCTS;
    const long long there = min(own, products - 1);
    const int own_row = __ldcs(&rows[there / HEADS]) * HEADS + int(there % HEADS);
    const int own_column = __ldcs(&columns[there / HEADS]) * HEADS + int(there % HEADS);

    float score = 0.0f;
#pragma unroll 1
    for (int next = 0; next < GROUP_PRODUCTS; next += AT_ONCE) {
        int row[AT_ONCE], column[AT_ONCE];
#pragma unroll
        for (int j = 0; j < AT_ONCE; ++j) {
            row[j] = __shfl_sync(ALL_LANES, own_row, next + j, LANES);
            column[j] = __shfl_sync(ALL_LANES, own_column, next + j, LANES);
        }
        // Nonzeros come row by row: those between have that row too. Heads alternate.
        const bool one_row = HEADS == 1 && __all_sync(ALL_LANES, row[0] == row[AT_ONCE - 1]);

        float sums[AT_ONCE] = {};
#pragma unroll 1
        for (int tile = 0; tile < TILES; ++tile) {
            const int vector = tile * LANES * LANE_VECTORS + lane;
            Vector u[LANE_VECTORS], v[AT_ONCE][LANE_VECTORS];
#pragma unroll
            for (int j = 0; j < AT_ONCE; ++j) senders.load(v[j], column[j], vector);
            receivers.load(u, row[0], vector);
            if (one_row) {
#pragma unroll
                for (int j = 0; j < AT_ONCE; ++j) add_product(sums[j], u, v[j]);
            } else {
                add_product(sums[0], u, v[0]);
#pragma unroll
                for (int j = 1; j < AT_ONCE; ++j) {
                    receivers.load(u, row[j], vector);
                    add_product(sums[j], u, v[j]);
                }
            }
        }
        const float sum = group_sum(sums, lane);
        if (lane % GROUP_PRODUCTS / AT_ONCE == next / AT_ONCE) score = sum;
    }
    if (lane < GROUP_PRODUCTS && own < products) stream(&scores[own], score);
}
