// SDDMM by windows on tensor cores: scores[k] = U[i] . V[j] for each nonzero k = (i, j). A window
// has 8 * GROUPS rows. 32 of its distinct columns at a time: their rows of V by the rows of U are
// two tiles of 16 x 8 dot products for each group of 8 rows, of which those at nonzeros are
// written. A row of V is read, and made into fragments, once for a window.
//
// Exact mode (TERMS 3): each number is the sum of two TF32 numbers, and three products are added
// up. With TERMS 0 U and V are stored in float16.
//
// grid  = (blocks of the metadata over WARPS, heads)
// block = WARPS warps, each with one block of the metadata

// The plan supplies, at compile time:
//   GROUPS          groups of 8 rows of a window
//   WARPS           warps of a block
//   HEADS           dot products of a nonzero
//   VECTOR          columns that one load moves: 1, 2 or 4, in float16 8, a divisor of n_cols
//   WHOLE           1 if n_cols is a multiple of 16 * AT_ONCE, in float16 of 32 * AT_ONCE
//   AT_ONCE         steps of 16 columns of U and V, in float16 32, whose loads are on their way
//   TERMS           3 exact, 1 TF32, 0 float16
#if !defined(GROUPS) || !defined(WARPS) || !defined(HEADS) || !defined(VECTOR) || \
    !defined(AT_ONCE) || !defined(WHOLE) || !defined(TERMS)
#error "window_tiles_sddmm.cu is compiled by accelviz, which supplies the constants listed above"
#endif

#define ROWS (8 * GROUPS)
#define BLOCK_THREADS (WARPS * WARP_SIZE)
#define FEATURES (TERMS == 0 ? 1 : 0)
#include "common.cuh"
#include "fragments.cuh"
#include "tensor_cores/shared_columns.cuh"
#include "vectors.cuh"

using Sums = float[GROUPS][2][4];

#if TERMS == 0
#define STEP_COLUMNS 32
struct Part {
    unsigned words[4];
};

// A lane's eight columns of a step; beyond the last one any others.
__device__ __forceinline__ Part load(const Feature *__restrict__ row, int first, int n_cols) {
    Part found;
#pragma unroll
    for (int i = 0; i < 8; i += VECTOR) {
        const int from = WHOLE ? first + i : min(first + i, n_cols - VECTOR);
        reinterpret_cast<Stored *>(found.words)[i / VECTOR] =
            __ldg(reinterpret_cast<const Stored *>(row + from));
    }
    return found;
}

// Adds a step to the dot products of 32 rows of V with ROWS of U, of which `left` columns are there
// from the lane's first one on.
__device__ __forceinline__ void multiply(Sums &sums, Part (&u)[GROUPS], const Part (&v)[4],
                                         int left) {
#pragma unroll
    for (int i = 0; i < GROUPS; ++i) {
#pragma unroll
        for (int k = 0; k < 4 && !WHOLE; ++k) {
            u[i].words[k] &= left > 2 * k + 1 ? ~0u : left > 2 * k ? 0xffffu : 0u;
        }
    }
#pragma unroll
    for (int m = 0; m < 2; ++m) {
#pragma unroll
        for (int p = 0; p < 4; p += 2) {
            const unsigned *v0 = v[2 * m].words, *v1 = v[2 * m + 1].words;
            const unsigned a[4] = {v0[p], v1[p], v0[p + 1], v1[p + 1]};
#pragma unroll
            for (int i = 0; i < GROUPS; ++i) {
                const unsigned b[2] = {u[i].words[p], u[i].words[p + 1]};
                mma_f16_k16(sums[i][m], a, b);
            }
        }
    }
}
#else
#define STEP_COLUMNS 16
using Part = float4;

// A lane's four columns of a step; beyond the last one any others.
__device__ __forceinline__ Part load(const float *__restrict__ row, int first, int n_cols) {
#if VECTOR == 4
    const float *from = row + (WHOLE ? first : min(first, n_cols - 4));
    return __ldg(reinterpret_cast<const float4 *>(from));
#elif VECTOR == 2
    const float2 a = __ldg(reinterpret_cast<const float2 *>(row + min(first, n_cols - 2)));
    const float2 b = __ldg(reinterpret_cast<const float2 *>(row + min(first + 2, n_cols - 2)));
    return make_float4(a.x, a.y, b.x, b.y);
#else
    return make_float4(__ldg(row + min(first, n_cols - 1)), __ldg(row + min(first + 1, n_cols - 1)),
                       __ldg(row + min(first + 2, n_cols - 1)),
                       __ldg(row + min(first + 3, n_cols - 1)));
#endif
}

// Adds a step to the dot products of 32 rows of V with ROWS of U, of which `left` columns are there
// from the lane's first one on.
__device__ __forceinline__ void multiply(Sums &sums, const Part (&u)[GROUPS], const Part (&v)[4],
                                         int left) {
    unsigned high[GROUPS][2][2], low[GROUPS][2][2];  // of U: two products of 8 columns each
#pragma unroll
    for (int i = 0; i < GROUPS; ++i) {
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            const float x = WHOLE || k < left ? part(u[i], k) : 0.0f;
            split_to_even(x, high[i][k / 2][k % 2], low[i][k / 2][k % 2]);
        }
    }
