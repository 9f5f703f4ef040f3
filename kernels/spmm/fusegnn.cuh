// What fuseGNN's kernels share: reductions in shared memory (ICCAD 2020, section 5.2). The
// including file has block_threads.
#pragma once

#include "common.cuh"

// Group reduce: adds the other groups' entries of `buffer` to the first group's, of `size` entries
// each. An even number of groups is halved; of an odd number, the last is added to the first.
DEVICE_INLINE void group_reduce(float *buffer, int groups, int thread, int size) {
    while (groups > 1) {
        const int moved = groups % 2 == 0 ? groups / 2 : 1;
        groups -= moved;
        __syncthreads();
        if (thread < moved * size) buffer[thread] += buffer[groups * size + thread];
    }
}

// Block-wide reduce: the sum of an entry of each thread ends in buffer[0].
DEVICE_INLINE void block_reduce(float *buffer, int thread) {
    group_reduce(buffer, Config::block_threads, thread, 1);
}
