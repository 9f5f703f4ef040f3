// Conversions between float32 and float16, one instruction each.
#pragma once

#include "common.cuh"

#ifdef EMULATOR
#include "instructions/conversions.h"
#else
DEVICE_INLINE float float16_value(unsigned bits) {
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"((unsigned short)bits));
    return wide;
}

// Rounds to the nearest float16, ties to even.
DEVICE_INLINE unsigned short to_f16(float x) {
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
}

// Rounds two numbers to float16. `first` is in the lower 16 bits of the result.
DEVICE_INLINE unsigned to_f16(float first, float second) {
    unsigned bits;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(second), "f"(first));
    return bits;
}
#endif
