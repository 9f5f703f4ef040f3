// SDDMM by windows on tensor cores: scores[k] = U[i] . V[j] for each nonzero k = (i, j). A window
// is 8 * `groups` neighboring rows of the matrix, in groups of 8. A warp handles 32 distinct
// columns of a window at a time. Their 32 rows of V are loaded and converted to fragments once per
// window. Multiplied by the 8 rows of U of a group, they yield two tiles of 16 x 8 dot products.
// Only the dot products at nonzeros are written.
//
// Exact mode (terms 3): each number is split into the sum of two TF32 numbers, and three products
// are added (3xTF32). With terms 0, U and V are stored in float16.
//
// grid  = (blocks in the metadata over `warps`, rounded up; heads)
// block = `warps` warps, one block of the metadata each

// The plan supplies, at compile time:
//   groups          groups of 8 rows per window
//   warps           warps of a block
//   heads           dot products of a nonzero
//   vector          columns per load: 1, 2 or 4, in float16 8, a divisor of n_cols
//   whole           1 if n_cols is a multiple of 16 * at_once, in float16 of 32 * at_once
//   at_once         steps whose loads are in flight; a step is 16 columns of U and V, in float16 32
//   terms           3 exact, 1 TF32, 0 float16; features is then 1, else 0

#include "common.cuh"
#include "features.cuh"
#include "fragments.cuh"

constexpr int ROWS = 8 * Config::groups;
#include "tensor_cores/shared_columns.cuh"

constexpr int GROUPS = Config::groups, AHEAD = Config::at_once;
constexpr int BLOCK_THREADS = Config::warps * WARP_SIZE;
constexpr int STEP_COLUMNS = Config::terms == 0 ? 32 : 16, LANE_COLUMNS = STEP_COLUMNS / 4;

using Sums = float[GROUPS][2][4];

// A lane's columns of a step, in float16.
struct Eight {
    unsigned words[4];
};

// Loads the lane's columns of a step. Columns beyond n_cols get values of other columns.
DEVICE_INLINE Eight load(const unsigned short *__restrict__ row, int first, int n_cols) {
    Eight columns;
#pragma unroll
    for (int i = 0; i < 8; i += Config::vector) {
        const int from = Config::whole ? first + i : min(first + i, n_cols - Config::vector);
        reinterpret_cast<Stored *>(columns.words)[i / Config::vector] =
            __ldg(reinterpret_cast<const Stored *>(row + from));
    }
    return columns;
}
DEVICE_INLINE float4 load(const float *__restrict__ row, int first, int n_cols) {
    if constexpr (Config::vector == 4) {
        const float *from = row + (Config::whole ? first : min(first, n_cols - 4));
        return __ldg(reinterpret_cast<const float4 *>(from));
    }
    if constexpr (Config::vector == 2) {
        const float2 a = __ldg(reinterpret_cast<const float2 *>(row + min(first, n_cols - 2)));
        const float2 b = __ldg(reinterpret_cast<const float2 *>(row + min(first + 2, n_cols - 2)));
        return make_float4(a.x, a.y, b.x, b.y);
    }
    return make_float4(__ldg(row + min(first, n_cols - 1)), __ldg(row + min(first + 1, n_cols - 1)),
                       __ldg(row + min(first + 2, n_cols - 1)),
                       __ldg(row + min(first + 3, n_cols - 1)));
}
using Part = decltype(load(static_cast<const Feature *>(nullptr), 0, 0));

