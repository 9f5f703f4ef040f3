// Block records of accelviz/partition/shared_columns.py, and the sums of split windows. A window
// is ROWS neighboring rows of A, which share the loads of its distinct columns. A word stands for
// 32 distinct columns of a window: for each row it has 32 bits, one per nonzero. A window with many
// columns is split into parts, one block each. The including file defines ROWS.
#pragma once

#include "common.cuh"

constexpr int WORD_COLUMNS = 32;  // distinct columns per word

// A block: its window's first row, its first word, its distinct columns, its part of the window.
struct WindowBlock {
    int first_row, first_word, columns, part, parts;

    DEVICE_INLINE int words() const {
        return ceil_div(columns, WORD_COLUMNS);
    }
};

DEVICE_INLINE WindowBlock decode(const int4 &words) {
    return {words.x * ROWS, words.y, words.z, words.w & 0xffff, int(unsigned(words.w) >> 16)};
}

// The sums of a split window, to which its parts add: ROWS rows of `cut_sums`.
struct SplitSums {
    float *sums;
    unsigned *arrived;

    // `number` is the index of the block's record in the metadata, where split windows come first.
    DEVICE_INLINE SplitSums(float *cut_sums, unsigned *arrivals, int number, int part, int n_cols) {
        // A split window has two parts or more, so half the number of its first part is unique.
        const int window = (number - part) / 2;
        sums = cut_sums + (long long)window * ROWS * n_cols;
        arrived = &arrivals[window * int(gridDim.y) + int(blockIdx.y)];
    }

    // Returns, to one thread, whether all other parts have called before.
    DEVICE_INLINE bool last_of(int parts) const {
        const bool last = atomicAdd(arrived, 1u) == unsigned(parts) - 1;
        if (last) atomicExch(arrived, 0u);
        return last;
    }

    // Moves the sums of some columns to Y and resets them to zero.
    DEVICE_INLINE void move(float *Y, int first_row, int n_rows, int first, int columns, int n_cols,
                            int thread, int threads) const {
        const int rows = min(ROWS, n_rows - first_row);
        for (int i = thread; i < rows * columns; i += threads) {
            const int row = i / columns, column = first + i % columns;
            Y[element(first_row + row, column, n_cols)] =
                atomicExch(&sums[element(row, column, n_cols)], 0.0f);
        }
    }
};

#ifdef EMULATOR
#include "instructions/loads.h"
#else
// Returns *from if `exists`, else 0. In PTX, because the compiler would make a branch, after which
// copies of the loaded register wait for the load.
DEVICE_INLINE float load_if(bool exists, const float *from) {
    float value;
    asm volatile(
        "{\n\t.reg .pred p;\n\tsetp.ne.s32 p, %2, 0;\n\tmov.f32 %0, 0f00000000;\n\t"
        "@p ld.global.nc.f32 %0, [%1];\n\t}"
        : "=f"(value)
        : "l"(from), "r"(int(exists)));
    return value;
}
#endif
