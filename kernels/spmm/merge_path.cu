// Merge-path SpMM (Merrill and Garland, SC 2016; Yang, Buluc and Owens, Euro-Par 2018; Shan et al.,
// ISPASS 2023): Y = A X, fp32, CSR.
//
// Merge path orders the work of the whole matrix: a row's nonzeros, then the row's end. Each
// nonzero and each row end is one item, and each warp handles a share of warp_items consecutive
// items. The metadata holds the row in which a share begins, from which its first nonzero follows:
// an item's number is the number of rows ended plus the number of nonzeros before it.
//
// A row is written by the warps that have its nonzeros. A warp with all of them stores the row;
// warps with some of them add to it. A warp with only a row's end writes the row only
// if it is empty.
//
// Rows are short, so a loop over single rows would wait for X in each of them. The nonzeros of a
// share are therefore loaded in batches across rows; only the summation checks for row ends.
//
// grid  = (blocks of block_warps shares, tiles of 32 x lane_columns columns)
// block = 32 x block_warps threads
#include "common.cuh"

// The plan supplies, at compile time:
//   block_warps    warps in a block
//   warp_items     rows plus nonzeros of a warp
//   lane_columns   columns of a lane, 32 apart

constexpr int BLOCK_THREADS = Config::block_warps * WARP_SIZE;
// Nonzeros of a batch: 8 to 16 loads of X are in flight in each lane.
constexpr int BATCH = Config::lane_columns > 2 ? 4 : 8;

static_assert(WARP_SIZE % BATCH == 0, "the nonzeros that a warp holds are made of whole batches");

constexpr int NOT_HERE = 0x7fffffff;  // larger than every position in a share

// Returns the end of a row as a position relative to nonzero `begin`. The ends of `last_row` and
// later rows belong to other shares: NOT_HERE.
DEVICE_INLINE int load_end(const long long *__restrict__ row_pointers, long long row, int last_row,
                           long long begin) {
    return row < last_row ? int(row_pointers[row + 1] - begin) : NOT_HERE;
}

// Writes a lane's elements of a row, or adds them if the row is split between warps.
DEVICE_INLINE void emit(float *__restrict__ Y, const float (&sums)[Config::lane_columns], int row,
                        int column, int n_cols, bool is_split) {
    float *out = &Y[element(row, column, n_cols)];
    if (is_split) {
#pragma unroll
        for (int i = 0; i < Config::lane_columns; ++i) {
            if (column + i * WARP_SIZE < n_cols) atomicAdd(&out[i * WARP_SIZE], sums[i]);
        }
    } else {
#pragma unroll
        for (int i = 0; i < Config::lane_columns; ++i) {
            if (column + i * WARP_SIZE < n_cols) out[i * WARP_SIZE] = sums[i];
        }
    }
}

// Loads the lane's columns of the rows of X of nonzeros first to first + BATCH - 1, where `held` is
// the number of nonzeros that the warp holds.
DEVICE_INLINE void load_batch(float (&x)[BATCH][Config::lane_columns], const float *__restrict__ X,
                              int lane_source, int first, int held, int column, int n_cols) {
#pragma unroll
    for (int j = 0; j < BATCH; ++j) {
        const int source = __shfl_sync(ALL_LANES, lane_source, first + j);
#pragma unroll
        for (int i = 0; i < Config::lane_columns; ++i) {
            const int at = column + i * WARP_SIZE;
            const bool exists = first + j < held && at < n_cols;
            x[j][i] = exists ? X[element(source, at, n_cols)] : 0.0f;
        }
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    merge_path(const int *__restrict__ first_rows, const long long *__restrict__ row_pointers,
               const int *__restrict__ columns, const float *__restrict__ values,
               const float *__restrict__ X, float *__restrict__ Y, long long n_items, int n_rows,
               int n_cols) {
    RECORD_WARP;
    const int lane = threadIdx.x % WARP_SIZE;
    const long long warp = (long long)blockIdx.x * Config::block_warps + threadIdx.x / WARP_SIZE;
    const long long item = warp * Config::warp_items;
    const int column = blockIdx.y * WARP_SIZE * Config::lane_columns + lane;
    if (item >= n_items) return;  // for all lanes of the warp

    int row = first_rows[warp];
    const int last_row = first_rows[warp + 1];
    const int items = int(min(n_items - item, (long long)Config::warp_items));
    const int count = items - (last_row - row);  // nonzeros of the share
    const long long begin = item - row;          // the first of them

    // Positions below are relative to `begin`. Each lane loads the end of one of 32 rows; shuffles
    // broadcast the ends, as they do the nonzeros.
    int first_loaded_row = row;
    int lane_end = load_end(row_pointers, (long long)row + lane, last_row, begin);
    int end = __shfl_sync(ALL_LANES, lane_end, 0);
    int start = 0;                          // position of the row's first nonzero in this share
    bool open = row_pointers[row] < begin;  // an earlier warp has nonzeros of this row
    // Nonzeros after the last end belong to `last_row`, which may continue in later shares.
    const bool is_split = last_row < n_rows && row_pointers[last_row + 1] > begin + count;
    float sums[Config::lane_columns] = {};

    const auto finish_row = [&] {
        if (!open || end > 0) emit(Y, sums, row, column, n_cols, open);
#pragma unroll
        for (int i = 0; i < Config::lane_columns; ++i) sums[i] = 0.0f;
        open = false;
        start = end;
        ++row;
        if (row - first_loaded_row == WARP_SIZE) {
            first_loaded_row = row;
            lane_end = load_end(row_pointers, (long long)row + lane, last_row, begin);
        }
        end = __shfl_sync(ALL_LANES, lane_end, row - first_loaded_row);
    };

    for (int first = 0; first < count; first += WARP_SIZE) {
        int lane_source = 0;
        float lane_value = 0.0f;
        if (first + lane < count) {
            lane_source = columns[begin + first + lane];
            lane_value = values[begin + first + lane];
        }
        const int held = min(count - first, WARP_SIZE);
        for (int k = 0; k < held; k += BATCH) {
            float x[BATCH][Config::lane_columns];
            load_batch(x, X, lane_source, k, held, column, n_cols);
#pragma unroll
            for (int j = 0; j < BATCH; ++j) {
                while (end <= first + k + j) finish_row();
                const float value = __shfl_sync(ALL_LANES, lane_value, k + j);  // 0 past the last
#pragma unroll
                for (int i = 0; i < Config::lane_columns; ++i) sums[i] += value * x[j][i];
            }
        }
    }
    while (row < last_row) finish_row();
    if (start < count) emit(Y, sums, row, column, n_cols, open || is_split);
}
