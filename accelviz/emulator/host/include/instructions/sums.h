// Sums of products as tensor cores make them.
#pragma once

#include "../../cuda_on_host.h"

namespace fragments {

// Infinities are unchanged; the lower 13 bits of a NaN become zero.
EMULATOR_PURE unsigned rounded_to_tf32(float x) {
    const unsigned bits = __float_as_uint(x);
    const bool finite = (bits & 0x7f800000u) != 0x7f800000u;
    return (bits + (finite ? 0x1000u : 0u)) & 0xffffe000u;
}

// The exponent of a number other than zero.
EMULATOR_PURE int exponent(double x) {
    return int(emulator::bits<std::uint64_t>(x) >> 52 & 0x7ff) - 1023;
}
EMULATOR_PURE double power_of_two(int exponent) {
    return emulator::bits<double>(std::uint64_t(exponent + 1023) << 52);
}

// c + a . b, bit for bit as on an H200 (docs/tensor-cores.md). Products are exact. All terms,
// including c, are truncated two bits below the last bit of a float32 with the largest exponent of
// any term; the exponent of a product is the sum of its factors'. The sum is truncated to float32.
template <int N>
EMULATOR_PURE float total(float c, const double (&a)[N], const double (&b)[N]) {
    constexpr int high = 23 + 2, none = -10000;
    int top = c != 0 ? exponent(c) : none;
    double plain = c;
    for (int k = 0; k < N; ++k) {
        plain += a[k] * b[k];
        if (a[k] != 0 && b[k] != 0) top = max(top, exponent(a[k]) + exponent(b[k]));
    }
    if (top == none || !__builtin_isfinite(plain)) return float(plain);
    const double scale = power_of_two(high - top);
    long long sum = (long long)(c * scale);
    for (int k = 0; k < N; ++k) sum += (long long)(a[k] * b[k] * scale);
    const double exact = double(sum) * power_of_two(top - high);
    const float near = float(exact);
    return __builtin_fabs(near) > __builtin_fabs(exact) ? __builtin_nextafterf(near, 0) : near;
}
template <int N>
EMULATOR_PURE int total(int c, const double (&a)[N], const double (&b)[N]) {
    unsigned sum = unsigned(c);
    for (int k = 0; k < N; ++k) sum += unsigned(int(a[k] * b[k]));
    return int(sum);
}

}  // namespace fragments
