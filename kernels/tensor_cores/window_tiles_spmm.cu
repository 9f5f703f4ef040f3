// SpMM by windows on tensor cores: Y = A X. A window has 8 * GROUPS rows. Eight of its distinct
// columns at a time are a step: the transposed product, 16 columns of X by 8 rows of A, takes rows
// of X straight from memory as the fragments of one MMA operand, each once for the whole window.
//
// Exact mode (TERMS 3): x = high + low, both TF32, and likewise the weight; three products, of
// which the one with the weight's low part is left out where all low parts are zero. Sums are
// collected by fp32 additions, which round, because tensor cores truncate.
//
// With TERMS 0 X is stored in float16, weights are rounded to it, and two steps are multiplied
// together, as an instruction has 16 columns.
//
// grid  = (blocks in the metadata over WARPS, tiles of WARP_COLUMNS columns)
// block = WARPS warps, each with one block of the metadata

// The plan supplies, at compile time:
//   GROUPS          groups of 8 rows of a window
//   WARPS           warps of a block
//   QUADS           groups of 8 * LANE_COLUMNS columns of a warp
//   VECTOR          columns that one copy of X moves: 1, 2 or 4, in float16 8, a divisor of n_cols
//   WHOLE           1 if the columns fill every warp
//   AHEAD           steps whose loads are on their way: 1, 2 or 4; in float16 2 or 4
//   TERMS           3 exact, 1 TF32, 0 float16
//   BLOCKS_PER_SM   blocks that an SM should have room for, which bounds the registers
#if !defined(GROUPS) || !defined(WARPS) || !defined(QUADS) || !defined(VECTOR) || \
    !defined(WHOLE) || !defined(AHEAD) || !defined(TERMS) || !defined(BLOCKS_PER_SM)
#error "window_tiles_spmm.cu is compiled by accelviz, which supplies the constants listed above"
#endif

#define ROWS (8 * GROUPS)
#define BLOCK_THREADS (WARPS * WARP_SIZE)
#define FEATURES (TERMS == 0 ? 1 : 0)
#include "async_copy.cuh"
#include "common.cuh"
#include "fragments.cuh"
#include "tensor_cores/shared_columns.cuh"
#include "vectors.cuh"

#if TERMS == 0
#define LANE_COLUMNS 8  // of 16 bytes
#define TOGETHER 2      // steps of an instruction
#else
#define LANE_COLUMNS 4
#define TOGETHER 1
#endif
#define WARP_COLUMNS (8 * LANE_COLUMNS * QUADS)

// Elements between two rows of a stage: lanes (g, t) read 16 bytes number g of row t, eight lanes
// at a time, and so each of the 32 banks once.
#define STAGE_STRIDE (WARP_COLUMNS + 2 * LANE_COLUMNS)
#define STAGE_SIZE (8 * STAGE_STRIDE)

#define ROW_COPIES (WARP_COLUMNS / VECTOR)

using Sums = float[GROUPS][QUADS][LANE_COLUMNS / 2][4];

#if TERMS == 0
__device__ __forceinline__ unsigned word(const uint4 &vector, int i) {
    return i == 0 ? vector.x : i == 1 ? vector.y : i == 2 ? vector.z : vector.w;
}

// Adds the products of two steps, whose rows of X follow each other in the ring; the lane's from
// `stage` on. A register has two numbers of the same column of X: those of rows t and t + 4.
__device__ __forceinline__ void multiply(Sums &sums, const Feature *stage, int t,
                                         const unsigned (&weights)[GROUPS][2]) {
#pragma unroll
    for (int q = 0; q < QUADS; ++q) {
        uint4 x[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            x[k] = *reinterpret_cast<const uint4 *>(&stage[(t + 4 * k) * STAGE_STRIDE + 64 * q]);
        }
#pragma unroll
        for (int p = 0; p < 4; ++p) {
            unsigned a[4];
#pragma unroll
            for (int s = 0; s < 2; ++s) {
                const unsigned u = word(x[2 * s], p), v = word(x[2 * s + 1], p);
                a[2 * s] = __byte_perm(u, v, 0x5410);      // the lower halves
                a[2 * s + 1] = __byte_perm(u, v, 0x7632);  // the upper ones
            }
#pragma unroll
            for (int i = 0; i < GROUPS; ++i) mma_f16_k16(sums[i][q][p], a, weights[i]);
        }
    }
}
#else
// Adds the products of a step; the lane's rows of X from `stage` on.
__device__ __forceinline__ void multiply(Sums &sums, const Feature *stage, int t,
                                         const float (&weight)[GROUPS][2]) {
    float4 x[QUADS][2];
#pragma unroll
    for (int q = 0; q < QUADS; ++q) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const float *row = &stage[(t + 4 * h) * STAGE_STRIDE + 32 * q];
            x[q][h] = *reinterpret_cast<const float4 *>(row);
        }
    }
    // Whether the low parts of the weights are needed.
    unsigned high[GROUPS][2], low[GROUPS][2];
    bool finer[GROUPS];
