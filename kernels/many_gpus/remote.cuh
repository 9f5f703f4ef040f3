// Rows of a matrix that is distributed over several GPUs, and functions that fetch a row. Each GPU
// can read the others' memory (NVLink, in one process or as symmetric memory). The emulator gives
// each of its devices separate arrays.
//
// A 32-bit word names a row: its low row_bits bits are the number of the row on its GPU, its high
// bits the number of the GPU.
//
// The including file's Config defines
//   n_devices   GPUs, 1 to 8
//   row_bits    bits of a row's number, 29 to 31
#pragma once

#include "async_copy.cuh"
#include "common.cuh"

constexpr int MOST_DEVICES = 8;

// Pointers to each GPU's rows. Kernels take eight pointers, because an array of pointers would cost
// a load before each load. Pointers beyond the last device are unused.
template <typename T>
struct Peers {
    const T *of[MOST_DEVICES];

    // Returns the first element of the row that `word` names. A row has `length` elements.
    DEVICE_INLINE const T *row(unsigned word, int length) const {
        const int owner = int((unsigned long long)word >> Config::row_bits);
        const T *base = of[0];
#pragma unroll
        for (int device = 1; device < Config::n_devices; ++device) {
            if (owner == device) base = of[device];
        }
        return base + (long long)(word & ((1u << Config::row_bits) - 1)) * length;
    }
};

// Starts copying a row to shared memory by `workers` threads: a thread, a warp or a block. This is
// thread number `worker`. Neighboring threads copy neighboring elements. The row is complete after
// `await_row`, followed by a barrier if other threads read it.
DEVICE_INLINE void begin_row(float *shared, const float *row, int length, int worker, int workers) {
    for (int i = worker; i < length; i += workers) copy_async(&shared[i], &row[i]);
    close_copies();  // one group of asynchronous copies per thread
}

DEVICE_INLINE void await_row() {
    await_copies<0>();
}
