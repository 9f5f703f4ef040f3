// Matrix instructions of tensor cores: the functions of kernels/fragments.cuh for the emulator.
#pragma once

#include "conversions.h"

EMULATOR_INSTRUCTION inline void load_matrices(unsigned (&words)[4], const uint4 *row) {
    emulator::fragments::load_matrices<false>(words, row, EMULATOR_HERE);
}

EMULATOR_PURE void split_to_even(float x, unsigned &high, unsigned &low) {
    high = (__float_as_uint(x) + 0xfffu + (__float_as_uint(x) >> 13 & 1u)) & 0xffffe000u;
    low = __float_as_uint(x - __uint_as_float(high));
}

EMULATOR_PURE unsigned opaque(unsigned bits) { return bits; }

EMULATOR_PURE unsigned to_tf32(float x) { return emulator::fragments::rounded_to_tf32(x); }

#define MMA_OF_LANES(NAME, T, C, A, B)                                              \
    EMULATOR_INSTRUCTION inline void NAME(C(&c)[2 * A / B], const unsigned (&a)[A], \
                                          const unsigned (&b)[B]) {                 \
        using namespace emulator::fragments;                                        \
        multiply<T, T>(c, a, b, EMULATOR_HERE);                                     \
    }
MMA_OF_LANES(mma_tf32_k4, TF32, float, 2, 1)
MMA_OF_LANES(mma_tf32_k8, TF32, float, 4, 2)
MMA_OF_LANES(mma_f16_k16, HALF, float, 4, 2)
MMA_OF_LANES(mma_bf16_k16, BFLOAT, float, 4, 2)
MMA_OF_LANES(mma_s8_k32, INT8, int, 4, 2)
MMA_OF_LANES(mma_s4_k64, INT4, int, 4, 2)
MMA_OF_LANES(mma_b1_k256, BIT_AND, int, 4, 2)
MMA_OF_LANES(mma_b1_k128, BIT_AND, int, 1, 1)
#undef MMA_OF_LANES
