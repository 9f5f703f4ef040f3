// SpMM by windows: Y = A X, fp32. A window is a number of neighboring rows of A, which share the
// loads of X: each of the window's distinct columns is copied to shared memory once. Copies of 32
// columns are in flight while the block sums those copied before.
//
// grid  = (blocks in the metadata, tiles of WARP_SIZE * vector columns)
// block = `warps` warps, each for rows / warps rows of the window

// The plan supplies, at compile time:
//   rows            rows of a window
//   warps           warps of a block, a divisor of rows
//   vector          neighboring columns of a lane: 1, 2 or 4
//   copied          columns per copy: 1, 2 or 4, a divisor of vector and of n_cols
//   stages          words whose columns are in shared memory at the same time, at least 2

#include "async_copy.cuh"
#include "common.cuh"
#include "vectors.cuh"

constexpr int ROWS = Config::rows;
#include "tensor_cores/shared_columns.cuh"

constexpr int BLOCK_THREADS = Config::warps * WARP_SIZE;
constexpr int WARP_ROWS = Config::rows / Config::warps;
constexpr int WARP_COPIES = (WORD_COLUMNS + Config::warps - 1) / Config::warps;

using Vector = Floats<Config::vector>;
using Stage = Vector[WORD_COLUMNS][WARP_SIZE];
using Copied = Floats<Config::copied>;

// Starts the warp's copies of a word's columns. Warp c % warps copies column c of the word.
DEVICE_INLINE void fetch(Vector (*stage)[WARP_SIZE], int lane_column, int columns,
                         const float *__restrict__ X, int first, int n_cols) {
    const int warp = int(threadIdx.x) / WARP_SIZE, lane = int(threadIdx.x) % WARP_SIZE;
#pragma unroll
    for (int i = 0; i < WARP_COPIES; ++i) {
        const int word_column = warp + i * Config::warps;
        const int column = __shfl_sync(ALL_LANES, lane_column, word_column % WORD_COLUMNS);
        if (word_column >= min(columns, WORD_COLUMNS)) continue;
        const float *from = &X[element(column, first, n_cols)];
        Copied *to = reinterpret_cast<Copied *>(stage[word_column]);
#pragma unroll
        for (int j = 0; j < Config::vector / Config::copied; ++j) {
            const int at = (lane + j * WARP_SIZE) * Config::copied;
            if (first + at < n_cols) {
                copy_async(&to[at / Config::copied], reinterpret_cast<const Copied *>(&from[at]));
            } else {
                to[at / Config::copied] = Copied{};
            }
        }
    }
}

// Starts copying the columns of a word, if it exists, and loads the column indices of the next one.
DEVICE_INLINE void fetch_word(Vector (*stage)[WARP_SIZE], int &next_column,
                              const int *__restrict__ columns, int word, const WindowBlock &block,
                              const float *__restrict__ X, int first, int n_cols) {
    const int column = next_column, words = block.words();
    if (word + 1 < words) next_column = __ldg(columns + (long long)(word + 1) * WORD_COLUMNS);
    if (word < words) fetch(stage, column, block.columns - word * WORD_COLUMNS, X, first, n_cols);
    close_copies();
}

// Loads the lane's value of a word's nonzeros for each of the warp's rows. Lane r holds the bits of
// row r and the index of its first nonzero.
DEVICE_INLINE void load_values(float (&value)[WARP_ROWS], const float *__restrict__ values,
                               unsigned bits, unsigned start) {
    const int lane = int(threadIdx.x) % WARP_SIZE;
#pragma unroll
    for (int r = 0; r < WARP_ROWS; ++r) {
        const int count = __popc(__shfl_sync(ALL_LANES, bits, r));
        const unsigned first = __shfl_sync(ALL_LANES, start, r);
        value[r] = load_if(lane < count, &values[first + lane]);
    }
}

// Adds a row's nonzeros of a word, two at a time. `left` has a bit per remaining nonzero; lane k
// holds the value of nonzero k.
DEVICE_INLINE void add_row(Vector &sum, unsigned left, float lane_value,
                           const Vector (*stage)[WARP_SIZE]) {
    const int lane = int(threadIdx.x) % WARP_SIZE;
    int k = 0;
    while (left & (left - 1)) {
        const int j = __ffs(int(left)) - 1;
        left &= left - 1;
        const int i = __ffs(int(left)) - 1;
        left &= left - 1;
        const Vector x = stage[j][lane], z = stage[i][lane];
        add_product(sum, __shfl_sync(ALL_LANES, lane_value, k), x);
        add_product(sum, __shfl_sync(ALL_LANES, lane_value, k + 1), z);
        k += 2;
    }
    if (left) {
        add_product(sum, __shfl_sync(ALL_LANES, lane_value, k), stage[__ffs(int(left)) - 1][lane]);
    }
}