// Adds a step to the dot products of 32 rows of V with ROWS rows of U. `left` is the number of
// existing columns from the lane's first column on.
DEVICE_INLINE void multiply(Sums &sums, Eight (&u)[GROUPS], const Eight (&v)[4], int left) {
#pragma unroll
    for (int i = 0; i < GROUPS; ++i) {
#pragma unroll
        for (int k = 0; k < 4 && !Config::whole; ++k) {
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
DEVICE_INLINE void multiply(Sums &sums, const float4 (&u)[GROUPS], const float4 (&v)[4], int left) {
    unsigned high[GROUPS][2][2], low[GROUPS][2][2];  // U, for two products of 8 columns each
#pragma unroll
    for (int i = 0; i < GROUPS; ++i) {
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            const float x = Config::whole || k < left ? part(u[i], k) : 0.0f;
            split_to_even(x, high[i][k / 2][k % 2], low[i][k / 2][k % 2]);
        }
    }
#pragma unroll
    for (int m = 0; m < 2; ++m) {
        float partial[GROUPS][4] = {};
#pragma unroll
        for (int p = 0; p < 2; ++p) {
            unsigned a[4], b[4];
#pragma unroll
            for (int k = 0; k < 4; ++k)
                split_to_even(part(v[2 * m + k % 2], 2 * p + k / 2), a[k], b[k]);
#pragma unroll
            for (int i = 0; i < GROUPS; ++i) {
                if (Config::terms == 3) {
                    mma_tf32_k8(partial[i], a, low[i][p]);
                    mma_tf32_k8(partial[i], b, high[i][p]);
                }
                mma_tf32_k8(partial[i], a, high[i][p]);
            }
        }
#pragma unroll
        for (int i = 0; i < GROUPS; ++i) {
#pragma unroll
            for (int k = 0; k < 4; ++k) sums[i][m][k] += partial[i][k];
        }
    }
}

// Row pointers of the lane's rows of U and V, and the columns of them that are loaded ahead.
struct Operands {
    const int *__restrict__ columns;  // the lane's distinct column of the block's first word
    const Feature *__restrict__ V;
    int n_cols, g, t;  // lane 4 g + t
    const Feature *u_row[GROUPS], *v_row[4];
    Part u[AHEAD][GROUPS], v[AHEAD][4];

    DEVICE_INLINE void load_step(int stage, int step) {
        const int first = step * STEP_COLUMNS + LANE_COLUMNS * t;
#pragma unroll
        for (int i = 0; i < 4; ++i) v[stage][i] = load(v_row[i], first, n_cols);
#pragma unroll
        for (int i = 0; i < GROUPS; ++i) u[stage][i] = load(u_row[i], first, n_cols);
    }
    DEVICE_INLINE void set_v_rows(int word) {
        const int lane_column = __ldg(columns + (long long)word * WORD_COLUMNS);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int column = __shfl_sync(ALL_LANES, lane_column, g + 8 * i);
            v_row[i] = &V[element(column * Config::heads + int(blockIdx.y), 0, n_cols)];
        }
    }
};

// Writes the scores of a word's nonzeros in two rows of a group, and advances `start` past them.
DEVICE_INLINE void write(float *__restrict__ scores, const float (&sums)[2][4], const uint2 &bits,
                         unsigned (&start)[2], int g) {
#pragma unroll
    for (int m = 0; m < 2; ++m) {
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            const unsigned row_bits = k % 2 ? bits.y : bits.x;
            const int bit = 16 * m + g + 8 * (k / 2);
            if (row_bits >> bit & 1u) {
                const unsigned before = row_bits & ((1u << bit) - 1u);
                const long long at = start[k % 2] + __popc(before);
                __stcs(&scores[at * Config::heads + int(blockIdx.y)], sums[m][k]);
            }
        }
    }
    start[0] += __popc(bits.x);
    start[1] += __popc(bits.y);
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    window_tiles_sddmm(const int *__restrict__ columns, const int4 *__restrict__ metadata,
                       const unsigned *__restrict__ starts, const unsigned *__restrict__ bits,
                       const Feature *__restrict__ U, const Feature *__restrict__ V,
                       float *__restrict__ scores, int n_blocks, int n_rows, int n_cols) {
    RECORD_WARP;
    const int warp = int(threadIdx.x) / WARP_SIZE, lane = int(threadIdx.x) % WARP_SIZE;
    const int number = int(blockIdx.x) * Config::warps + warp;
    if (number >= n_blocks) return;
    const WindowBlock block = decode(metadata[number]);
    const int g = lane / 4, t = lane % 4;
    Operands operands = {columns + (long long)block.first_word * WORD_COLUMNS + lane, V, n_cols, g,
                         t};
    unsigned start[GROUPS][2];  // index of the next nonzero in the two rows of the lane's scores
#pragma unroll
    for (int i = 0; i < GROUPS; ++i) {
        const int row = min(block.first_row + 8 * i + g, n_rows - 1);
        operands.u_row[i] = &U[element(row * Config::heads + int(blockIdx.y), 0, n_cols)];
#pragma unroll
        for (int k = 0; k < 2; ++k) {
            start[i][k] = starts[(long long)number * ROWS + 8 * i + 2 * t + k];
        }
    }
    bits += (long long)block.first_word * ROWS + 2 * t;

    // The steps of all words form one sequence, so that loads for the next word are in flight while
    // scores are written.
    const int words = block.words();
    const int steps = ceil_div(n_cols, STEP_COLUMNS * AHEAD) * AHEAD;
    if (words > 0) {
        operands.set_v_rows(0);
#pragma unroll
        for (int s = 0; s < AHEAD; ++s) operands.load_step(s, s);
    }
    for (int word = 0; word < words; ++word) {
        uint2 row_bits[GROUPS];
#pragma unroll
        for (int i = 0; i < GROUPS; ++i) {
            const unsigned *from = bits + (long long)word * ROWS + 8 * i;
            row_bits[i] = __ldg(reinterpret_cast<const uint2 *>(from));
        }
        Sums sums = {};
        for (int step = 0; step < steps; step += AHEAD) {
            const bool is_last = step + AHEAD == steps;
            if (is_last && word + 1 < words) operands.set_v_rows(word + 1);
#pragma unroll
            for (int s = 0; s < AHEAD; ++s) {
                const int first = (step + s) * STEP_COLUMNS + LANE_COLUMNS * t;
                multiply(sums, operands.u[s], operands.v[s], n_cols - first);
                if (!is_last || word + 1 < words)
                    operands.load_step(s, is_last ? s : step + AHEAD + s);
            }
        }
#pragma unroll
        for (int i = 0; i < GROUPS; ++i) write(scores, sums[i], row_bits[i], start[i], g);
    }
}
