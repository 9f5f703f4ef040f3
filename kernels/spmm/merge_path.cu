// Merge-path SpMM (Merrill and Garland, SC 2016; Yang, Buluc and Owens, Euro-Par 2018; Shan et al.,
// ISPASS 2023): Y = A X, fp32, CSR.
//
// A walk through the matrix meets a row's nonzeros, then the row's end; each of them is an item of
// work, and every warp gets warp_items consecutive items. The metadata has the row where a share
// begins, which says the nonzero too: an item's number is that of the rows ended plus the nonzeros
// met before it.
//
// A row's nonzeros say whose it is. The warp that has all of them stores the row; warps that have
// some of them add to it; a warp that has its end alone does nothing, unless the row is empty.
//
// Rows are short, so that a loop over one row would wait for X at each of them. Here the nonzeros
// of a share are read in batches whatever their rows, and only the adding up looks for rows' ends.
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

constexpr int NOT_HERE = 0x7fffffff;  // after every position of a share

// Gives each lane the end of one row, counted from nonzero `begin`; that of `last_row` and of those
// after it is in no item of this share.
DEVICE_INLINE int load_end(const long long *__restrict__ row_pointers, long long row, int last_row,
                           long long begin) {
    return row < last_row ? int(row_pointers[row + 1] - begin) : NOT_HERE;
}

// Writes a lane's elements of a row; parts of a row that is cut between warps add up.
DEVICE_INLINE void emit(float *__restrict__ Y, const float (&sums)[Config::lane_columns], int row,
                        int column, int n_cols, bool cut) {
    float *out = &Y[element(row, column, n_cols)];
    if (cut) {
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

// Loads the lane's columns of the rows of X for nonzeros `first` on of the `held` of a warp.
DEVICE_INLINE void load_batch(float (&x)[BATCH][Config::lane_columns], const float *__restrict__ X,
                              int my_column, int first, int held, int column, int n_cols) {
#pragma unroll
    for (int j = 0; j < BATCH; ++j) {
        const int source = __shfl_sync(ALL_LANES, my_column, first + j);
#pragma unroll
        for (int i = 0; i < Config::lane_columns; ++i) {
            const int at = column + i * WARP_SIZE;
            const bool wanted = first + j < held && at < n_cols;
            x[j][i] = wanted ? X[element(source, at, n_cols)] : 0.0f;
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
    if (item >= n_items) return;  // the whole warp leaves

    int row = first_rows[warp];
    const int last_row = first_rows[warp + 1];
    const int items = int(min(n_items - item, (long long)Config::warp_items));
    const int count = items - (last_row - row);  // nonzeros of the share
    const long long begin = item - row;          // the first of them

    // Positions below are counted from `begin`. The ends of 32 rows are loaded side by side, each
    // lane one, and handed round like the nonzeros.
    int known_row = row;
    int my_end = load_end(row_pointers, (long long)row + lane, last_row, begin);
    int end = __shfl_sync(ALL_LANES, my_end, 0);
    int start = 0;                          // of the row's piece in this share
    bool open = row_pointers[row] < begin;  // an earlier warp has nonzeros of this row
    // What comes after the last end belongs to `last_row`, perhaps all of its nonzeros.
    const bool cut = last_row < n_rows && row_pointers[last_row + 1] > begin + count;
    float sums[Config::lane_columns] = {};

    const auto finish_row = [&] {
        if (!open || end > 0) emit(Y, sums, row, column, n_cols, open);
#pragma unroll
        for (int i = 0; i < Config::lane_columns; ++i) sums[i] = 0.0f;
        open = false;
        start = end;
        ++row;
        if (row - known_row == WARP_SIZE) {
            known_row = row;
            my_end = load_end(row_pointers, (long long)row + lane, last_row, begin);
        }
        end = __shfl_sync(ALL_LANES, my_end, row - known_row);
    };

    for (int first = 0; first < count; first += WARP_SIZE) {
        int my_column = 0;
        float my_value = 0.0f;
        if (first + lane < count) {
            my_column = columns[begin + first + lane];
            my_value = values[begin + first + lane];
        }
        const int held = min(count - first, WARP_SIZE);
        for (int k = 0; k < held; k += BATCH) {
            float x[BATCH][Config::lane_columns];
            load_batch(x, X, my_column, k, held, column, n_cols);
#pragma unroll
            for (int j = 0; j < BATCH; ++j) {
                while (end <= first + k + j) finish_row();
                const float value = __shfl_sync(ALL_LANES, my_value, k + j);  // 0 past the last
#pragma unroll
                for (int i = 0; i < Config::lane_columns; ++i) sums[i] += value * x[j][i];
            }
        }
    }
    while (row < last_row) finish_row();
    if (start < count) emit(Y, sums, row, column, n_cols, open || cut);
}
