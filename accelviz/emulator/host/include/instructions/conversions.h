// Conversions of float32 and float16: the functions of kernels/conversions.cuh for the emulator.
#pragma once

#include <cuda_fp16.h>

using emulator::fragments::float16_value;
EMULATOR_PURE unsigned short to_f16(float x) { return __half_as_ushort(__float2half_rn(x)); }
EMULATOR_PURE unsigned to_f16(float first, float second) {
    return to_f16(first) | unsigned(to_f16(second)) << 16;
}
