// What accelviz/tensor_cores/shared_columns.py makes of a graph, as kernels read it, and how the
// parts of a cut window come together. The including file has ROWS, the rows of a window.
#pragma once

#include "common.cuh"

constexpr int WORD_COLUMNS = 32;  // whose bits a word has

struct WindowBlock {
    int first_row, first_word, columns, part, parts;

    DEVICE_INLINE int words() const {
        return ceil_div(columns, WORD_COLUMNS);
    }
};

DEVICE_INLINE WindowBlock decode(const int4 &words) {
    return {words.x * ROWS, words.y, words.z, words.w & 0xffff, int(unsigned(words.w) >> 16)};
}

// Where the parts of a cut window meet: ROWS rows of `cut_sums`.
struct CutSums {
    float *sums;
    unsigned *arrived;

    // `number` is the block's record of the metadata.
    DEVICE_INLINE CutSums(float *cut_sums, unsigned *arrivals, int number, int part, int n_cols) {
        // Each cut window has two parts or more.
        const int window = (number - part) / 2;
        sums = cut_sums + (long long)window * ROWS * n_cols;
        arrived = &arrivals[window * int(gridDim.y) + int(blockIdx.y)];
    }

    // Says to one thread whether all the others have been there.
    DEVICE_INLINE bool last_of(int parts) const {
        const bool last = atomicAdd(arrived, 1u) == unsigned(parts) - 1;
        if (last) atomicExch(arrived, 0u);
        return last;
    }

    // Moves the sums of some columns to Y, and leaves the scratch as it was: zero.
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
// Loads a float if it is there, and is 0 if not. In PTX, because the compiler would make a branch
// of it, behind which copies of the loaded register wait for the load.
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
