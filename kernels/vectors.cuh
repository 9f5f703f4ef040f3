// Neighboring columns that a lane reads, sums and writes as one. The including file has VECTOR and,
// where X may be stored in 16 bits, FEATURES (0 float32, 1 float16, 2 bfloat16).
#pragma once

#ifndef FEATURES
#define FEATURES 0
#endif

struct Float8 {
    float4 low, high;
};

#if VECTOR == 8
using Vector = Float8;
#elif VECTOR == 4
using Vector = float4;
#elif VECTOR == 2
using Vector = float2;
#elif VECTOR == 1
using Vector = float;
#else
#error "VECTOR is 1, 2, 4 or 8"
#endif

// One of the columns of a vector.
__device__ __forceinline__ float part(float vector, int) {
    return vector;
}
__device__ __forceinline__ float part(float2 vector, int i) {
    return i == 0 ? vector.x : vector.y;
}
__device__ __forceinline__ float part(float4 vector, int i) {
    return i == 0 ? vector.x : i == 1 ? vector.y : i == 2 ? vector.z : vector.w;
}
__device__ __forceinline__ float part(const Float8 &vector, int i) {
    return i < 4 ? part(vector.low, i) : part(vector.high, i - 4);
}

__device__ __forceinline__ void add_product(float &sum, float weight, float x) {
    sum += weight * x;
}
__device__ __forceinline__ void add_product(float2 &sum, float weight, float2 x) {
    sum.x += weight * x.x;
    sum.y += weight * x.y;
}
__device__ __forceinline__ void add_product(float4 &sum, float weight, float4 x) {
    sum.x += weight * x.x;
    sum.y += weight * x.y;
    sum.z += weight * x.z;
    sum.w += weight * x.w;
}

__device__ __forceinline__ void add(float &sum, float x) {
    sum += x;
}
__device__ __forceinline__ void add(float2 &sum, float2 x) {
    sum.x += x.x;
    sum.y += x.y;
}
__device__ __forceinline__ void add(float4 &sum, float4 x) {
    sum.x += x.x;
    sum.y += x.y;
    sum.z += x.z;
    sum.w += x.w;
}
__device__ __forceinline__ void add(Float8 &sum, const Float8 &x) {
    add(sum.low, x.low);
    add(sum.high, x.high);
}

// Writes what is not read again, so that it does not push X out of the caches.
template <typename T>
__device__ __forceinline__ void stream(T *to, T value) {
    __stcs(to, value);
}
__device__ __forceinline__ void stream(Float8 *to, const Float8 &value) {
    __stcs(&to->low, value.low);
    __stcs(&to->high, value.high);
}

#if FEATURES == 0
using Feature = float;
using Stored = Vector;  // of X, in memory
#else
using Feature = unsigned short;
#if VECTOR == 8
using Stored = uint4;
#elif VECTOR == 4
using Stored = uint2;
#elif VECTOR == 2
using Stored = unsigned;
#else
using Stored = unsigned short;
#endif

// The float32 of 16 bits.
__device__ __forceinline__ float widened(unsigned bits) {
#if FEATURES == 2
    return __int_as_float(bits << 16);
#elif defined(__CUDA_ARCH__)
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"((unsigned short)bits));
    return wide;
#else
    // The exponent's bias differs by 112; infinity and NaN keep all its bits set.
    const unsigned magnitude = (bits & 0x7fffu) << 13;
    const float wide = (bits & 0x7c00u) == 0x7c00u ? __int_as_float(magnitude | 0x7f800000u)
                                                   : __int_as_float(magnitude) * 0x1p112f;
    return bits & 0x8000u ? -wide : wide;
#endif
}

__device__ __forceinline__ float2 pair(unsigned bits) {
    return make_float2(widened(bits & 0xffffu), widened(bits >> 16));
}
__device__ __forceinline__ void add_product(float &sum, float weight, unsigned short x) {
    add_product(sum, weight, widened(x));
}
__device__ __forceinline__ void add_product(float2 &sum, float weight, unsigned x) {
    add_product(sum, weight, pair(x));
}
__device__ __forceinline__ void add_product(float4 &sum, float weight, uint2 x) {
    const float2 low = pair(x.x), high = pair(x.y);
    add_product(sum, weight, make_float4(low.x, low.y, high.x, high.y));
}
__device__ __forceinline__ void add_product(Float8 &sum, float weight, uint4 x) {
    add_product(sum.low, weight, make_uint2(x.x, x.y));
    add_product(sum.high, weight, make_uint2(x.z, x.w));
}
#endif
