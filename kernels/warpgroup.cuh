// Tensor cores by warpgroup: four warps multiply matrices, C += A B, asynchronously.
// `multiply_tf32` starts a product; fences and waits are those of PTX's `wgmma`, an instruction
// of Hopper (sm_90a). Other GPUs and the emulator multiply synchronously.
//
// Warp w has rows 16 w to 16 w + 15 of A and C. C consists of tiles of 8 columns: registers 4 j to
// 4 j + 3 of a lane belong to tile j, in the order of `element_of_c` (fragments.cuh).
#pragma once

#include "fragments.cuh"

constexpr int GROUP_WARPS = 4;
constexpr int GROUP_ROWS = 64;

// Index of an element of B, 8 x columns, among the floats of a TF32 product in shared memory. Eight
// columns by four rows of K are 128 bytes and use all banks once.
__host__ __device__ __forceinline__ constexpr int place_in_b(int k, int column) {
    return column / 8 * 64 + k / 4 * 32 + column % 8 * 4 + k % 4;
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// Registers of C in an instruction's text, and as its input and output operands.
#define GROUP_LIST_8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define GROUP_LIST_16 GROUP_LIST_8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define GROUP_LIST_24 GROUP_LIST_16 ", %16, %17, %18, %19, %20, %21, %22, %23"
#define GROUP_LIST_32 GROUP_LIST_24 ", %24, %25, %26, %27, %28, %29, %30, %31"
#define GROUP_LIST_40 GROUP_LIST_32 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define GROUP_LIST_48 GROUP_LIST_40 ", %40, %41, %42, %43, %44, %45, %46, %47"
#define GROUP_LIST_56 GROUP_LIST_48 ", %48, %49, %50, %51, %52, %53, %54, %55"
#define GROUP_LIST_64 GROUP_LIST_56 ", %56, %57, %58, %59, %60, %61, %62, %63"
#define GROUP_HOLD_4(T, I) T(c[I]), T(c[I + 1]), T(c[I + 2]), T(c[I + 3])
#define GROUP_HOLD_8(T, I) GROUP_HOLD_4(T, I), GROUP_HOLD_4(T, I + 4)
#define GROUP_HOLD_16(T, I) GROUP_HOLD_8(T, I), GROUP_HOLD_8(T, I + 8)
#define GROUP_HOLD_32(T, I) GROUP_HOLD_16(T, I), GROUP_HOLD_16(T, I + 16)
#define GROUP_HOLD_64(T, I) GROUP_HOLD_32(T, I), GROUP_HOLD_32(T, I + 32)

// A is in registers, as for `mma_tf32_k8`. B is in shared memory: groups of four rows of K are 128
// bytes apart, groups of eight columns 256.
#define MULTIPLY(COLUMNS, SUMS, A, B)                                                            \
    DEVICE_INLINE void multiply_tf32(float (&c)[SUMS], const unsigned (&a)[4], const float *b) { \
        const unsigned at = unsigned(__cvta_generic_to_shared(b));                               \
        asm volatile("wgmma.mma_async.sync.aligned.m64n" #COLUMNS                                \
                     "k8.f32.tf32.tf32 {" GROUP_LIST_##SUMS "}, {" A "}, " B ", 1, 1, 1;"        \
                     : GROUP_HOLD_##SUMS("+f", 0)                                                \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]),                               \
                       "l"(at >> 4 | 8ull << 16 | 16ull << 32));                                 \
    }
MULTIPLY(16, 8, "%8, %9, %10, %11", "%12")
MULTIPLY(32, 16, "%16, %17, %18, %19", "%20")
MULTIPLY(64, 32, "%32, %33, %34, %35", "%36")
MULTIPLY(128, 64, "%64, %65, %66, %67", "%68")
#undef MULTIPLY

// Fence before the first product, and after other instructions have written its registers.
DEVICE_INLINE void begin_products() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

// Commits the products since the last call as one group.
DEVICE_INLINE void close_products() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Waits until at most LEFT of the latest groups are unfinished.
template <int LEFT>
DEVICE_INLINE void await_products() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
}

// Makes this thread's writes to shared memory visible to products that start after a barrier.
DEVICE_INLINE void show_to_products() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Keeps the compiler from using finished registers before this point.
DEVICE_INLINE void hold(float &x) {
    asm volatile("" : "+f"(x)::"memory");
}
template <typename T>
DEVICE_INLINE void hold(T &x) {
    asm volatile("" : "+r"(x)::"memory");
}
template <typename T, int N>
DEVICE_INLINE void settle(T (&registers)[N]) {
#pragma unroll
    for (int i = 0; i < N; ++i) hold(registers[i]);
}

#else

template <int SUMS>
DEVICE_INLINE void multiply_tf32(float (&c)[SUMS], const unsigned (&a)[4], const float *b) {
    const int lane = int(threadIdx.x) % WARP_SIZE;
#pragma unroll
    for (int i = 0; i < SUMS; i += 4) {
        unsigned column[2];
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            const Element at = element_of_b(lane, r, 0, 1);
            column[r] = __float_as_uint(b[place_in_b(at.row, i / 4 * 8 + at.column)]);
        }
        float tile[4] = {c[i], c[i + 1], c[i + 2], c[i + 3]};
        mma_tf32_k8(tile, a, column);
#pragma unroll
        for (int r = 0; r < 4; ++r) c[i + r] = tile[r];
    }
}

DEVICE_INLINE void begin_products() {
}
DEVICE_INLINE void close_products() {
}
template <int LEFT>
DEVICE_INLINE void await_products() {
}
DEVICE_INLINE void show_to_products() {
}
template <typename T, int N>
DEVICE_INLINE void settle(T (&)[N]) {
}

#endif
