// Storage types of features: float32, float16 or bfloat16. The including file's Config defines
// `features` (0 float32, 1 float16, 2 bfloat16) and `vector`, the neighboring columns per load.
#pragma once

#include "conversions.cuh"
#include "vectors.cuh"

template <bool is_float, int columns>
struct StoredOf {
    using type = Floats<columns>;
};
template <>
struct StoredOf<false, 1> {
    using type = unsigned short;
};
template <>
struct StoredOf<false, 2> {
    using type = unsigned;
};
template <>
struct StoredOf<false, 4> {
    using type = uint2;
};
template <>
struct StoredOf<false, 8> {
    using type = uint4;
};

using Vector = Floats<Config::vector>;
using Feature = StoredOf<Config::features == 0, 1>::type;
using Stored = StoredOf<Config::features == 0, Config::vector>::type;  // one vector in memory

// Converts a float16 or bfloat16 to float32.
DEVICE_INLINE float widened(unsigned bits) {
    return Config::features == 2 ? __int_as_float(bits << 16) : float16_value(bits);
}

DEVICE_INLINE float2 pair(unsigned bits) {
    return make_float2(widened(bits & 0xffffu), widened(bits >> 16));
}
DEVICE_INLINE void add_product(float &sum, float weight, unsigned short x) {
    add_product(sum, weight, widened(x));
}
DEVICE_INLINE void add_product(float2 &sum, float weight, unsigned x) {
    add_product(sum, weight, pair(x));
}
DEVICE_INLINE void add_product(float4 &sum, float weight, uint2 x) {
    const float2 low = pair(x.x), high = pair(x.y);
    add_product(sum, weight, make_float4(low.x, low.y, high.x, high.y));
}
DEVICE_INLINE void add_product(Float8 &sum, float weight, uint4 x) {
    add_product(sum.low, weight, make_uint2(x.x, x.y));
    add_product(sum.high, weight, make_uint2(x.z, x.w));
}