#pragma unroll
    for (int i = 0; i < GROUPS; ++i) {
#pragma unroll
        for (int h = 0; h < 2; ++h) split_to_even(weight[i][h], high[i][h], low[i][h]);
        finer[i] = TERMS == 3 && __any_sync(EVERY_LANE, low[i][0] != 0 || low[i][1] != 0);
    }
#pragma unroll
    for (int q = 0; q < QUADS; ++q) {
#pragma unroll
        for (int p = 0; p < 2; ++p) {
            unsigned a[4], b[4];
#pragma unroll
            for (int k = 0; k < 4; ++k) split_to_even(part(x[q][k / 2], 2 * p + k % 2), a[k], b[k]);
#pragma unroll
            for (int i = 0; i < GROUPS; ++i) {
#if TERMS == 3
                float some[4] = {};
                mma_tf32_k8(some, b, high[i]);
                if (finer[i]) mma_tf32_k8(some, a, low[i]);
                mma_tf32_k8(some, a, high[i]);
#pragma unroll
                for (int k = 0; k < 4; ++k) sums[i][q][p][k] += some[k];
#else
                mma_tf32_k8(sums[i][q][p], a, high[i]);
#endif
            }
        }
    }
}
#endif

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_SM)
    window_tiles_spmm(const int *__restrict__ columns, const int4 *__restrict__ metadata,
                      const unsigned *__restrict__ starts, const unsigned *__restrict__ bits,
                      const float *__restrict__ values, const Feature *__restrict__ X,
                      float *__restrict__ Y, float *cut_sums, unsigned *arrivals, int n_blocks,
                      int n_rows, int n_cols) {
    RECORD_WARP;
    const int number = int(blockIdx.x) * WARPS + int(threadIdx.x) / WARP_SIZE;
    if (number >= n_blocks) return;
    const WindowBlock block = decode(metadata[number]);
    const int words = block.words(), steps = ceil_div(block.columns, 8);
    const int lane = int(threadIdx.x) % WARP_SIZE;
    const int g = lane / 4, t = lane % 4;
    const int feature = int(blockIdx.y) * WARP_COLUMNS + LANE_COLUMNS * g;
    columns += (long long)block.first_word * WORD_COLUMNS + lane;
    bits += (long long)block.first_word * ROWS + g;

    unsigned start[GROUPS], own[GROUPS], next[GROUPS];
#pragma unroll
    for (int i = 0; i < GROUPS; ++i) {
        start[i] = starts[(long long)number * ROWS + 8 * i + g];
        own[i] = words > 0 ? __ldg(&bits[8 * i]) : 0u;
        next[i] = words > 1 ? __ldg(&bits[ROWS + 8 * i]) : 0u;
    }
    int own_column = words > 0 ? __ldg(columns) : 0;
    int next_column = words > 1 ? __ldg(columns + WORD_COLUMNS) : own_column;

    // The lane's first copy of a step: which of the eight rows, which columns of it.
    DYNAMIC_SHARED(float4, memory);
    Feature *stages =
        reinterpret_cast<Feature *>(memory) + int(threadIdx.x) / WARP_SIZE * AHEAD * STAGE_SIZE;
    const unsigned row_bytes = sizeof(Feature) * unsigned(n_cols);
    const int first_column = int(blockIdx.y) * WARP_COLUMNS;
    // Where a copy is from in its row, and to in a row of the stage. Wide rows of narrow copies
    // aside, the same for all copies of a lane: one multiplication and addition is then an address.
    auto column_of = [&](int i) { return (lane + i * WARP_SIZE) % ROW_COPIES * VECTOR; };
    auto source_of = [&](int i) {
        // Columns beyond the last are any others: their sums are not written.
        const int at = column_of(ROW_COPIES <= WARP_SIZE ? 0 : i);
        const int from = WHOLE ? at : min(at, n_cols - VECTOR - first_column);
        return reinterpret_cast<const char *>(X + first_column + from);
    };
    const char *lane_source = source_of(0);

    // Begins to copy the columns of step j of a word, and to load its weights.
    auto load = [&](Feature *stage, float (&weight)[GROUPS][2], int j, int column_of_lane,
                    const unsigned (&row_bits)[GROUPS], const unsigned (&first)[GROUPS]) {
#pragma unroll
        for (int i = 0; i < 8 * ROW_COPIES / WARP_SIZE; ++i) {
            const int row = (lane + i * WARP_SIZE) / ROW_COPIES;
            const int column = __shfl_sync(EVERY_LANE, column_of_lane, 8 * j + row);
            const char *source = ROW_COPIES <= WARP_SIZE ? lane_source : source_of(i);
            source += (unsigned long long)unsigned(column) * row_bytes;
            copy_async(reinterpret_cast<Stored *>(&stage[row * STAGE_STRIDE + column_of(i)]),
                       reinterpret_cast<const Stored *>(source));
        }
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int place = 8 * j + t + 4 * h;
#pragma unroll
            for (int i = 0; i < GROUPS; ++i) {
                const unsigned before = row_bits[i] & ((1u << place) - 1u);
                weight[i][h] = load_if(row_bits[i] >> place & 1u,
                                       &values[first[i] + unsigned(__popc(before))]);
            }
        }
    };

    Sums sums = {};
    float weights[AHEAD][GROUPS][2];
    if (words > 0) {
#pragma unroll
        for (int j = 0; j < AHEAD; ++j) {
            load(stages + j * STAGE_SIZE, weights[j], j, own_column, own, start);
            if ((j + 1) % TOGETHER == 0) close_copies();
        }
    }
    for (int word = 0; word < words; ++word) {
        unsigned next_start[GROUPS];
#pragma unroll
        for (int i = 0; i < GROUPS; ++i) next_start[i] = start[i] + __popc(own[i]);
#pragma unroll
        for (int j = 0; j < 4; j += TOGETHER) {
            if (4 * word + j >= steps) break;
            await_copies<AHEAD / TOGETHER - 1>();
            __syncwarp();
            const Feature *stage = stages + j % AHEAD * STAGE_SIZE + LANE_COLUMNS * g;
#if TERMS == 0
            unsigned both[GROUPS][2];
#pragma unroll
            for (int i = 0; i < GROUPS; ++i) {
#pragma unroll
                for (int s = 0; s < 2; ++s) {
                    const float (&weight)[2] = weights[(j + s) % AHEAD][i];
                    both[i][s] = to_f16(weight[0], weight[1]);
                }
            }
            multiply(sums, stage, t, both);
#else
            multiply(sums, stage, t, weights[j % AHEAD]);
#endif
            // Beyond the last step it copies the last columns again.
            __syncwarp();
#pragma unroll
            for (int s = j; s < j + TOGETHER; ++s) {
                Feature *to = stages + s % AHEAD * STAGE_SIZE;
                if (s + AHEAD < 4) {
                    load(to, weights[s % AHEAD], s + AHEAD, own_column, own, start);
                } else {
                    load(to, weights[s % AHEAD], (s + AHEAD) % 4, next_column, next, next_start);
                }
            }
            close_copies();
        }
        own_column = next_column;
        const bool more = word + 2 < words;
        if (more) next_column = __ldg(columns + (long long)(word + 2) * WORD_COLUMNS);
#pragma unroll
        for (int i = 0; i < GROUPS; ++i) {
            start[i] = next_start[i];
            own[i] = next[i];
            next[i] = more ? __ldg(&bits[(long long)(word + 2) * ROWS + 8 * i]) : 0u;
        }
    }

    const bool cut = block.parts > 1;
    const CutSums meeting(cut_sums, arrivals, number, block.part, n_cols);
