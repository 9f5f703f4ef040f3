// SpMM by windows on tensor cores: Y = A X. A window is 8 * `groups` neighboring rows of A. A step
// handles eight distinct columns of a window. It computes the transposed product, 16 columns of X
// by 8 rows of A, so that rows of X are loaded directly as fragments, once per window.
//
// A word stands for 32 distinct columns of a window, that is four steps: for each row it has 32
// bits, one per column with a nonzero. A record of the metadata (`WindowBlock`) is a window, or a
// part of a window with many words; a warp computes one record. A stage is the copy of a step's
// eight rows of X in shared memory; a warp has AHEAD stages, a ring that it uses in turn. A quad is
// 16 bytes (LANE_COLUMNS columns) of a row of X.
//
// Exact mode (terms 3): X and the weights are each split in two TF32 numbers, high + low. Three
// products are added; the product with the weight's low part is skipped if all low parts are zero.
// Sums are collected by fp32 additions, which round, because tensor cores truncate.
//
// With terms 0, X is stored in float16, weights are rounded to float16, and two steps are
// multiplied together, because the instruction has K = 16.
//
// grid  = (ceil(records / `warps`), tiles of WARP_COLUMNS columns)
// block = `warps` warps, one record each

// The plan supplies, at compile time:
//   groups          groups of 8 rows per window
//   warps           warps of a thread block
//   quads           quads that a lane loads of each row; eight lanes load a row
//   vector          columns per copy of X: 1, 2 or 4, in float16 8, a divisor of n_cols
//   whole           1 if the columns fill every warp
//   ahead           steps whose loads are in flight: 1, 2 or 4; in float16 2 or 4
//   terms           3 exact, 1 TF32, 0 float16
//   features        1 if X is stored in float16 (terms 0), else 0; see features.cuh
//   blocks_per_sm   thread blocks that must fit on an SM; bounds the registers

#include "async_copy.cuh"
#include "common.cuh"
#include "features.cuh"
#include "fragments.cuh"

constexpr int ROWS = 8 * Config::groups;
#include "tensor_cores/shared_columns.cuh"

constexpr int GROUPS = Config::groups, QUADS = Config::quads, AHEAD = Config::ahead;
constexpr int BLOCK_THREADS = Config::warps * WARP_SIZE;
constexpr int LANE_COLUMNS = 16 / sizeof(Feature);
constexpr int TOGETHER = Config::terms == 0 ? 2 : 1;  // steps per instruction
constexpr int WARP_COLUMNS = 8 * LANE_COLUMNS * QUADS;
constexpr int ROW_COPIES = WARP_COLUMNS / Config::vector;

// Elements between two rows of a stage. Lane 4 g + t reads 16 bytes, number g of row t; with this
// stride eight lanes, which read at a time, use each of the 32 banks once.
constexpr int STAGE_STRIDE = WARP_COLUMNS + 2 * LANE_COLUMNS;
constexpr int STAGE_SIZE = 8 * STAGE_STRIDE;

using Sums = float[GROUPS][QUADS][LANE_COLUMNS / 2][4];
using Weights = float[GROUPS][2];  // of a step: rows 8 i + g of the window, columns t and t + 4

DEVICE_INLINE unsigned component(const uint4 &vector, int i) {
    return i == 0 ? vector.x : i == 1 ? vector.y : i == 2 ? vector.z : vector.w;
}

