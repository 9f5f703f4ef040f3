// Tensor cores: products of small matrices by one warp, C += A B, one device function per shape.
//
// A is M x K, B is K x N, C is M x N, with M = 16 (8 in `mma_b1_k128`) and N = 8. A lane's
// fragment is its share of a matrix, in 32-bit registers; `element_of_a`, `_b` and `_c` return
// which elements these are. All 32 lanes must call together. Each function is one PTX instruction;
// the emulator's versions are in accelviz/emulator/host/include/instructions/fragments.h.
//
//   function        A and B     K    registers of a lane: A, B, C    C
//   mma_tf32_k4     TF32        4    2, 1, 4                         float
//   mma_tf32_k8     TF32        8    4, 2, 4                         float
//   mma_f16_k16     float16    16    4, 2, 4                         float
//   mma_bf16_k16    bfloat16   16    4, 2, 4                         float
//   mma_s8_k32      int8       32    4, 2, 4                         int
//   mma_s4_k64      4 bits     64    4, 2, 4                         int
//   mma_b1_k256     1 bit     256    4, 2, 4                         int
//   mma_b1_k128     1 bit     128    1, 1, 2                         int
//
// A register holds one TF32 number, two of 16 bits, four of 8, eight of 4 or 32 single bits; the
// first is in the lowest bits. Single bits are multiplied by AND and their products counted. TF32
// is float32 with 10 bits of mantissa: tensor cores read the upper 19 bits of a register and ignore
// the others, so that a plain float is truncated. `to_tf32` rounds it first.
#pragma once

#include "common.cuh"
#include "conversions.cuh"

struct Element {
    int row, column;
};

// Row and column of the element that lane `lane` holds at index `part` of register `r`. `parts` is
// the number of elements in a register: 1 of TF32, 2 of 16 bits, 4 of 8 bits, 8 of 4, 32 of one.
__host__ __device__ __forceinline__ constexpr Element element_of_a(int lane, int r, int part,
                                                                   int parts) {
    return {lane / 4 + 8 * (r % 2), (lane % 4 + 4 * (r / 2)) * parts + part};
}
__host__ __device__ __forceinline__ constexpr Element element_of_b(int lane, int r, int part,
                                                                   int parts) {
    return {(lane % 4 + 4 * r) * parts + part, lane / 4};
}
__host__ __device__ __forceinline__ constexpr Element element_of_c(int lane, int r) {
    return {lane / 4 + 8 * (r / 2), 2 * (lane % 4) + r % 2};
}

// Splits x into high + low, both TF32. The lower 13 bits of `high` are undefined, because tensor
// cores do not read them.
DEVICE_INLINE void split(float x, unsigned &high, unsigned &low) {
    high = __float_as_uint(x) + 0x1000u;
    low = __float_as_uint(x - __uint_as_float(high & 0xffffe000u));
}

#ifdef EMULATOR
#include "instructions/fragments.h"
#else
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#error "tensor cores know TF32 and bfloat16 from compute capability 8.0 (sm_80) on"
#endif

// Loads four matrices of 8 rows of 16 bytes from shared memory. `row` of lane i is the address of
// row i % 8 of matrix i / 8. A lane receives word lane % 4 of row lane / 4 of each matrix: one
// register of a fragment per matrix.
DEVICE_INLINE void load_matrices(unsigned (&words)[4], const uint4 *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(unsigned(__cvta_generic_to_shared(row))));
}

// Splits like `split`, with the conversion instruction of compute capability 9.0: one instruction
// fewer, and ties go to even.
DEVICE_INLINE void split_to_even(float x, unsigned &high, unsigned &low) {
#if __CUDA_ARCH__ >= 900
    asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(high) : "f"(x));
    low = __float_as_uint(x - __uint_as_float(high));
#else
    split(x, high, low);
#endif
}

// Returns the same bits. Prevents the compiler from recomputing them at each use.
DEVICE_INLINE unsigned opaque(unsigned bits) {
    asm volatile("" : "+r"(bits));
    return bits;
}

// Rounds to the nearest TF32, ties away from zero. The lower 13 bits of the result are zero.
DEVICE_INLINE unsigned to_tf32(float x) {
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return bits;
}

DEVICE_INLINE void mma_tf32_k4(float (&c)[4], const unsigned (&a)[2], const unsigned (&b)[1]) {
    asm("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 "
        "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(b[0]));
}

#define MMA_OF_FOUR(NAME, SHAPE_AND_TYPES, C, LETTER)                                   \
    DEVICE_INLINE void NAME(C(&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) { \
        asm("mma.sync.aligned." SHAPE_AND_TYPES                                         \
            " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"          \
            : "+" LETTER(c[0]), "+" LETTER(c[1]), "+" LETTER(c[2]), "+" LETTER(c[3])    \
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));        \
    }
MMA_OF_FOUR(mma_tf32_k8, "m16n8k8.row.col.f32.tf32.tf32.f32", float, "f")
MMA_OF_FOUR(mma_f16_k16, "m16n8k16.row.col.f32.f16.f16.f32", float, "f")
MMA_OF_FOUR(mma_bf16_k16, "m16n8k16.row.col.f32.bf16.bf16.f32", float, "f")
MMA_OF_FOUR(mma_s8_k32, "m16n8k32.row.col.s32.s8.s8.s32", int, "r")
MMA_OF_FOUR(mma_s4_k64, "m16n8k64.row.col.s32.s4.s4.s32", int, "r")
MMA_OF_FOUR(mma_b1_k256, "m16n8k256.row.col.s32.b1.b1.s32.and.popc", int, "r")
#undef MMA_OF_FOUR

DEVICE_INLINE void mma_b1_k128(int (&c)[2], const unsigned (&a)[1], const unsigned (&b)[1]) {
    asm("mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.and.popc {%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+r"(c[0]), "+r"(c[1])
        : "r"(a[0]), "r"(b[0]));
}
#endif
