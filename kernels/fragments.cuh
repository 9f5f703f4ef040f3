// Tensor cores: a warp's product of small matrices, C += A B, one device function a shape.
//
// A is M x K, B is K x N, C is M x N, with M = 16 (of `mma_b1_k128` 8) and N = 8. Each lane holds
// some elements of each in 32-bit registers, its fragment; `element_of_a`, `_b`, `_c` say which.
// All 32 lanes call together. On a GPU the body is one PTX instruction; for the emulator it is C++,
// below.
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
// first lies in the lowest bits. A product of bits is their AND, and the sum counts the ones. TF32
// is float32 with 10 bits of mantissa: tensor cores read the upper 19 bits of a register and ignore
// the others, so that a plain float is truncated. `to_tf32` rounds it first.
#pragma once

#include "common.cuh"

struct Element {
    int row, column;
};

// Which element lane `lane` holds in part `part` of register `r`; `parts` are in a register: 1 of
// TF32, 2 of 16 bits, 4 of 8 bits, 8 of 4, 32 of one.
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

// Loads four matrices of 8 rows of 16 bytes from shared memory: lane i says where row i % 8 of
// matrix i / 8 is, and gets word lane % 4 of row lane / 4 of each. That is a register of a fragment
// each.
__device__ __forceinline__ void load_matrices(unsigned (&words)[4], const uint4 *row) {
#ifdef __CUDACC__
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(unsigned(__cvta_generic_to_shared(row))));
#else
    const int lane = int(threadIdx.x) % WARP_SIZE;
    for (int i = 0; i < 4; ++i) {
        const auto from =
            __shfl_sync(~0u, reinterpret_cast<unsigned long long>(row), 8 * i + lane / 4);
        words[i] = reinterpret_cast<const unsigned *>(from)[lane % 4];
    }
#endif
}

// x = high + low, both TF32: what a tensor core does not read of `high`, its lower 13 bits, is left
// as it comes.
__device__ __forceinline__ void split(float x, unsigned &high, unsigned &low) {
    high = __float_as_uint(x) + 0x1000u;
    low = __float_as_uint(x - __uint_as_float(high & 0xffffe000u));
}

// The same by the conversion that GPUs have from compute capability 9.0 on: an instruction less,
// halfway cases to even.
__device__ __forceinline__ void split_to_even(float x, unsigned &high, unsigned &low) {
#ifdef __CUDA_ARCH__
#if __CUDA_ARCH__ >= 900
    asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(high) : "f"(x));
    low = __float_as_uint(x - __uint_as_float(high));
#else
    split(x, high, low);
#endif
#else
    high = (__float_as_uint(x) + 0xfffu + (__float_as_uint(x) >> 13 & 1u)) & 0xffffe000u;
    low = __float_as_uint(x - __uint_as_float(high));
#endif
}

// The same bits, which the compiler may not work out anew at each use.
__device__ __forceinline__ unsigned kept(unsigned bits) {
#ifdef __CUDACC__
    asm volatile("" : "+r"(bits));
#endif
    return bits;
}

#ifdef __CUDACC__
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#error "tensor cores know TF32 and bfloat16 from compute capability 8.0 (sm_80) on"
#endif

// The nearest TF32; halfway cases go away from zero. The lower 13 bits of the result are zero.
__device__ __forceinline__ unsigned to_tf32(float x) {
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return bits;
}

// Two float16, to the nearest, halfway cases to even; the first lies in the lower bits.
__device__ __forceinline__ unsigned to_f16(float first, float second) {
    unsigned bits;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(second), "f"(first));
    return bits;
}

__device__ __forceinline__ void mma_tf32_k4(float (&c)[4], const unsigned (&a)[2],
                                            const unsigned (&b)[1]) {
    asm("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 "
        "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(b[0]));
}

#define MMA_OF_FOUR(NAME, SHAPE_AND_TYPES, C, LETTER)                                \
    __device__ __forceinline__ void NAME(C(&c)[4], const unsigned (&a)[4],           \
                                         const unsigned (&b)[2]) {                   \
        asm("mma.sync.aligned." SHAPE_AND_TYPES                                      \
            " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"       \
            : "+" LETTER(c[0]), "+" LETTER(c[1]), "+" LETTER(c[2]), "+" LETTER(c[3]) \
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));     \
    }
