// 8-bit floating-point numbers, pairs and quadruples of them, and their conversions.
#pragma once

#include "cuda_bf16.h"
#include "cuda_fp16.h"

enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };
using __nv_fp8_storage_t = unsigned char;
using __nv_fp8x2_storage_t = unsigned short;
using __nv_fp8x4_storage_t = unsigned;

// The bits of 16-bit numbers.
struct __half_raw {
    unsigned short x;

    __half_raw() = default;
    EMULATOR_PURE __half_raw(const half &from) : x(from.storage) {}
    EMULATOR_PURE operator half() const { return half::of_bits(x); }
};
struct __half2_raw {
    unsigned short x, y;

    __half2_raw() = default;
    EMULATOR_PURE __half2_raw(const half2 &from) : x(from.x.storage), y(from.y.storage) {}
    EMULATOR_PURE operator half2() const { return {half::of_bits(x), half::of_bits(y)}; }
};
struct __nv_bfloat16_raw {
    unsigned short x;

    __nv_bfloat16_raw() = default;
    EMULATOR_PURE __nv_bfloat16_raw(const __nv_bfloat16 &from) : x(from.storage) {}
    EMULATOR_PURE operator __nv_bfloat16() const { return __nv_bfloat16::of_bits(x); }
};

namespace emulator {

constexpr int fraction_bits(__nv_fp8_interpretation_t kind) { return kind == __NV_E4M3 ? 3 : 2; }

// Rounds to nearest, ties to even. E4M3 has no infinities and one NaN.
EMULATOR_PURE unsigned char narrowed(double x, __nv_saturation_t saturation,
                                     __nv_fp8_interpretation_t kind) {
    const int fraction = fraction_bits(kind), bias = (1 << (6 - fraction)) - 1;
    const unsigned largest = kind == __NV_E4M3 ? 0x7e : 0x7b;
    if (x != x) return 0x7f;
    const unsigned sign = __builtin_signbit(x) ? 0x80 : 0;
    const double size = __builtin_fmin(__builtin_fabs(x), 0x1p40);
    if (size == 0) return sign;
    int exponent;
    __builtin_frexp(size, &exponent);
    exponent = max(exponent, 2 - bias);  // subnormal numbers have this spacing
    const double steps = __builtin_nearbyint(__builtin_ldexp(size, fraction + 1 - exponent));
    // The leading bit of `steps` is implicit: it adds 1 to the exponent.
    const unsigned bits = unsigned(exponent + bias - 2) * (1u << fraction) + unsigned(steps);
    if (bits <= largest) return sign | bits;
    return sign | (saturation == __NV_SATFINITE ? largest : largest + 1);
}
EMULATOR_PURE float widened(unsigned char x, __nv_fp8_interpretation_t kind) {
    const int fraction = fraction_bits(kind), bias = (1 << (6 - fraction)) - 1;
    const unsigned size = x & 0x7f, infinity = kind == __NV_E4M3 ? 0x7f : 0x7c;
    if (size > infinity || size == 0x7f) return __builtin_nanf("");
    const int exponent = size >> fraction, steps = size & ((1 << fraction) - 1);
    const float magnitude =
        size == infinity ? __builtin_inff()
        : exponent ? __builtin_ldexpf(steps | 1 << fraction, exponent - bias - fraction)
                   : __builtin_ldexpf(steps, 1 - bias - fraction);
    return x & 0x80 ? -magnitude : magnitude;
}

}  // namespace emulator

EMULATOR_PURE __nv_fp8_storage_t __nv_cvt_double_to_fp8(double x, __nv_saturation_t saturation,
                                                        __nv_fp8_interpretation_t kind) {
    return emulator::narrowed(x, saturation, kind);
}
EMULATOR_PURE __nv_fp8_storage_t __nv_cvt_float_to_fp8(float x, __nv_saturation_t saturation,
                                                       __nv_fp8_interpretation_t kind) {
    return emulator::narrowed(x, saturation, kind);
}
EMULATOR_PURE __nv_fp8_storage_t __nv_cvt_halfraw_to_fp8(__half_raw x, __nv_saturation_t saturation,
                                                         __nv_fp8_interpretation_t kind) {
    return emulator::narrowed(half(x).number(), saturation, kind);
}
EMULATOR_PURE __nv_fp8_storage_t __nv_cvt_bfloat16raw_to_fp8(__nv_bfloat16_raw x,
                                                             __nv_saturation_t saturation,
                                                             __nv_fp8_interpretation_t kind) {
    return emulator::narrowed(__nv_bfloat16(x).number(), saturation, kind);
}
EMULATOR_PURE __nv_fp8x2_storage_t __nv_cvt_float2_to_fp8x2(float2 x, __nv_saturation_t saturation,
                                                            __nv_fp8_interpretation_t kind) {
    return emulator::narrowed(x.x, saturation, kind) |
           emulator::narrowed(x.y, saturation, kind) << 8;
}
EMULATOR_PURE __nv_fp8x2_storage_t __nv_cvt_halfraw2_to_fp8x2(__half2_raw x,
                                                              __nv_saturation_t saturation,
                                                              __nv_fp8_interpretation_t kind) {
    return emulator::narrowed(half::of_bits(x.x).number(), saturation, kind) |
           emulator::narrowed(half::of_bits(x.y).number(), saturation, kind) << 8;
}
EMULATOR_PURE __half_raw __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t x,
                                                 __nv_fp8_interpretation_t kind) {
    return half(emulator::widened(x, kind));
}
EMULATOR_PURE __half2_raw __nv_cvt_fp8x2_to_halfraw2(__nv_fp8x2_storage_t x,
                                                     __nv_fp8_interpretation_t kind) {
    return half2(emulator::widened(x & 0xff, kind), emulator::widened(x >> 8, kind));
}

