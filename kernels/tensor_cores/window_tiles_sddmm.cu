// SDDMM by windows of 8 rows on tensor cores: scores[k] = U[i] . V[j] for each nonzero k = (i, j).
// 32 of a window's distinct columns at a time: their rows of V by the 8 rows of U are two tiles of
// 16 x 8 dot products, of which those at nonzeros are written. A row of V is read once for a
// window.
//
// Exact mode (TERMS 3): each number is the sum of two TF32 numbers, and three products are added
// up. With TERMS 0 U and V are stored in float16.
//
// grid  = (blocks of the metadata over WARPS, heads)
// block = WARPS warps, each with one block of the metadata

// The plan supplies, at compile time:
//   WARPS           warps of a block
//   HEADS           dot products of a nonzero
//   VECTOR          columns that one load moves: 1, 2 or 4, in float16 8, a divisor of n_cols
//   WHOLE           1 if n_cols is a multiple of STEP_COLUMNS * AT_ONCE
//   AT_ONCE         loads of STEP_COLUMNS columns of U and V that are on their way together
//   TERMS           3 exact, 1 TF32, 0 float16
#if !defined(WARPS) || !defined(HEADS) || !defined(VECTOR) || !defined(AT_ONCE) || \
    !defined(WHOLE) || !defined(TERMS)
#error "window_tiles_sddmm.cu is compiled by accelviz, which supplies the constants listed above"
#endif

#define ROWS 8
#define BLOCK_THREADS (WARPS * WARP_SIZE)
#define FEATURES (TERMS == 0 ? 1 : 0)
#include "common.cuh"
#include "fragments.cuh"
#include "tensor_cores/shared_columns.cuh"
#include "vectors.cuh"

#define LANE_COLUMNS (TERMS == 0 ? 8 : 4)  // of 16 bytes
#define STEP_COLUMNS (4 * LANE_COLUMNS)

struct Piece {
    unsigned words[4];
};

// Neighboring columns of a row, 16 bytes; beyond the last one any others.
__device__ __forceinline__ Piece piece(const Feature *__restrict__ row, int first, int n_cols) {
    Piece found;
#pragma unroll
    for (int i = 0; i < LANE_COLUMNS; i += VECTOR) {
        const int from = WHOLE ? first + i : min(first + i, n_cols - VECTOR);
        reinterpret_cast<Stored *>(found.words)[i / VECTOR] =
            __ldg(reinterpret_cast<const Stored *>(row + from));
    }
    return found;
}

// The same with zeros beyond the last column, of which `left` are there.
__device__ __forceinline__ Piece cut_off(Piece found, int left) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#if TERMS == 0
        found.words[i] &= left > 2 * i + 1 ? ~0u : left > 2 * i ? 0xffffu : 0u;
#else
        if (left <= i) found.words[i] = 0;
#endif
    }
    return found;
}

// Adds the products of 16 rows of V, two a lane, by the 8 rows of U to the sums.
__device__ __forceinline__ void multiply(float (&sums)[4], const Piece &v, const Piece &w,
                                         const Piece &u) {
#if TERMS == 0
#pragma unroll
    for (int p = 0; p < 4; p += 2) {
        const unsigned a[4] = {v.words[p], w.words[p], v.words[p + 1], w.words[p + 1]};
        const unsigned b[2] = {u.words[p], u.words[p + 1]};
        mma_f16_k16(sums, a, b);
    }
#else
    float some[4] = {};
#pragma unroll
    for (int p = 0; p < 4; p += 2) {
        unsigned high[2], low[2], a[4], b[4];
#pragma unroll
        for (int k = 0; k < 2; ++k) {
            split(__uint_as_float(u.words[p + k]), high[k], low[k]);
            split(__uint_as_float(v.words[p + k]), a[2 * k], b[2 * k]);
            split(__uint_as_float(w.words[p + k]), a[2 * k + 1], b[2 * k + 1]);
        }
#if TERMS == 3
        mma_tf32_k8(some, a, low);
        mma_tf32_k8(some, b, high);
#endif
        mma_tf32_k8(some, a, high);
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) sums[k] += some[k];
#endif
}

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
    // The lane's row of U, and the two rows whose scores it will have.
    const int row = min(block.first_row + g, n_rows - 1);
    const Feature *u_row = &U[element(row * HEADS + int(blockIdx.y), 0, n_cols)];
    unsigned start[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) start[i] = starts[(long long)number * ROWS + 2 * t + i];
    columns += (long long)block.first_word * WORD_COLUMNS + lane;
    bits += (long long)block.first_word * ROWS + 2 * t;

    for (int word = 0; word < block.words(); ++word) {
        const int own_column = __ldg(columns + (long long)word * WORD_COLUMNS);
        const uint2 own = __ldg(reinterpret_cast<const uint2 *>(bits + (long long)word * ROWS));
        const Feature *v_row[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int column = __shfl_sync(EVERY_LANE, own_column, g + 8 * i);
            v_row[i] = &V[element(column * HEADS + int(blockIdx.y), 0, n_cols)];
        }
        float sums[2][4] = {};
        for (int column = 0; column < n_cols; column += STEP_COLUMNS * AT_ONCE) {
            Piece u[AT_ONCE], v[AT_ONCE][4];
#pragma unroll
            for (int c = 0; c < AT_ONCE; ++c) {
                const int first = column + STEP_COLUMNS * c + LANE_COLUMNS * t;
#pragma unroll
                for (int i = 0; i < 4; ++i) v[c][i] = piece(v_row[i], first, n_cols);
                u[c] = piece(u_row, first, n_cols);
                if (!WHOLE) u[c] = cut_off(u[c], n_cols - first);
            }
#pragma unroll
            for (int c = 0; c < AT_ONCE; ++c) {
#pragma unroll
                for (int m = 0; m < 2; ++m) multiply(sums[m], v[c][2 * m], v[c][2 * m + 1], u[c]);
            }
        }
#pragma unroll
        for (int m = 0; m < 2; ++m) {
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                const unsigned row_bits = k % 2 ? own.y : own.x;
                const int place = 16 * m + g + 8 * (k / 2);
                if (row_bits >> place & 1u) {
                    const long long at = start[k % 2] + __popc(row_bits & ((1u << place) - 1u));
                    __stcs(&scores[at * HEADS + int(blockIdx.y)], sums[m][k]);
                }
            }
        }
        start[0] += __popc(own.x);
        start[1] += __popc(own.y);
    }
}