MMA_OF_FOUR(mma_tf32_k8, "m16n8k8.row.col.f32.tf32.tf32.f32", float, "f")
MMA_OF_FOUR(mma_f16_k16, "m16n8k16.row.col.f32.f16.f16.f32", float, "f")
MMA_OF_FOUR(mma_bf16_k16, "m16n8k16.row.col.f32.bf16.bf16.f32", float, "f")
MMA_OF_FOUR(mma_s8_k32, "m16n8k32.row.col.s32.s8.s8.s32", int, "r")
MMA_OF_FOUR(mma_s4_k64, "m16n8k64.row.col.s32.s4.s4.s32", int, "r")
MMA_OF_FOUR(mma_b1_k256, "m16n8k256.row.col.s32.b1.b1.s32.and.popc", int, "r")
#undef MMA_OF_FOUR

__device__ __forceinline__ void mma_b1_k128(int (&c)[2], const unsigned (&a)[1],
                                            const unsigned (&b)[1]) {
    asm("mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.and.popc {%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+r"(c[0]), "+r"(c[1])
        : "r"(a[0]), "r"(b[0]));
}

#else  // the emulator
#include <cuda_fp16.h>

// Infinities stay, and a NaN loses its lower bits.
EMULATOR_PURE unsigned to_tf32(float x) {
    const unsigned bits = __float_as_uint(x);
    const bool finite = (bits & 0x7f800000u) != 0x7f800000u;
    return (bits + (finite ? 0x1000u : 0u)) & 0xffffe000u;
}

EMULATOR_PURE unsigned to_f16(float first, float second) {
    const unsigned low = __half_as_ushort(__float2half_rn(first));
    return low | unsigned(__half_as_ushort(__float2half_rn(second))) << 16;
}