// Adds the products of two steps in float16, whose stages are neighbors and start at `stage`. A
// register of a fragment holds two numbers of the same column of X, in rows t and t + 4 of a step.
// QUAD_TILES = LANE_COLUMNS / 2 is the number of products per quad: tile p has 16 columns of X, the
// columns 2 p and 2 p + 1 of the quads of eight lanes.
template <int QUAD_TILES>
DEVICE_INLINE void multiply(float (&sums)[GROUPS][QUADS][QUAD_TILES][4],
                            const unsigned short *stage, int t, const Weights (&weights)[AHEAD],
                            int step) {
    unsigned b[GROUPS][2];
#pragma unroll
    for (int i = 0; i < GROUPS * 2; ++i) {
        const float (&weight)[2] = weights[(step + i % 2) % AHEAD][i / 2];
        b[i / 2][i % 2] = to_f16(weight[0], weight[1]);
    }
#pragma unroll
    for (int q = 0; q < QUADS; ++q) {
        uint4 x[4];  // quads of rows t and t + 4 of the first step, then of the second
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            x[k] = *reinterpret_cast<const uint4 *>(&stage[(t + 4 * k) * STAGE_STRIDE + 64 * q]);
        }
#pragma unroll
        for (int p = 0; p < QUAD_TILES; ++p) {
            unsigned a[4];
#pragma unroll
            for (int s = 0; s < 2; ++s) {
                // Columns 2 p and 2 p + 1 of row t (u) and of row t + 4 (v) of step s.
                const unsigned u = component(x[2 * s], p), v = component(x[2 * s + 1], p);
                a[2 * s] = __byte_perm(u, v, 0x5410);      // the lower halves: column 2 p
                a[2 * s + 1] = __byte_perm(u, v, 0x7632);  // the upper ones: column 2 p + 1
            }
#pragma unroll
            for (int i = 0; i < GROUPS; ++i) mma_f16_k16(sums[i][q][p], a, b[i]);
        }
    }
}

// Adds a product of 16 columns of X by 8 rows of A from the TF32 parts of both. `has_low` is false
// if the low parts of A are all zero.
DEVICE_INLINE void multiply_parts(float (&sum)[4], const unsigned (&x_high)[4],
                                  const unsigned (&x_low)[4], const unsigned (&high)[2],
                                  const unsigned (&low)[2], bool has_low) {
    if (Config::terms != 3) {
        mma_tf32_k8(sum, x_high, high);
        return;
    }
    float part[4] = {};
    mma_tf32_k8(part, x_low, high);
    if (has_low) mma_tf32_k8(part, x_high, low);
    mma_tf32_k8(part, x_high, high);
#pragma unroll
    for (int k = 0; k < 4; ++k) sum[k] += part[k];
}

// Adds the products of a step in TF32. The lane's rows of X start at `stage`.
template <int QUAD_TILES>
DEVICE_INLINE void multiply(float (&sums)[GROUPS][QUADS][QUAD_TILES][4], const float *stage, int t,
                            const Weights (&weights)[AHEAD], int step) {
    const Weights &weight = weights[step % AHEAD];
    float4 x[QUADS][2];
#pragma unroll
    for (int i = 0; i < QUADS * 2; ++i) {
        const float *row = &stage[(t + 4 * (i % 2)) * STAGE_STRIDE + 32 * (i / 2)];
        x[i / 2][i % 2] = *reinterpret_cast<const float4 *>(row);
    }
    unsigned high[GROUPS][2], low[GROUPS][2];
    bool has_low[GROUPS];
#pragma unroll
    for (int i = 0; i < GROUPS; ++i) {
#pragma unroll
        for (int h = 0; h < 2; ++h) split_to_even(weight[i][h], high[i][h], low[i][h]);
        has_low[i] = Config::terms == 3 && __any_sync(ALL_LANES, low[i][0] != 0 || low[i][1] != 0);
    }
#pragma unroll
    for (int q = 0; q < QUADS; ++q) {
#pragma unroll
        for (int p = 0; p < QUAD_TILES; ++p) {
            unsigned a[4], b[4];
            // Element k of the fragment is in row t + 4 (k / 2), column 2 p + k % 2 of the quad.
#pragma unroll
            for (int k = 0; k < 4; ++k) split_to_even(part(x[q][k / 2], 2 * p + k % 2), a[k], b[k]);
#pragma unroll
            for (int i = 0; i < GROUPS; ++i) {
                multiply_parts(sums[i][q][p], a, b, high[i], low[i], has_low[i]);
            }
        }
    }
}

// The words of a record, loaded one ahead of the multiplication. For each word: the lane's distinct
// column, and for each group the bits of the lane's row and the index of its first nonzero. Only
// the first `start` is loaded; that of the next word is larger by the number of bits of this one.
struct Words {
    const int *__restrict__ columns;
    const unsigned *__restrict__ row_bits;
    int count, column, next_column;
    unsigned bits[GROUPS], next_bits[GROUPS], start[GROUPS], next_start[GROUPS];

