// Matrix instructions of tensor cores: the functions of kernels/fragments.cuh for the emulator.
#pragma once

#include "conversions.h"
#include "sums.h"

inline void load_matrices(unsigned (&words)[4], const uint4 *row) {
    const int lane = int(threadIdx.x) % WARP_SIZE;
    for (int i = 0; i < 4; ++i) {
        const auto from =
            __shfl_sync(~0u, reinterpret_cast<unsigned long long>(row), 8 * i + lane / 4);
        words[i] = reinterpret_cast<const unsigned *>(from)[lane % 4];
    }
}

EMULATOR_PURE void split_to_even(float x, unsigned &high, unsigned &low) {
    high = (__float_as_uint(x) + 0xfffu + (__float_as_uint(x) >> 13 & 1u)) & 0xffffe000u;
    low = __float_as_uint(x - __uint_as_float(high));
}

EMULATOR_PURE unsigned opaque(unsigned bits) { return bits; }

EMULATOR_PURE unsigned to_tf32(float x) { return fragments::rounded_to_tf32(x); }

namespace fragments {

enum Number { TF32, HALF, BFLOAT, INT8, INT4, BIT };
constexpr int parts[] = {1, 2, 2, 4, 8, 32};  // elements in a register

template <Number T>
EMULATOR_PURE double value(unsigned bits, int part) {
    switch (T) {
        case TF32: return __uint_as_float(bits & 0xffffe000u);
        case HALF: return float16_value(bits >> 16 * part);
        case BFLOAT: return __uint_as_float(bits >> 16 * part << 16);
        case INT8: return std::int8_t(bits >> 8 * part);
        case INT4: return int(bits << (28 - 4 * part)) >> 28;
        case BIT: return bits >> part & 1;
    }
}

// The registers of a lane that hold its elements of the matrices A and B.
template <int A, int B>
struct Registers {
    unsigned a[A], b[B];
};

// c plus the dot product of a row of A and a column of B, given by their registers.
template <Number T, typename C, int N>
EMULATOR_PURE C summed(C c, const unsigned (&row)[N], const unsigned (&column)[N]) {
    if constexpr (T == BIT) {
        for (int r = 0; r < N; ++r) c += __popc(row[r] & column[r]);
        return c;
    } else {
        double a[N * parts[T]], b[N * parts[T]];
        for (int k = 0; k < N * parts[T]; ++k) {
            a[k] = value<T>(row[k / parts[T]], k % parts[T]);
            b[k] = value<T>(column[k / parts[T]], k % parts[T]);
        }
        return total(c, a, b);
    }
}

template <Number T, typename C, int N, int A, int B>
EMULATOR_PURE void multiply(C (&c)[N], const unsigned (&a)[A], const unsigned (&b)[B], void *code) {
    constexpr int halves = A / B;  // number of groups of 8 rows of A
    static_assert(A == halves * B && N == 2 * halves, "registers of one shape");
    Registers<A, B> local[32];  // all lanes use the array of lane 0
    const auto address =
        emulator::exchange(~0u, reinterpret_cast<std::uint64_t>(local), 0, false, nullptr, code);
    auto *registers = reinterpret_cast<Registers<A, B> *>(address);
    const int lane = int(emulator::lane());
    for (int r = 0; r < A; ++r) registers[lane].a[r] = a[r];
    for (int r = 0; r < B; ++r) registers[lane].b[r] = b[r];
    emulator::exchange(~0u, 0, -1, false, nullptr, code);
    for (int i = 0; i < N; ++i) {
        const Element at = element_of_c(lane, i);
        unsigned row[4 * B], column[4 * B];
        // Registers of A and of B with the same number hold the same range of k.
        for (int r = 0; r < B; ++r) {
            for (int quarter = 0; quarter < 4; ++quarter) {
                const auto &of_a = registers[at.row % 8 * 4 + quarter].a;
                row[4 * r + quarter] = of_a[halves * r + at.row / 8];
                column[4 * r + quarter] = registers[at.column * 4 + quarter].b[r];
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
MMA_OF_LANES(mma_tf32_k4, TF32, float, 2, 1)
MMA_OF_LANES(mma_tf32_k8, TF32, float, 4, 2)
MMA_OF_LANES(mma_f16_k16, HALF, float, 4, 2)
MMA_OF_LANES(mma_bf16_k16, BFLOAT, float, 4, 2)
MMA_OF_LANES(mma_s8_k32, INT8, int, 4, 2)
MMA_OF_LANES(mma_s4_k64, INT4, int, 4, 2)
MMA_OF_LANES(mma_b1_k256, BIT, int, 4, 2)
MMA_OF_LANES(mma_b1_k128, BIT, int, 1, 1)
#undef MMA_OF_LANES
