// Product of bit matrices in shared memory by a warpgroup: kernels/bits/lines.cuh in the emulator.
#pragma once

template <int COUNT>
inline void multiply_b1(int (&c)[COUNT], const uint4 *a, const uint4 *b, int step) {
    const int lane = int(threadIdx.x) % WARP_SIZE;
    const int first_row = int(threadIdx.x) / WARP_SIZE % GROUP_WARPS * 16;
    for (int quad = step * STEP_QUADS; quad < (step + 1) * STEP_QUADS; ++quad) {
        uint4 rows[2];
        for (int r = 0; r < 2; ++r) {
            rows[r] = a[swizzled(first_row + element_of_c(lane, 2 * r).row, quad)];
        }
        for (int i = 0; i < COUNT; i += 4) {
            for (int r = 0; r < 2; ++r) {
                const int line = i / 4 * 8 + element_of_c(lane, r).column;
                const uint4 column = b[swizzled(line, quad)];
                for (int half = 0; half < 2; ++half) {
                    const uint4 &row = rows[half];
                    c[i + 2 * half + r] += __popc(row.x & column.x) + __popc(row.y & column.y) +
                                           __popc(row.z & column.z) + __popc(row.w & column.w);
                }
            }
        }
    }
}