    DEVICE_INLINE Words(const int *__restrict__ columns, const unsigned *__restrict__ row_bits,
                        const unsigned *__restrict__ starts, int count)
        : columns(columns), row_bits(row_bits), count(count) {
#pragma unroll
        for (int i = 0; i < GROUPS; ++i) {
            start[i] = starts[8 * i];
            bits[i] = count > 0 ? __ldg(&row_bits[8 * i]) : 0u;
            next_bits[i] = count > 1 ? __ldg(&row_bits[ROWS + 8 * i]) : 0u;
        }
        column = count > 0 ? __ldg(columns) : 0;
        next_column = count > 1 ? __ldg(columns + WORD_COLUMNS) : column;
    }

    DEVICE_INLINE void find_next_start() {
#pragma unroll
        for (int i = 0; i < GROUPS; ++i) next_start[i] = start[i] + __popc(bits[i]);
    }
    // Advances from word `number` to the next one.
    DEVICE_INLINE void advance(int number) {
        column = next_column;
        const bool more = number + 2 < count;
        if (more) next_column = __ldg(columns + (long long)(number + 2) * WORD_COLUMNS);
#pragma unroll
        for (int i = 0; i < GROUPS; ++i) {
            start[i] = next_start[i];
            bits[i] = next_bits[i];
            next_bits[i] = more ? __ldg(&row_bits[(long long)(number + 2) * ROWS + 8 * i]) : 0u;
        }
    }
};

// Addresses of a warp's columns of X and of its weights. Unless ROW_COPIES exceeds the warp size,
// all copies of a lane have the same columns, and an address takes one multiply-add.
struct Source {
    const Feature *__restrict__ X;  // at the warp's first column
    const float *__restrict__ values;
    int lane, columns;  // columns of X from the warp's first one on
    unsigned row_bytes;
    const char *lane_columns;

    DEVICE_INLINE int column_of(int i) const {
        return (lane + i * WARP_SIZE) % ROW_COPIES * Config::vector;
    }
    // Columns beyond the last one are replaced by others: their sums are not written.
    DEVICE_INLINE const char *columns_of(int i) const {
        const int column = column_of(ROW_COPIES <= WARP_SIZE ? 0 : i);
        return reinterpret_cast<const char *>(
            X + (Config::whole ? column : min(column, columns - Config::vector)));
    }

    // Starts copying the columns of step `step` of a word, and loads its weights.
    DEVICE_INLINE void load(Feature *stage, Weights &weight, int step, int lane_column,
                            const unsigned (&bits)[GROUPS], const unsigned (&start)[GROUPS]) const {
#pragma unroll
        for (int i = 0; i < 8 * ROW_COPIES / WARP_SIZE; ++i) {
            const int row = (lane + i * WARP_SIZE) / ROW_COPIES;
            const int column = __shfl_sync(ALL_LANES, lane_column, 8 * step + row);
            const char *from = ROW_COPIES <= WARP_SIZE ? lane_columns : columns_of(i);
            from += (unsigned long long)unsigned(column) * row_bytes;
            copy_async(reinterpret_cast<Stored *>(&stage[row * STAGE_STRIDE + column_of(i)]),
                       reinterpret_cast<const Stored *>(from));
        }
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int bit = 8 * step + lane % 4 + 4 * h;
#pragma unroll
            for (int i = 0; i < GROUPS; ++i) {
                const unsigned before = bits[i] & ((1u << bit) - 1u);
                weight[i][h] =
                    load_if(bits[i] >> bit & 1u, &values[start[i] + unsigned(__popc(before))]);
            }
        }
    }
};

// Writes four columns of a row to Y, or adds them to the sums of a split window.
DEVICE_INLINE void write_four(float *to, const float4 &four, int column, int n_cols,
                              bool is_split) {
    if (Config::vector >= 4 && !is_split) {
        if (column < n_cols) stream(reinterpret_cast<float4 *>(to), four);
        return;
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        if (column + k < n_cols) emit(&to[k], part(four, k), is_split);
    }
}

