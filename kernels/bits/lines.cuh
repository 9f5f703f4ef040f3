// Products of bit matrices in shared memory by warpgroup (Hopper, sm_90a).
//
// A has 64 lines and B has 8, 128 or 256: rows of A, columns of B. A line in shared memory is 8
// quads of 16 bytes, 1,024 bits; a product uses 256 of them, a step. Quad q of line l is stored at
// quad q ^ (l % 8) of its line ("128-byte swizzle"), so that eight lines use all banks. The first
// line must begin at a multiple of 1,024 bytes.
#pragma once

#include "warpgroup.cuh"

constexpr int LINE_QUADS = 8;                 // quads per line
constexpr int STEP_QUADS = 2;                 // quads of a line per product
constexpr int GROUP_LINES = 128;              // lines of B
constexpr int GROUP_TILES = GROUP_LINES / 8;  // tiles of 8 columns
constexpr int GROUP_SUMS = 4 * GROUP_TILES;   // registers of a lane for C
constexpr int LINES_ALIGNMENT = 1024;

DEVICE_INLINE int swizzled(int line, int quad) {
    return line * LINE_QUADS + (quad ^ line % 8);
}

#ifdef EMULATOR
#include "instructions/lines.h"
#else
#if defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM90_ALL)
#error "products by warpgroup are of Hopper alone: compile for sm_90a"
#endif

// Returns the instruction's descriptor of a matrix: address, 1,024 bytes between groups of eight
// lines, 128-byte swizzle. The second field is ignored with that swizzle.
DEVICE_INLINE unsigned long long descriptor(const uint4 *lines) {
    const unsigned address = unsigned(__cvta_generic_to_shared(lines));
    return address >> 4 | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

DEVICE_INLINE void multiply_b1(int (&c)[GROUP_SUMS], const uint4 *a, const uint4 *b, int step) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k256.s32.b1.b1.and.popc {" GROUP_LIST_64
                 "}, %64, %65, 1;"
                 : GROUP_HOLD_64("+r", 0)
                 : "l"(descriptor(a) + step * STEP_QUADS), "l"(descriptor(b) + step * STEP_QUADS));
}

// The same with eight lines of B.
DEVICE_INLINE void multiply_b1(int (&c)[4], const uint4 *a, const uint4 *b, int step) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.and.popc {%0, %1, %2, %3}, %4, %5, 1;"
        : GROUP_HOLD_4("+r", 0)
        : "l"(descriptor(a) + step * STEP_QUADS), "l"(descriptor(b) + step * STEP_QUADS));
}

// The same with 256 lines of B: A is read once for all of them.
DEVICE_INLINE void multiply_b1(int (&c)[2 * GROUP_SUMS], const uint4 *a, const uint4 *b, int step) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n256k256.s32.b1.b1.and.popc {" GROUP_LIST_64
                 ", "
                 "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
                 "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
                 "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, "
                 "%110, %111, "
                 "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, "
                 "%125, %126, %127}, "
                 "%128, %129, 1;"
                 : GROUP_HOLD_64("+r", 0), GROUP_HOLD_64("+r", 64)
                 : "l"(descriptor(a) + step * STEP_QUADS), "l"(descriptor(b) + step * STEP_QUADS));
}
#endif
