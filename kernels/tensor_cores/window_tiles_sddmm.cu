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
//   AT_ONCE         loads of 16 columns of U and V, in float16 32, that are on their way together
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
struct Eight {
    unsigned words[4];
};

// Eight neighboring columns of a row; beyond the last one any others.
__device__ __forceinline__ Eight eight(const Feature *__restrict__ row, int first, int n_cols) {
    Eight found;
#pragma unroll
    for (int i = 0; i < 8; i += VECTOR) {
        const int from = WHOLE ? first + i : min(first + i, n_cols - VECTOR);
        reinterpret_cast<Stored *>(found.words)[i / VECTOR] =
            __ldg(reinterpret_cast<const Stored *>(row + from));
    }
    return found;
}

// Adds dot products of 32 rows of V, four a lane, with the lane's rows of U.
__device__ __forceinline__ void multiply(Sums &sums, const Feature *const (&v_row)[4],
                                         const Feature *const (&u_row)[GROUPS], int t, int n_cols) {
    for (int first = 8 * t; first - 8 * t < n_cols; first += 32 * AT_ONCE) {
        Eight u[AT_ONCE][GROUPS], v[AT_ONCE][4];
#pragma unroll
        for (int c = 0; c < AT_ONCE; ++c) {
#pragma unroll
            for (int i = 0; i < 4; ++i) v[c][i] = eight(v_row[i], first + 32 * c, n_cols);
            const int left = n_cols - first - 32 * c;
#pragma unroll
            for (int i = 0; i < GROUPS; ++i) {
                u[c][i] = eight(u_row[i], first + 32 * c, n_cols);
#pragma unroll
                for (int k = 0; k < 4 && !WHOLE; ++k) {
                    u[c][i].words[k] &= left > 2 * k + 1 ? ~0u : left > 2 * k ? 0xffffu : 0u;
                }
            }
        }
#pragma unroll
        for (int c = 0; c < AT_ONCE; ++c) {
#pragma unroll
            for (int m = 0; m < 2; ++m) {
#pragma unroll
                for (int p = 0; p < 4; p += 2) {
                    const unsigned *v0 = v[c][2 * m].words, *v1 = v[c][2 * m + 1].words;
                    const unsigned a[4] = {v0[p], v1[p], v0[p + 1], v1[p + 1]};
#pragma unroll
                    for (int i = 0; i < GROUPS; ++i) {
                        const unsigned b[2] = {u[c][i].words[p], u[c][i].words[p + 1]};
                        mma_f16_k16(sums[i][m], a, b);
                    }
                }
            }
        }
    }
}
#else
// Four neighboring columns of a row, `more` behind the first; beyond the last one any others.
__device__ __forceinline__ float4 four(const float *__restrict__ row, int first, int more,
                                       int n_cols) {
#if VECTOR == 4
    // One pointer for all `more`, which are part of the instructions.
    const float *from = WHOLE ? row + first + more : row + min(first + more, n_cols - 4);
    return __ldg(reinterpret_cast<const float4 *>(from));
#elif VECTOR == 2
    const int at = first + more;
    const float2 a = __ldg(reinterpret_cast<const float2 *>(row + min(at, n_cols - 2)));
    const float2 b = __ldg(reinterpret_cast<const float2 *>(row + min(at + 2, n_cols - 2)));
    return make_float4(a.x, a.y, b.x, b.y);
#else
    const int at = first + more;
    return make_float4(__ldg(row + min(at, n_cols - 1)), __ldg(row + min(at + 1, n_cols - 1)),
                       __ldg(row + min(at + 2, n_cols - 1)), __ldg(row + min(at + 3, n_cols - 1)));
#endif
}

// Adds dot products of 32 rows of V, four a lane, with the lane's rows of U.
__device__ __forceinline__ void multiply(Sums &sums, const Feature *const (&v_row)[4],
                                         const Feature *const (&u_row)[GROUPS], int t, int n_cols) {
    for (int first = 4 * t; first - 4 * t < n_cols; first += 16 * AT_ONCE) {
        float4 u[AT_ONCE][GROUPS], v[AT_ONCE][4];
#pragma unroll
        for (int c = 0; c < AT_ONCE; ++c) {
#pragma unroll
            for (int i = 0; i < 4; ++i) v[c][i] = four(v_row[i], first, 16 * c, n_cols);
#pragma unroll
            for (int i = 0; i < GROUPS; ++i) u[c][i] = four(u_row[i], first, 16 * c, n_cols);
        }
#pragma unroll
        for (int c = 0; c < AT_ONCE; ++c) {
            unsigned high[GROUPS][2][2], low[GROUPS][2][2];  // of U: two products of 8 columns each
#pragma unroll
            for (int i = 0; i < GROUPS; ++i) {
#pragma unroll
                for (int k = 0; k < 4; ++k) {
                    const bool there = WHOLE || first + 16 * c + k < n_cols;
                    const float x = there ? part(u[c][i], k) : 0.0f;
                    split(x, high[i][k / 2][k % 2], low[i][k / 2][k % 2]);
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
                        split(part(v[c][2 * m + k % 2], 2 * p + k / 2), a[k], b[k]);
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

    for (int word = 0; word < block.words(); ++word) {
        const int own_column = __ldg(columns + (long long)word * WORD_COLUMNS);
        uint2 own[GROUPS];
#pragma unroll
        for (int i = 0; i < GROUPS; ++i) {
            own[i] = __ldg(reinterpret_cast<const uint2 *>(bits + (long long)word * ROWS + 8 * i));
        }
        const Feature *v_row[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int column = __shfl_sync(EVERY_LANE, own_column, g + 8 * i);
            v_row[i] = &V[element(column * HEADS + int(blockIdx.y), 0, n_cols)];
        }
        Sums sums = {};
        multiply(sums, v_row, u_row, t, n_cols);
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
