// How the threads of a block go through a matrix, element after element, without a division each.
#pragma once

#include "common.cuh"

template <int THREADS>
struct Walk {
    int row, column;

    // `columns` are 1 or more.
    DEVICE_INLINE explicit Walk(int columns)
        : row(int(threadIdx.x) / columns),
          column(int(threadIdx.x) % columns),
          rows_on(THREADS / columns),
          columns_on(THREADS % columns),
          width(columns) {
    }
    DEVICE_INLINE void go_on() {
        row += rows_on;
        column += columns_on;
        if (column >= width) {
            column -= width;
            ++row;
        }
    }

   private:
    int rows_on, columns_on, width;
};