#pragma unroll
    for (int m = 0; m < 2; ++m) {
        float some[GROUPS][4] = {};
#pragma unroll
        for (int p = 0; p < 2; ++p) {
            unsigned a[4], b[4];
#pragma unroll
            for (int k = 0; k < 4; ++k)
                split_to_even(part(v[2 * m + k % 2], 2 * p + k / 2), a[k], b[k]);
#pragma unroll
            for (int i = 0; i < GROUPS; ++i) {
#if TERMS == 3
                mma_tf32_k8(some[i], a, low[i][p]);
                mma_tf32_k8(some[i], b, high[i][p]);
#endif
                mma_tf32_k8(some[i], a, high[i][p]);
            }
        }
#pragma unroll
        for (int i = 0; i < GROUPS; ++i) {
#pragma unroll
            for (int k = 0; k < 4; ++k) sums[i][m][k] += some[i][k];
        }
    }
}
#endif

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    window_tiles_sddmm(const int *__restrict__ columns, const int4 *__restrict__ metadata,
                       const unsigned *__restrict__ starts, const unsigned *__restrict__ bits,
                       const Feature *__restrict__ U, const Feature *__restrict__ V,
                       float *__restrict__ scores, int n_blocks, int n_rows, int n_cols) {
    RECORD_WARP;
    const int warp = int(threadIdx.x) / WARP_SIZE, lane = int(threadIdx.x) % WARP_SIZE;
    const int number = int(blockIdx.x) * WARPS + warp;
    if (number >= n_blocks) return;
    const WindowBlock block = decode(metadata[number]);
    const int g = lane / 4, t = lane % 4;
    // The lane's row of U in each group, and the two rows whose scores it will have.
    const Feature *u_row[GROUPS];
    unsigned start[GROUPS][2];
#pragma unroll
    for (int i = 0; i < GROUPS; ++i) {
        const int row = min(block.first_row + 8 * i + g, n_rows - 1);
        u_row[i] = &U[element(row * HEADS + int(blockIdx.y), 0, n_cols)];
#pragma unroll
        for (int k = 0; k < 2; ++k) {
            start[i][k] = starts[(long long)number * ROWS + 8 * i + 2 * t + k];
        }
    }
    columns += (long long)block.first_word * WORD_COLUMNS + lane;
    bits += (long long)block.first_word * ROWS + 2 * t;

    // The steps of all words follow each other, so that loads are on their way from one word to the
    // next, while scores are written.
    constexpr int lane_columns = STEP_COLUMNS / 4;
    const int words = block.words();
    const int steps = ceil_div(n_cols, STEP_COLUMNS * AT_ONCE) * AT_ONCE;
    Part u[AT_ONCE][GROUPS], v[AT_ONCE][4];
    const Feature *v_row[4];
    auto fetch = [&](int stage, int step) {
        const int first = step * STEP_COLUMNS + lane_columns * t;
#pragma unroll
        for (int i = 0; i < 4; ++i) v[stage][i] = load(v_row[i], first, n_cols);
#pragma unroll
        for (int i = 0; i < GROUPS; ++i) u[stage][i] = load(u_row[i], first, n_cols);
    };
    auto find_rows = [&](int word) {
        const int own_column = __ldg(columns + (long long)word * WORD_COLUMNS);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int column = __shfl_sync(EVERY_LANE, own_column, g + 8 * i);
            v_row[i] = &V[element(column * HEADS + int(blockIdx.y), 0, n_cols)];
        }
    };
    if (words > 0) {
        find_rows(0);
#pragma unroll
        for (int s = 0; s < AT_ONCE; ++s) fetch(s, s);
    }
    for (int word = 0; word < words; ++word) {
        uint2 own[GROUPS];
#pragma unroll
        for (int i = 0; i < GROUPS; ++i) {
            own[i] = __ldg(reinterpret_cast<const uint2 *>(bits + (long long)word * ROWS + 8 * i));
        }
        Sums sums = {};
        for (int step = 0; step < steps; step += AT_ONCE) {
            const bool end = step + AT_ONCE == steps;
            if (end && word + 1 < words) find_rows(word + 1);
#pragma unroll
            for (int s = 0; s < AT_ONCE; ++s) {
                const int first = (step + s) * STEP_COLUMNS + lane_columns * t;
                multiply(sums, u[s], v[s], n_cols - first);
                if (!end || word + 1 < words) fetch(s, end ? s : step + AT_ONCE + s);
            }
        }
#pragma unroll
        for (int i = 0; i < GROUPS; ++i) {
#pragma unroll
            for (int m = 0; m < 2; ++m) {
#pragma unroll
                for (int k = 0; k < 4; ++k) {
                    const unsigned row_bits = k % 2 ? own[i].y : own[i].x;
                    const int place = 16 * m + g + 8 * (k / 2);
                    if (row_bits >> place & 1u) {
                        const unsigned before = row_bits & ((1u << place) - 1u);
                        const long long at = start[i][k % 2] + __popc(before);
                        __stcs(&scores[at * HEADS + int(blockIdx.y)], sums[i][m][k]);
                    }
                }
            }
            start[i][0] += __popc(own[i].x);
            start[i][1] += __popc(own[i].y);
        }
    }
}
