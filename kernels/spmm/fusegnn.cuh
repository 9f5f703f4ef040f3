// Reductions in shared memory of fuseGNN's kernels (ICCAD 2020, section 5.2). The including file's
// Config defines block_threads.
#pragma once

#include "common.cuh"

// Group reduce: adds the entries of all groups to those of the first group, `size` entries each. If
// the number of groups is even, the upper half is added to the lower; else the last to the first.
DEVICE_INLINE void group_reduce(float *buffer, int groups, int thread, int size) {
    while (groups > 1) {
        const int moved = groups % 2 == 0 ? groups / 2 : 1;
        groups -= moved;
        __syncthreads();
        if (thread < moved * size) buffer[thread] += buffer[groups * size + thread];
    }
}

// Block-wide reduce: adds one entry per thread; the sum is in buffer[0].
DEVICE_INLINE void block_reduce(float *buffer, int thread) {
    group_reduce(buffer, Config::block_threads, thread, 1);
}