// A number of the type KIND, and numbers of 2 and 4 of its bytes. Copies report their accesses.
#define EMULATOR_FP8(NAME, X2, X4, KIND)                                                          \
    struct NAME {                                                                                 \
        __nv_fp8_storage_t __x;                                                                   \
                                                                                                  \
        NAME() = default;                                                                         \
        EMULATOR_VECTOR_COPIES(NAME, unsigned char, 1)                                            \
        template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>               \
        EMULATOR_PURE explicit NAME(T x)                                                          \
            : __x(emulator::narrowed(double(x), __NV_SATFINITE, KIND)) {}                         \
        EMULATOR_PURE explicit NAME(half x) : NAME(x.number()) {}                                 \
        EMULATOR_PURE explicit NAME(__nv_bfloat16 x) : NAME(x.number()) {}                        \
        EMULATOR_INSTRUCTION explicit operator half() const { return number(EMULATOR_HERE); }     \
        EMULATOR_INSTRUCTION explicit operator __nv_bfloat16() const {                            \
            return number(EMULATOR_HERE);                                                         \
        }                                                                                         \
        template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>               \
        EMULATOR_INSTRUCTION explicit operator T() const {                                        \
            const float x = number(EMULATOR_HERE);                                                \
            if constexpr (std::is_same_v<T, bool>) return x != 0;                                 \
            else if constexpr (std::is_floating_point_v<T>) return x;                             \
            else return emulator::saturated<T>(__builtin_truncf(x));                              \
        }                                                                                         \
                                                                                                  \
       private:                                                                                   \
        EMULATOR_PURE float number(void *code) const {                                            \
            emulator::loaded(code, *this);                                                        \
            return emulator::widened(__x, KIND);                                                  \
        }                                                                                         \
    };                                                                                            \
    struct X2 {                                                                                   \
        __nv_fp8x2_storage_t __x;                                                                 \
                                                                                                  \
        X2() = default;                                                                           \
        EMULATOR_VECTOR_COPIES(X2, unsigned short, 1)                                             \
        EMULATOR_PURE explicit X2(float2 x)                                                       \
            : __x(__nv_cvt_float2_to_fp8x2(x, __NV_SATFINITE, KIND)) {}                           \
        EMULATOR_PURE explicit X2(half2 x)                                                        \
            : __x(__nv_cvt_halfraw2_to_fp8x2(x, __NV_SATFINITE, KIND)) {}                         \
        EMULATOR_INSTRUCTION explicit operator half2() const {                                    \
            emulator::loaded(EMULATOR_HERE, *this);                                               \
            return __nv_cvt_fp8x2_to_halfraw2(__x, KIND);                                         \
        }                                                                                         \
        EMULATOR_INSTRUCTION explicit operator float2() const {                                   \
            emulator::loaded(EMULATOR_HERE, *this);                                               \
            return {emulator::widened(__x & 0xff, KIND), emulator::widened(__x >> 8, KIND)};      \
        }                                                                                         \
    };                                                                                            \
    struct X4 {                                                                                   \
        __nv_fp8x4_storage_t __x;                                                                 \
                                                                                                  \
        X4() = default;                                                                           \
        EMULATOR_VECTOR_COPIES(X4, unsigned, 1)                                                   \
        EMULATOR_PURE explicit X4(float4 x)                                                       \
            : __x(__nv_cvt_float2_to_fp8x2({x.x, x.y}, __NV_SATFINITE, KIND) |                    \
                  unsigned(__nv_cvt_float2_to_fp8x2({x.z, x.w}, __NV_SATFINITE, KIND)) << 16) {}  \
        EMULATOR_INSTRUCTION explicit operator float4() const {                                   \
            emulator::loaded(EMULATOR_HERE, *this);                                               \
            return {emulator::widened(__x & 0xff, KIND), emulator::widened(__x >> 8 & 0xff, KIND), \
                    emulator::widened(__x >> 16 & 0xff, KIND), emulator::widened(__x >> 24, KIND)}; \
        }                                                                                         \
    };
EMULATOR_FP8(__nv_fp8_e4m3, __nv_fp8x2_e4m3, __nv_fp8x4_e4m3, __NV_E4M3)
EMULATOR_FP8(__nv_fp8_e5m2, __nv_fp8x2_e5m2, __nv_fp8x4_e5m2, __NV_E5M2)
#undef EMULATOR_FP8