DEVICE_INLINE void write(const Sums &sums, const WindowBlock &block, const SplitSums &split_sums,
                         float *__restrict__ Y, int lane_column, int t, int n_rows, int n_cols) {
    const bool is_split = block.parts > 1;
    // Of the products u and v of a quad, this lane has rows 2 t (odd = 0) and 2 t + 1 (odd = 1) of
    // each group: elements `odd` and 2 + `odd` are two neighboring columns of X.
#pragma unroll
    for (int i = 0; i < 2 * GROUPS; ++i) {
        const int odd = i % 2, row = 8 * (i / 2) + 2 * t + odd;
        if (block.first_row + row >= n_rows) continue;
#pragma unroll
        for (int c = 0; c < QUADS * LANE_COLUMNS / 4; ++c) {
            const int q = c / (LANE_COLUMNS / 4), four_of_lane = c % (LANE_COLUMNS / 4);
            const int column = lane_column + 8 * LANE_COLUMNS * q + 4 * four_of_lane;
            const float (&u)[4] = sums[i / 2][q][2 * four_of_lane];
            const float (&v)[4] = sums[i / 2][q][2 * four_of_lane + 1];
            float *to = is_split ? &split_sums.sums[element(row, column, n_cols)]
                                 : &Y[element(block.first_row + row, column, n_cols)];
            write_four(to, make_float4(u[odd], u[2 + odd], v[odd], v[2 + odd]), column, n_cols,
                       is_split);
        }
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, Config::blocks_per_sm)
    window_tiles_spmm(const int *__restrict__ columns, const int4 *__restrict__ metadata,
                      const unsigned *__restrict__ starts, const unsigned *__restrict__ bits,
                      const float *__restrict__ values, const Feature *__restrict__ X,
                      float *__restrict__ Y, float *cut_sums, unsigned *arrivals, int n_blocks,
                      int n_rows, int n_cols) {
    RECORD_WARP;
    const int warp = int(threadIdx.x) / WARP_SIZE, lane = int(threadIdx.x) % WARP_SIZE;
    const int number = int(blockIdx.x) * Config::warps + warp;
    if (number >= n_blocks) return;
    const WindowBlock block = decode(metadata[number]);
    const int steps = ceil_div(block.columns, 8), g = lane / 4, t = lane % 4;
    const int first_column = int(blockIdx.y) * WARP_COLUMNS;
    Words words(columns + (long long)block.first_word * WORD_COLUMNS + lane,
                bits + (long long)block.first_word * ROWS + g,
                starts + (long long)number * ROWS + g, block.words());
    DYNAMIC_SHARED(float4, memory);
    Feature *stages = reinterpret_cast<Feature *>(memory) + warp * AHEAD * STAGE_SIZE;
    Source source = {X + first_column, values, lane, n_cols - first_column,
                     unsigned(sizeof(Feature)) * unsigned(n_cols)};
    source.lane_columns = source.columns_of(0);

    Sums sums = {};
    Weights weights[AHEAD];
    if (words.count > 0) {
#pragma unroll
        for (int j = 0; j < AHEAD; ++j) {
            source.load(stages + j * STAGE_SIZE, weights[j], j, words.column, words.bits,
                        words.start);
            if ((j + 1) % TOGETHER == 0) close_copies();
        }
    }
    // Loads for steps past the end repeat valid columns, with weights 0. They keep the number of
    // open copies constant, which `await_copies` requires.
    for (int word = 0; word < words.count; ++word) {
        words.find_next_start();
#pragma unroll
        for (int j = 0; j < 4; j += TOGETHER) {
            if (4 * word + j >= steps) break;
            await_copies<AHEAD / TOGETHER - 1>();
            __syncwarp();
            multiply(sums, stages + j % AHEAD * STAGE_SIZE + LANE_COLUMNS * g, t, weights, j);
            __syncwarp();
#pragma unroll
            for (int s = j; s < j + TOGETHER; ++s) {
                Feature *to = stages + s % AHEAD * STAGE_SIZE;
                if (s + AHEAD < 4) {
                    source.load(to, weights[s % AHEAD], s + AHEAD, words.column, words.bits,
                                words.start);
                } else {
                    source.load(to, weights[s % AHEAD], (s + AHEAD) % 4, words.next_column,
                                words.next_bits, words.next_start);
                }
            }
            close_copies();
        }
        words.advance(word);
    }

    const SplitSums split_sums(cut_sums, arrivals, number, block.part, n_cols);
    write(sums, block, split_sums, Y, first_column + LANE_COLUMNS * g, t, n_rows, n_cols);
    await_copies<0>();  // those for steps past the end
    if (block.parts == 1) return;
    __threadfence();
    __syncwarp();
    if (!__any_sync(ALL_LANES, lane == 0 && split_sums.last_of(block.parts))) return;
    split_sums.move(Y, block.first_row, n_rows, first_column,
                    min(WARP_COLUMNS, n_cols - first_column), n_cols, lane, WARP_SIZE);
}