#pragma unroll
    for (int i = 0; i < GROUPS; ++i) {
#pragma unroll
        for (int odd = 0; odd < 2; ++odd) {
            const int row = 8 * i + 2 * t + odd;
            if (block.first_row + row >= n_rows) break;
#pragma unroll
            for (int c = 0; c < QUADS * LANE_COLUMNS / 4; ++c) {  // four columns at a time
                const int q = c / (LANE_COLUMNS / 4), four_of_lane = c % (LANE_COLUMNS / 4);
                const int column = feature + 8 * LANE_COLUMNS * q + 4 * four_of_lane;
                const float (&u)[4] = sums[i][q][2 * four_of_lane];
                const float (&v)[4] = sums[i][q][2 * four_of_lane + 1];
                const float4 four = make_float4(u[odd], u[2 + odd], v[odd], v[2 + odd]);
                float *to = cut ? &meeting.sums[element(row, column, n_cols)]
                                : &Y[element(block.first_row + row, column, n_cols)];
                if (VECTOR >= 4 && !cut) {
                    if (column < n_cols) stream(reinterpret_cast<float4 *>(to), four);
                    continue;
                }
#pragma unroll
                for (int k = 0; k < 4; ++k) {
                    if (column + k >= n_cols) continue;
                    if (cut) {
                        atomicAdd(&to[k], part(four, k));
                    } else {
                        to[k] = part(four, k);
                    }
                }
            }
        }
    }
    if (!cut) return;
    __threadfence();
    __syncwarp();
    const bool last = lane == 0 && meeting.last_of(block.parts);
    if (!__shfl_sync(EVERY_LANE, int(last), 0)) return;
    const int first = feature - LANE_COLUMNS * g;
    meeting.move(Y, block.first_row, n_rows, first, min(WARP_COLUMNS, n_cols - first), n_cols, lane,
                 WARP_SIZE);
}