DEVICE_INLINE void write(const Vector (&sums)[WARP_ROWS], const WindowBlock &block,
                         const SplitSums &split_sums, float *__restrict__ Y, int tile, int n_rows,
                         int n_cols) {
    const bool is_split = block.parts > 1;
    const int warp = int(threadIdx.x) / WARP_SIZE, lane = int(threadIdx.x) % WARP_SIZE;
#pragma unroll
    for (int r = 0; r < WARP_ROWS; ++r) {
        const int row = warp * WARP_ROWS + r;
        if (block.first_row + row >= n_rows) break;
        float *to = is_split ? split_sums.sums + element(row, tile, n_cols)
                             : Y + element(block.first_row + row, tile, n_cols);
#pragma unroll
        for (int j = 0; j < Config::vector; ++j) {
            // If copied < vector, lanes copy pieces of other lanes' vectors, but the stage holds
            // columns in their order.
            const int column = lane * Config::vector + j;
            if (tile + column >= n_cols) continue;
            if (is_split) atomicAdd(&to[column], part(sums[r], j));
        }
        if (!is_split && Config::copied == Config::vector) {
            if (tile + lane * Config::vector < n_cols)
                stream(reinterpret_cast<Vector *>(to) + lane, sums[r]);
        } else if (!is_split) {
#pragma unroll
            for (int j = 0; j < Config::vector; ++j) {
                const int column = lane * Config::vector + j;
                if (tile + column < n_cols) to[column] = part(sums[r], j);
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    windows_spmm(const int *__restrict__ columns, const int4 *__restrict__ metadata,
                 const unsigned *__restrict__ starts, const unsigned *__restrict__ bits,
                 const float *__restrict__ values, const float *__restrict__ X,
                 float *__restrict__ Y, float *cut_sums, unsigned *arrivals, int n_rows,
                 int n_cols) {
    RECORD_WARP;
    DYNAMIC_SHARED(float4, memory);
    Stage *stages = reinterpret_cast<Stage *>(memory);

    const WindowBlock block = decode(metadata[blockIdx.x]);
    const int words = block.words(), warp = int(threadIdx.x) / WARP_SIZE;
    const int lane = int(threadIdx.x) % WARP_SIZE,
              tile = int(blockIdx.y) * WARP_SIZE * Config::vector;
    columns += (long long)block.first_word * WORD_COLUMNS + lane;
    bits += (long long)block.first_word * Config::rows + warp * WARP_ROWS + lane;
    // Lane r of a warp tracks the bits and the next nonzero of the warp's row r.
    const bool tracks_row = lane < WARP_ROWS;
    starts += (long long)blockIdx.x * Config::rows + warp * WARP_ROWS + lane;
    unsigned start = tracks_row ? *starts : 0u;

    // Column indices are loaded one word ahead of their copies, copies start stages - 1 words ahead
    // of their use, bits are loaded two words ahead and values one.
    int next_column = words > 0 ? __ldg(columns) : 0;
#pragma unroll
    for (int s = 0; s < Config::stages - 1; ++s) {
        fetch_word(stages[s], next_column, columns, s, block, X, tile, n_cols);
    }
    unsigned row_bits = tracks_row && words > 0 ? __ldg(bits) : 0u;
    unsigned next_bits = tracks_row && words > 1 ? __ldg(bits + Config::rows) : 0u;
    float value[WARP_ROWS];
    load_values(value, values, row_bits, start);
    start += __popc(row_bits);

    Vector sums[WARP_ROWS] = {};
    int slot = 0;
    for (int s = 0; s < words; ++s) {
        await_copies<Config::stages - 2>();
        __syncthreads();
        fetch_word(stages[slot == 0 ? Config::stages - 1 : slot - 1], next_column, columns,
                   s + Config::stages - 1, block, X, tile, n_cols);
        const unsigned current_bits = row_bits;
        row_bits = next_bits;
        next_bits =
            tracks_row && s + 2 < words ? __ldg(bits + (long long)(s + 2) * Config::rows) : 0u;
        const Vector(*stage)[WARP_SIZE] = stages[slot];
        float next_value[WARP_ROWS];
        load_values(next_value, values, row_bits, start);
#pragma unroll
        for (int r = 0; r < WARP_ROWS; ++r) {
            const unsigned left = __shfl_sync(ALL_LANES, current_bits, r);
            const float lane_value = value[r];
            value[r] = next_value[r];
            add_row(sums[r], left, lane_value, stage);
        }
        start += __popc(row_bits);
        slot = slot + 1 == Config::stages ? 0 : slot + 1;
    }

    const SplitSums split_sums(cut_sums, arrivals, int(blockIdx.x), block.part, n_cols);
    write(sums, block, split_sums, Y, tile, n_rows, n_cols);
    if (block.parts == 1) return;
    bool &is_last = *reinterpret_cast<bool *>(memory);
    if (!is_last_block(is_last, split_sums.arrived, block.parts)) return;
    split_sums.move(Y, block.first_row, n_rows, tile,
                    min(WARP_SIZE * Config::vector, n_cols - tile), n_cols, int(threadIdx.x),
                    BLOCK_THREADS);
}
