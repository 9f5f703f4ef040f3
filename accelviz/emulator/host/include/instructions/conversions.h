// Conversions of float32 and float16: the functions of kernels/conversions.cuh for the emulator.
#pragma once

#include <cuda_fp16.h>

EMULATOR_PURE float float16_value(unsigned bits) {
    // The biases of the exponents differ by 112. Infinity and NaN have all exponent bits set.
    const unsigned magnitude = (bits & 0x7fffu) << 13;
    const float wide = (bits & 0x7c00u) == 0x7c00u ? __uint_as_float(magnitude | 0x7f800000u)
                                                   : __uint_as_float(magnitude) * 0x1p112f;
    return bits & 0x8000u ? -wide : wide;
}
EMULATOR_PURE unsigned short to_f16(float x) { return __half_as_ushort(__float2half_rn(x)); }
EMULATOR_PURE unsigned to_f16(float first, float second) {
    return to_f16(first) | unsigned(to_f16(second)) << 16;
}
