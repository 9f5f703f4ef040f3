// What a number of a map becomes before products on tensor cores.
#pragma once

#include "fragments.cuh"

// Rounded to TF32; or as it is, to be split into two numbers of TF32 later.
__device__ __forceinline__ unsigned prepared(float x) {
#if TERMS == 3
    return __float_as_uint(x);
#else
    return kept(__float_as_uint(x) + 0x1000u);
#endif
}
