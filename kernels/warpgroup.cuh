// Tensor cores by warpgroup (Hopper, sm_90a): four warps multiply matrices that lie in shared
// memory, C += A B, while they do something else. `multiply_b1` begins a product; fences and waits
// are as PTX has them for `wgmma`. The emulator multiplies at once.
//
// A has 64 lines and B 128 or 256, its columns; a line lies in shared memory as 8 quads of 16
// bytes, 1,024 bits, of which a product takes the 256 of a step. Quad q of line l is at the place q
// ^ (l % 8) of its line ("128-byte swizzle"), so that eight lines lie in all banks; the first line
// begins at a multiple of 1,024 bytes.
//
// Warp w has the rows 16 w to 16 w + 15 of C, in tiles of 8 columns: registers 4 j to 4 j + 3 of
// a lane are tile j's, as `element_of_c` of fragments.cuh says.
#pragma once

#include "fragments.cuh"

#define LINE_QUADS 8  // of a line
#define STEP_QUADS 2  // that a product takes
#define GROUP_WARPS 4
#define GROUP_ROWS 64
#define GROUP_LINES 128                // of B
#define GROUP_TILES (GROUP_LINES / 8)  // of 8 columns
#define GROUP_SUMS (4 * GROUP_TILES)   // registers of a lane
#define LINES_ALIGNMENT 1024

__device__ __forceinline__ int swizzled(int line, int quad) {
    return line * LINE_QUADS + (quad ^ line % 8);
}

#ifdef __CUDACC__
#if defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM90_ALL)
#error "products by warpgroup are of Hopper alone: compile for sm_90a"
#endif

// Where lines lie, as the instruction wants it: address, 1,024 bytes from one eight to the next,
// swizzle of 128 bytes. The second field is not read with that swizzle.
__device__ __forceinline__ unsigned long long descriptor(const uint4 *lines) {
    const unsigned at = unsigned(__cvta_generic_to_shared(lines));
    return at >> 4 | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

#define FOUR(I) "+r"(c[I]), "+r"(c[I + 1]), "+r"(c[I + 2]), "+r"(c[I + 3])
#define SIXTEEN(I) FOUR(I), FOUR(I + 4), FOUR(I + 8), FOUR(I + 12)
#define SIXTY_FOUR(I) SIXTEEN(I), SIXTEEN(I + 16), SIXTEEN(I + 32), SIXTEEN(I + 48)
__device__ __forceinline__ void multiply_b1(int (&c)[GROUP_SUMS], const uint4 *a, const uint4 *b,
                                            int step) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n128k256.s32.b1.b1.and.popc "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
        "%64, %65, 1;"
        : SIXTY_FOUR(0)
        : "l"(descriptor(a) + step * STEP_QUADS), "l"(descriptor(b) + step * STEP_QUADS));
}

// The same with 256 lines of B: those of A are read once for all.
__device__ __forceinline__ void multiply_b1(int (&c)[2 * GROUP_SUMS], const uint4 *a,
                                            const uint4 *b, int step) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n256k256.s32.b1.b1.and.popc "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
        "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
        "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
        "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, "
        "%111, "
        "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, "
        "%127}, "
        "%128, %129, 1;"
        : SIXTY_FOUR(0), SIXTY_FOUR(64)
        : "l"(descriptor(a) + step * STEP_QUADS), "l"(descriptor(b) + step * STEP_QUADS));
}
#undef SIXTY_FOUR
#undef SIXTEEN
#undef FOUR

// Before the first product, and after other instructions have written its sums.
__device__ __forceinline__ void begin_products() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

// Closes the group of products begun since the last call.
__device__ __forceinline__ void close_products() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Waits until no more than LEFT groups, the last ones, are under way.
template <int LEFT>
__device__ __forceinline__ void await_products() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
}

// What this thread has written to shared memory, products that follow a barrier see.
__device__ __forceinline__ void show_to_products() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Sums that have been waited for: no instruction that reads them moves before this.
template <int COUNT>
__device__ __forceinline__ void settle(int (&c)[COUNT]) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) asm volatile("" : "+r"(c[i])::"memory");
}

#else  // the emulator

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
inline void begin_products() {
}
inline void close_products() {
}
template <int LEFT>
inline void await_products() {
}
inline void show_to_products() {
}
template <int COUNT>
inline void settle(int (&)[COUNT]) {
}

#endif
