// Rows of a matrix that is dealt out to several GPUs, each of which may read the others' memory
// (NVLink, in one process or as symmetric memory), and the ways to fetch one. The emulator has the
// same: each pretended GPU's part is memory of its own.
//
// The including file has
//   n_devices   GPUs, 1 to 8
//   row_bits    bits of a word that say which row; those above say whose
#pragma once

#include "async_copy.cuh"
#include "common.cuh"

constexpr int MOST_DEVICES = 8;

// Where each GPU has its rows. Kernels take eight pointers, as a pointer to pointers would cost a
// load before each load; those beyond the last device are not used.
template <typename T>
struct Peers {
    const T *of[MOST_DEVICES];

    // The first element of the row that a word names; `length` elements to a row.
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

// Begins to copy a row to shared memory, by those `workers` threads of which this is number
// `worker`: a thread, a warp or a block. Neighboring threads copy neighboring elements. All that
// they fetch is there after `await_row`, and a barrier of those who read what others have fetched.
DEVICE_INLINE void begin_row(float *shared, const float *row, int length, int worker, int workers) {
    for (int i = worker; i < length; i += workers) copy_async(&shared[i], &row[i]);
    close_copies();
}

DEVICE_INLINE void await_row() {
    await_copies<0>();
}
