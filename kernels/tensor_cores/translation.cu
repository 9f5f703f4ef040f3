// Sparse graph translation (Algorithm 4 of chapter 5 of the thesis) on the GPU: the distinct
// columns of each window of rows, ascending, and for each nonzero the place of its column among
// them.
//
// The rows of a window are sorted already, so that nothing is sorted here. `place_columns` counts,
// for each nonzero, how many of the window's come before its column, by a binary search in each of
// its rows; and marks that place if no earlier row has the column. A prefix sum over the marks
// numbers the distinct columns of all windows, and `condense_columns` looks its number up for each
// nonzero.
//
// grid  = chunks of chunk nonzeros
// block = block_threads

// Supplied at compile time:
//   block_threads   threads of a block
//   chunk           nonzeros of a block

#include "common.cuh"

// Nonzeros of which an earlier row has the column; windows have fewer than 2^31 nonzeros.
constexpr unsigned SEEN_BEFORE = 0x80000000u;

struct Window {
    const long long *row_pointers;
    int rows, n_rows;

    DEVICE_INLINE long long start(int window) const {
        return row_pointers[min((long long)window * rows, (long long)n_rows)];
    }
    // The last of the windows `low` to `high` that begins at nonzero k or before.
    DEVICE_INLINE int of(long long k, int low, int high) const {
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

// Calls `visit(k, window)` for the nonzeros of the block's chunk, a thread each.
template <typename Visit>
DEVICE_INLINE void each_nonzero(const Window &windows, long long nnz, Visit visit) {
    __shared__ int ends[2];  // the windows of the chunk's first and last nonzero
    const long long first = (long long)blockIdx.x * Config::chunk;
    const long long last = min(first + Config::chunk, nnz) - 1;
    const int all = (windows.n_rows + windows.rows - 1) / windows.rows;
    if (threadIdx.x < 2) ends[threadIdx.x] = windows.of(threadIdx.x ? last : first, 0, all - 1);
    __syncthreads();
    for (long long k = first + threadIdx.x; k <= last; k += Config::block_threads) {
        visit(k, windows.of(k, ends[0], ends[1]));
    }
}

extern "C" __global__ void __launch_bounds__(Config::block_threads)
    place_columns(const long long *__restrict__ row_pointers, const int *__restrict__ columns,
                  unsigned *__restrict__ places, unsigned char *__restrict__ marks, int rows,
                  int n_rows, long long nnz) {
    const Window windows{row_pointers, rows, n_rows};
    each_nonzero(windows, nnz, [&](long long k, int window) {
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

// distinct_before: how many marks come before each place, and at last their number.
// edge_to_column: what `place_columns` left in `places`; the place among the distinct columns
// after.
extern "C" __global__ void __launch_bounds__(Config::block_threads)
    condense_columns(const long long *__restrict__ row_pointers, const int *__restrict__ columns,
                     const long long *__restrict__ distinct_before,
                     unsigned *__restrict__ edge_to_column, int *__restrict__ senders, int rows,
                     int n_rows, long long nnz) {
    const Window windows{row_pointers, rows, n_rows};
    each_nonzero(windows, nnz, [&](long long k, int window) {
        const long long start = windows.start(window);
        const unsigned rank = edge_to_column[k];
        const long long number = distinct_before[start + (rank & ~SEEN_BEFORE)];
        if (!(rank & SEEN_BEFORE)) senders[number] = columns[k];
        edge_to_column[k] = unsigned(number - distinct_before[start]);
    });
}
