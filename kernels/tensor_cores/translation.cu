// Sparse graph translation (Algorithm 4 of chapter 5 of the thesis) on the GPU: the sorted
// distinct columns of each window of rows, and for each nonzero the index of its column.
//
// The rows of a window are sorted already, so nothing is sorted here. `place_columns` computes the
// rank of each nonzero, the number of the window's nonzeros with a smaller column, by a binary
// search in each of the window's rows, and marks that rank unless an earlier row has the column.
// A prefix sum over the marks numbers the distinct columns of all windows, and `condense_columns`
// looks up the number of each nonzero.
//
// grid  = chunks of chunk nonzeros
// block = block_threads

// Supplied at compile time:
//   block_threads   threads of a block
//   chunk           nonzeros of a block

#include "common.cuh"

// Bit that marks nonzeros whose column occurs in an earlier row. Windows have fewer than 2^31
// nonzeros, so the bit is free.
constexpr unsigned SEEN_BEFORE = 0x80000000u;

struct Window {
    const long long *row_pointers;
    int rows, n_rows;

    DEVICE_INLINE long long start(int window) const {
        return row_pointers[min((long long)window * rows, (long long)n_rows)];
    }
    // Returns the last window, from `low` to `high`, that begins at nonzero k or before.
    DEVICE_INLINE int window_of(long long k, int low, int high) const {
        while (low < high) {
            const int middle = low + (high - low + 1) / 2;
            if (start(middle) <= k) {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        return low;
    }
};

// Calls `visit(k, window)` for the nonzeros of the block's chunk, one thread per nonzero.
template <typename Visit>
DEVICE_INLINE void for_nonzeros(const Window &windows, long long nnz, Visit visit) {
    __shared__ int ends[2];  // windows of the chunk's first and last nonzero
    const long long first = (long long)blockIdx.x * Config::chunk;
    const long long last = min(first + Config::chunk, nnz) - 1;
    const int n_windows = (windows.n_rows + windows.rows - 1) / windows.rows;
    if (threadIdx.x < 2)
        ends[threadIdx.x] = windows.window_of(threadIdx.x ? last : first, 0, n_windows - 1);
    __syncthreads();
    for (long long k = first + threadIdx.x; k <= last; k += Config::block_threads) {
        visit(k, windows.window_of(k, ends[0], ends[1]));
    }
}

extern "C" __global__ void __launch_bounds__(Config::block_threads)
    place_columns(const long long *__restrict__ row_pointers, const int *__restrict__ columns,
                  unsigned *__restrict__ places, unsigned char *__restrict__ marks, int rows,
                  int n_rows, long long nnz) {
    const Window windows{row_pointers, rows, n_rows};
    for_nonzeros(windows, nnz, [&](long long k, int window) {
        const int column = columns[k];
        const long long start = windows.start(window);
        const int first_row = window * rows, last_row = min(rows, n_rows - first_row) + first_row;
        unsigned rank = 0;
        bool seen = false;
        long long begin = start;
        for (int row = first_row; row < last_row; ++row) {
            const long long end = row_pointers[row + 1];
            int low = 0, high = int(end - begin);
            while (low < high) {
                const int middle = (low + high) / 2;
                if (columns[begin + middle] < column) {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            rank += unsigned(low);
            seen |= end <= k && begin + low < end && columns[begin + low] == column;
            begin = end;
        }
        places[k] = rank | (seen ? SEEN_BEFORE : 0u);
        if (!seen) marks[start + rank] = 1;
    });
}

// distinct_before: number of marks before each position, and at its end the number of all marks.
// edge_to_column: `places` of `place_columns` on entry; on return the index of each nonzero's
// column among the distinct columns of its window.
extern "C" __global__ void __launch_bounds__(Config::block_threads)
    condense_columns(const long long *__restrict__ row_pointers, const int *__restrict__ columns,
                     const long long *__restrict__ distinct_before,
                     unsigned *__restrict__ edge_to_column, int *__restrict__ column_indices,
                     int rows, int n_rows, long long nnz) {
    const Window windows{row_pointers, rows, n_rows};
    for_nonzeros(windows, nnz, [&](long long k, int window) {
        const long long start = windows.start(window);
        const unsigned rank = edge_to_column[k];
        const long long number = distinct_before[start + (rank & ~SEEN_BEFORE)];
        if (!(rank & SEEN_BEFORE)) column_indices[number] = columns[k];
        edge_to_column[k] = unsigned(number - distinct_before[start]);
    });
}