namespace fragments {

struct Tf32 {
    static constexpr int parts = 1;
    static EMULATOR_PURE double value(unsigned bits, int) {
        return __uint_as_float(bits & 0xffffe000u);
    }
};
struct Half {
    static constexpr int parts = 2;
    static EMULATOR_PURE double value(unsigned bits, int part) {
        const unsigned half = bits >> 16 * part;
        // The exponent's bias differs by 112; infinity and NaN keep all its bits set.
        const unsigned magnitude = (half & 0x7fffu) << 13;
        const float wide = (half & 0x7c00u) == 0x7c00u ? __uint_as_float(magnitude | 0x7f800000u)
                                                       : __uint_as_float(magnitude) * 0x1p112f;
        return half & 0x8000u ? -wide : wide;
    }
};
struct Bfloat {
    static constexpr int parts = 2;
    static EMULATOR_PURE double value(unsigned bits, int part) {
        return __uint_as_float(bits >> 16 * part << 16);
    }
};
struct Int8 {
    static constexpr int parts = 4;
    static EMULATOR_PURE double value(unsigned bits, int part) {
        return (signed char)(bits >> 8 * part);
    }
};

struct Int4 {
    static constexpr int parts = 8;
    static EMULATOR_PURE double value(unsigned bits, int part) {
        return int(bits << (28 - 4 * part)) >> 28;
    }
};
struct Bit {
    static constexpr int parts = 32;
};

// What a lane brings.
template <int A, int B>
struct Brought {
    unsigned a[A], b[B];
};

// Of a number that is not zero, as the power of two.
EMULATOR_PURE int exponent(double x) {
    return int(emulator::bits<std::uint64_t>(x) >> 52 & 0x7ff) - 1023;
}
EMULATOR_PURE double power_of_two(int exponent) {
    return emulator::bits<double>(std::uint64_t(exponent + 1023) << 52);
}

// One element of C, as an H200 sums it, bit for bit (docs/tensor-cores.md). Products are exact. All
// terms, c among them, are cut off two bits below the last bit that float32 has for the largest
// exponent; the exponent of a product is the sum of its factors'. The sum is cut off to float32.
template <int N>
EMULATOR_PURE float total(float c, const double (&a)[N], const double (&b)[N]) {
    constexpr int kept = 23 + 2, none = -10000;
    int top = c != 0 ? exponent(c) : none;
    double plain = c;
    for (int k = 0; k < N; ++k) {
        plain += a[k] * b[k];
        if (a[k] != 0 && b[k] != 0) top = max(top, exponent(a[k]) + exponent(b[k]));
    }
    if (top == none || !__builtin_isfinite(plain)) return float(plain);
    const double scale = power_of_two(kept - top);
    long long sum = (long long)(c * scale);
    for (int k = 0; k < N; ++k) sum += (long long)(a[k] * b[k] * scale);
    const double exact = double(sum) * power_of_two(top - kept);
    const float near = float(exact);
    return __builtin_fabs(near) > __builtin_fabs(exact) ? __builtin_nextafterf(near, 0) : near;
}
template <int N>
EMULATOR_PURE int total(int c, const double (&a)[N], const double (&b)[N]) {
    unsigned sum = unsigned(c);
    for (int k = 0; k < N; ++k) sum += unsigned(int(a[k] * b[k]));
    return int(sum);
}

// An element of C, of the registers that hold its row of A and its column of B.
template <typename T, typename C, int N>
EMULATOR_PURE C summed(C c, const unsigned (&row)[N], const unsigned (&column)[N]) {
    if constexpr (T::parts == 32) {
        for (int r = 0; r < N; ++r) c += __popc(row[r] & column[r]);
        return c;
    } else {
        double a[N * T::parts], b[N * T::parts];
        for (int k = 0; k < N * T::parts; ++k) {
            a[k] = T::value(row[k / T::parts], k % T::parts);
            b[k] = T::value(column[k / T::parts], k % T::parts);
        }
        return total(c, a, b);
    }
}

template <typename T, typename C, int N, int A, int B>
EMULATOR_PURE void multiply(C (&c)[N], const unsigned (&a)[A], const unsigned (&b)[B], void *code) {
    constexpr int halves = A / B;  // of the rows of A, 8 each, as B has columns
    static_assert(A == halves * B && N == 2 * halves, "registers of one shape");
    Brought<A, B> mine[32];  // that of lane 0 is everyone's
    const auto address =
        emulator::exchange(~0u, reinterpret_cast<std::uint64_t>(mine), 0, false, nullptr, code);
    auto *brought = reinterpret_cast<Brought<A, B> *>(address);
    const int lane = int(emulator::lane());
    for (int r = 0; r < A; ++r) brought[lane].a[r] = a[r];
    for (int r = 0; r < B; ++r) brought[lane].b[r] = b[r];
    emulator::exchange(~0u, 0, -1, false, nullptr, code);
    for (int i = 0; i < N; ++i) {
        const Element at = element_of_c(lane, i);
        unsigned row[4 * B], column[4 * B];
        // A register of A for its rows and one of B cover the same elements.
        for (int r = 0; r < B; ++r) {
            for (int quarter = 0; quarter < 4; ++quarter) {
                const auto &of_a = brought[at.row % 8 * 4 + quarter].a;
                row[4 * r + quarter] = of_a[halves * r + at.row / 8];
                column[4 * r + quarter] = brought[at.column * 4 + quarter].b[r];
            }
        }
        c[i] = summed<T>(c[i], row, column);
    }
    emulator::exchange(~0u, 0, -1, false, nullptr, code);
}

}  // namespace fragments

#define MMA_OF_LANES(NAME, T, C, A, B)                                              \
    EMULATOR_INSTRUCTION inline void NAME(C(&c)[2 * A / B], const unsigned (&a)[A], \
                                          const unsigned (&b)[B]) {                 \
        fragments::multiply<fragments::T>(c, a, b, EMULATOR_HERE);                  \
    }
MMA_OF_LANES(mma_tf32_k4, Tf32, float, 2, 1)
MMA_OF_LANES(mma_tf32_k8, Tf32, float, 4, 2)
MMA_OF_LANES(mma_f16_k16, Half, float, 4, 2)
MMA_OF_LANES(mma_bf16_k16, Bfloat, float, 4, 2)
MMA_OF_LANES(mma_s8_k32, Int8, int, 4, 2)
MMA_OF_LANES(mma_s4_k64, Int4, int, 4, 2)
MMA_OF_LANES(mma_b1_k256, Bit, int, 4, 2)
MMA_OF_LANES(mma_b1_k128, Bit, int, 1, 1)
#undef MMA_OF_LANES

#endif
