// Conversions between float32 and narrower numbers: the bodies of kernels/conversions.cuh.
#pragma once

#include <cuda_fp16.h>

EMULATOR_PURE float float16_value(unsigned bits) {
    // The exponent's bias differs by 112; infinity and NaN keep all its bits set.
    const unsigned magnitude = (bits & 0x7fffu) << 13;
    const float wide = (bits & 0x7c00u) == 0x7c00u ? __uint_as_float(magnitude | 0x7f800000u)
                                                   : __uint_as_float(magnitude) * 0x1p112f;
    return bits & 0x8000u ? -wide : wide;
}
EMULATOR_PURE unsigned short to_f16(float x) { return __half_as_ushort(__float2half_rn(x)); }
EMULATOR_PURE unsigned to_f16(float first, float second) {
    return to_f16(first) | unsigned(to_f16(second)) << 16;
}
