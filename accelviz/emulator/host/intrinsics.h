// CUDA's functions of one thread: integers, bits, floating point, conversions.
//
// Included by cuda_on_host.h. What the C library has (expf, fmaf, floor ...) comes from there.
#pragma once

#include <cfenv>
#include <limits>

// ---- smaller and larger: the overloads of CUDA, so that what is ambiguous there is so here ----

#define EMULATOR_LESSER(R, A, B)      \
    constexpr R min(A one, B other) { \
        const R a = one, b = other;   \
        return b < a ? b : a;         \
    }                                 \
    constexpr R max(A one, B other) { \
        const R a = one, b = other;   \
        return a < b ? b : a;         \
    }
#define EMULATOR_LESSERS(SIGNED, UNSIGNED)        \
    EMULATOR_LESSER(SIGNED, SIGNED, SIGNED)       \
    EMULATOR_LESSER(UNSIGNED, UNSIGNED, UNSIGNED) \
    EMULATOR_LESSER(UNSIGNED, SIGNED, UNSIGNED)   \
    EMULATOR_LESSER(UNSIGNED, UNSIGNED, SIGNED)
EMULATOR_LESSERS(int, unsigned)
EMULATOR_LESSERS(long, unsigned long)
EMULATOR_LESSERS(long long, unsigned long long)

// The number where the other is NaN.
#define EMULATOR_LESSER_FLOAT(R, A, B)                       \
    inline R min(A a, B b) { return std::fmin(R(a), R(b)); } \
    inline R max(A a, B b) { return std::fmax(R(a), R(b)); }
EMULATOR_LESSER_FLOAT(float, float, float)
EMULATOR_LESSER_FLOAT(double, double, double)
EMULATOR_LESSER_FLOAT(double, float, double)
EMULATOR_LESSER_FLOAT(double, double, float)

inline unsigned umin(unsigned a, unsigned b) { return min(a, b); }
inline unsigned umax(unsigned a, unsigned b) { return max(a, b); }
inline long long llmin(long long a, long long b) { return min(a, b); }
inline long long llmax(long long a, long long b) { return max(a, b); }
inline unsigned long long ullmin(unsigned long long a, unsigned long long b) { return min(a, b); }
inline unsigned long long ullmax(unsigned long long a, unsigned long long b) { return max(a, b); }

// ---- integers ----

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(unsigned(x)); }
inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll((unsigned long long)(x)); }
inline unsigned __brev(unsigned x) {
    x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
    x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
    x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
    return __builtin_bswap32(x);
}
inline unsigned long long __brevll(unsigned long long x) {
    return (unsigned long long)(__brev(unsigned(x))) << 32 | __brev(unsigned(x >> 32));
}

// Of the lowest 24 bits.
inline unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffffu) * (b & 0xffffffu); }
inline int __mul24(int a, int b) {
    return int(unsigned(int(unsigned(a) << 8) >> 8) * unsigned(int(unsigned(b) << 8) >> 8));
}
inline int __mulhi(int a, int b) { return int((long long)(a) * b >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) {
    return unsigned((unsigned long long)(a) * b >> 32);
}
inline long long __mul64hi(long long a, long long b) { return (long long)(__int128(a) * b >> 64); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)(a) * b >> 64);
}

inline unsigned __usad(unsigned a, unsigned b, unsigned sum) {
    return (a > b ? a - b : b - a) + sum;
}
inline unsigned __sad(int a, int b, unsigned sum) {
    return (a > b ? unsigned(a) - unsigned(b) : unsigned(b) - unsigned(a)) + sum;
}
inline int __hadd(int a, int b) { return int(((long long)(a) + b) >> 1); }
inline int __rhadd(int a, int b) { return int(((long long)(a) + b + 1) >> 1); }
inline unsigned __uhadd(unsigned a, unsigned b) {
    return unsigned(((unsigned long long)(a) + b) >> 1);
}
inline unsigned __urhadd(unsigned a, unsigned b) {
    return unsigned(((unsigned long long)(a) + b + 1) >> 1);
}

// Four bytes out of the eight of `low` and `high`; the highest bit of a choice repeats the sign.
inline unsigned __byte_perm(unsigned low, unsigned high, unsigned choices) {
    const unsigned long long bytes = (unsigned long long)(high) << 32 | low;
    unsigned found = 0;
    for (unsigned i = 0; i < 4; ++i) {
        const unsigned choice = choices >> 4 * i & 7u;
        found |= unsigned(bytes >> 8 * choice & 0xffu) << 8 * i;
    }
    return found;
}
// 64 bits, shifted: the higher half leftwards, the lower half rightwards.
inline unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned by) {
    const unsigned long long both = (unsigned long long)(high) << 32 | low;
    return unsigned(both << (by < 32 ? by : 32) >> 32);
}
inline unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned by) {
    const unsigned long long both = (unsigned long long)(high) << 32 | low;
    return unsigned(both >> (by < 32 ? by : 32));
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned by) {
    return __funnelshift_lc(low, high, by & 31u);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) {
    return __funnelshift_rc(low, high, by & 31u);
}
// The sum of the products of four bytes, and `sum`.
inline int __dp4a(int a, int b, int sum) {
    for (unsigned at = 0; at < 32; at += 8) {
        sum = int(unsigned(sum) + unsigned((signed char)(unsigned(a) >> at) *
                                           (signed char)(unsigned(b) >> at)));
    }
    return sum;
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned sum) {
    for (unsigned at = 0; at < 32; at += 8) sum += (a >> at & 0xffu) * (b >> at & 0xffu);
    return sum;
}

// ---- the bits of numbers ----

namespace emulator {

// Nothing but a name of the bits, so that a call, at which lanes could part, would cost more than it.
template <typename To, typename From>
__forceinline__ To same_bits(From from) {
    static_assert(sizeof(To) == sizeof(From), "the value does not fit");
    To to{};
    std::memcpy(&to, &from, sizeof(From));
    return to;
}

}  // namespace emulator

__forceinline__ int __float_as_int(float x) { return emulator::same_bits<int>(x); }
__forceinline__ unsigned __float_as_uint(float x) { return emulator::same_bits<unsigned>(x); }
__forceinline__ float __int_as_float(int x) { return emulator::same_bits<float>(x); }
__forceinline__ float __uint_as_float(unsigned x) { return emulator::same_bits<float>(x); }
__forceinline__ long long __double_as_longlong(double x) { return emulator::same_bits<long long>(x); }
__forceinline__ double __longlong_as_double(long long x) { return emulator::same_bits<double>(x); }
inline int __double2hiint(double x) { return int(__double_as_longlong(x) >> 32); }
inline int __double2loint(double x) { return int(__double_as_longlong(x)); }
inline double __hiloint2double(int high, int low) {
    return __longlong_as_double((long long)((unsigned long long)(unsigned(high)) << 32 |
                                            unsigned(low)));
}

// ---- conversions ----

namespace emulator {

// Rounded already. What does not fit becomes the nearest that does, as on a GPU; NaN becomes 0, but
// only its highest bit is set where one of the two types has 64 bits.
template <typename To, typename From>
EMULATOR_PURE To saturated(From x) {
    using Limits = std::numeric_limits<To>;
    if (x != x) {
        const bool wide = sizeof(From) == 8 || sizeof(To) == 8;
        return wide ? To(std::make_unsigned_t<To>(1) << (8 * sizeof(To) - 1)) : To(0);
    }
    const From above = std::ldexp(From(1), Limits::digits);  // the first that is too large
    if (x >= above) return Limits::max();
    if (x < (Limits::is_signed ? -above : From(0))) return Limits::min();
    return To(x);
}

}  // namespace emulator

#define EMULATOR_TO_INTEGER_AS(FROM, NAME, TYPE, WHOLE) \
    inline TYPE NAME(FROM x) { return emulator::saturated<TYPE>(WHOLE(x)); }
#define EMULATOR_TO_INTEGER(FROM, NAME, TO, TYPE)                                  \
    EMULATOR_TO_INTEGER_AS(FROM, __##NAME##2##TO##_rn, TYPE, std::nearbyint)       \
    EMULATOR_TO_INTEGER_AS(FROM, __##NAME##2##TO##_rz, TYPE, std::trunc)           \
    EMULATOR_TO_INTEGER_AS(FROM, __##NAME##2##TO##_ru, TYPE, std::ceil)            \
    EMULATOR_TO_INTEGER_AS(FROM, __##NAME##2##TO##_rd, TYPE, std::floor)
#define EMULATOR_TO_INTEGERS(FROM, NAME)            \
    EMULATOR_TO_INTEGER(FROM, NAME, int, int)       \
    EMULATOR_TO_INTEGER(FROM, NAME, uint, unsigned) \
    EMULATOR_TO_INTEGER(FROM, NAME, ll, long long)  \
    EMULATOR_TO_INTEGER(FROM, NAME, ull, unsigned long long)
EMULATOR_TO_INTEGERS(float, float)
EMULATOR_TO_INTEGERS(double, double)

// NAME with each direction of rounding: to the nearest, towards zero, up, down. Volatile parameters,
// so that the expression is worked out in between.
#define EMULATOR_ROUNDED_AS(SUFFIX, DIRECTION, R, NAME, PARAMETERS, EXPRESSION) \
    EMULATOR_INSTRUCTION inline R NAME##SUFFIX PARAMETERS {                     \
        std::fesetround(DIRECTION);                                             \
        volatile R result = EXPRESSION;                                         \
        std::fesetround(FE_TONEAREST);                                          \
        return result;                                                          \
    }
#define EMULATOR_ROUNDED(R, NAME, PARAMETERS, EXPRESSION)                    \
    EMULATOR_ROUNDED_AS(_rn, FE_TONEAREST, R, NAME, PARAMETERS, EXPRESSION)  \
    EMULATOR_ROUNDED_AS(_rz, FE_TOWARDZERO, R, NAME, PARAMETERS, EXPRESSION) \
    EMULATOR_ROUNDED_AS(_ru, FE_UPWARD, R, NAME, PARAMETERS, EXPRESSION)     \
    EMULATOR_ROUNDED_AS(_rd, FE_DOWNWARD, R, NAME, PARAMETERS, EXPRESSION)
#define EMULATOR_FROM_INTEGER(NAME, TYPE) \
    EMULATOR_ROUNDED(float, __##NAME##2float, (volatile TYPE x), float(x))
EMULATOR_FROM_INTEGER(int, int)
EMULATOR_FROM_INTEGER(uint, unsigned)
EMULATOR_FROM_INTEGER(ll, long long)
EMULATOR_FROM_INTEGER(ull, unsigned long long)
EMULATOR_ROUNDED(double, __ll2double, (volatile long long x), double(x))
EMULATOR_ROUNDED(double, __ull2double, (volatile unsigned long long x), double(x))
EMULATOR_ROUNDED(float, __double2float, (volatile double x), float(x))
inline double __int2double_rn(int x) { return x; }
inline double __uint2double_rn(unsigned x) { return x; }

// ---- floating point ----

#define EMULATOR_ARITHMETIC(T, PREFIX, FUSED)                             \
    EMULATOR_ROUNDED(T, PREFIX##add, (volatile T a, volatile T b), a + b) \
    EMULATOR_ROUNDED(T, PREFIX##sub, (volatile T a, volatile T b), a - b) \
    EMULATOR_ROUNDED(T, PREFIX##mul, (volatile T a, volatile T b), a *b)  \
    EMULATOR_ROUNDED(T, PREFIX##div, (volatile T a, volatile T b), a / b) \
    EMULATOR_ROUNDED(T, PREFIX##rcp, (volatile T x), 1 / x)               \
    EMULATOR_ROUNDED(T, PREFIX##sqrt, (volatile T x), std::sqrt(x))       \
    EMULATOR_ROUNDED(T, FUSED, (volatile T a, volatile T b, volatile T c), std::fma(a, b, c))
EMULATOR_ARITHMETIC(float, __f, __fmaf)
EMULATOR_ARITHMETIC(double, __d, __fma)
inline float __frsqrt_rn(float x) { return float(1 / std::sqrt(double(x))); }

// A GPU has faster ones that are less exact: what is here is at least as near to the truth.
inline float rsqrtf(float x) { return __frsqrt_rn(x); }
inline double rsqrt(double x) { return 1 / std::sqrt(x); }
inline float rcbrtf(float x) { return float(1 / std::cbrt(double(x))); }
inline double rcbrt(double x) { return 1 / std::cbrt(x); }
inline float fdividef(float a, float b) { return a / b; }
// As documented, 0 for divisors past 2^126.
inline float __fdividef(float a, float b) {
    return std::isfinite(b) && std::fabs(b) > 0x1p126f ? a * 0.0f : a / b;
}
inline float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f; }
inline float __expf(float x) { return std::exp(x); }
inline float __exp10f(float x) { return float(std::pow(10.0, double(x))); }
inline float __logf(float x) { return std::log(x); }
inline float __log2f(float x) { return std::log2(x); }
inline float __log10f(float x) { return std::log10(x); }
inline float __sinf(float x) { return std::sin(x); }
inline float __cosf(float x) { return std::cos(x); }
inline float __tanf(float x) { return std::tan(x); }
inline float __tanhf(float x) { return std::tanh(x); }
inline float __powf(float x, float y) { return std::pow(x, y); }

// What C's mathematics lacks.
#ifdef __APPLE__
inline float exp10f(float x) { return __exp10f(x); }
inline double exp10(double x) { return std::pow(10.0, x); }
#endif
namespace emulator {
constexpr double pi = 3.14159265358979323846, root_of_half = 0.70710678118654752440;
}
// Of x times pi; the rest of a division by 2 is exact.
inline double sinpi(double x) {
    const double turn = std::fmod(x, 2.0);
    return turn == std::trunc(turn) ? std::copysign(0.0, x) : std::sin(emulator::pi * turn);
}
inline double cospi(double x) {
    const double turn = std::fabs(std::fmod(x, 2.0));
    return turn == 0.5 || turn == 1.5 ? 0.0 : std::cos(emulator::pi * turn);
}
inline double normcdf(double x) { return std::erfc(-x * emulator::root_of_half) / 2; }
inline double norm3d(double a, double b, double c) { return std::hypot(a, b, c); }
inline double norm4d(double a, double b, double c, double d) {
    return std::hypot(std::hypot(a, b), std::hypot(c, d));
}
inline double rhypot(double a, double b) { return 1 / std::hypot(a, b); }
inline double rnorm3d(double a, double b, double c) { return 1 / norm3d(a, b, c); }
inline double rnorm4d(double a, double b, double c, double d) { return 1 / norm4d(a, b, c, d); }
inline float sinpif(float x) { return float(sinpi(x)); }
inline float cospif(float x) { return float(cospi(x)); }
inline float normcdff(float x) { return float(normcdf(x)); }
inline float norm3df(float a, float b, float c) { return float(norm3d(a, b, c)); }
inline float norm4df(float a, float b, float c, float d) { return float(norm4d(a, b, c, d)); }
inline float rhypotf(float a, float b) { return float(rhypot(a, b)); }
inline float rnorm3df(float a, float b, float c) { return float(rnorm3d(a, b, c)); }
inline float rnorm4df(float a, float b, float c, float d) { return float(rnorm4d(a, b, c, d)); }

// Two results by address. Macros, because some C libraries have functions of these names, whose
// stores the emulator would not see.
namespace emulator {
template <typename T>
EMULATOR_INSTRUCTION void store_two(T *first, T *second, T a, T b) {
    access(first, sizeof(T), STORE, DEVICE, EMULATOR_HERE);
    *first = a;
    access(second, sizeof(T), STORE, DEVICE, EMULATOR_HERE);
    *second = b;
}
}  // namespace emulator
#define EMULATOR_SINCOS(T, SINE, COSINE, X, S, C) \
    [](T x, T *s, T *c) { emulator::store_two(s, c, T(SINE(x)), T(COSINE(x))); }(X, S, C)
#define sincosf(X, S, C) EMULATOR_SINCOS(float, std::sin, std::cos, X, S, C)
#define __sincosf(X, S, C) EMULATOR_SINCOS(float, std::sin, std::cos, X, S, C)
#define sincos(X, S, C) EMULATOR_SINCOS(double, std::sin, std::cos, X, S, C)
#define sincospif(X, S, C) EMULATOR_SINCOS(float, sinpi, cospi, X, S, C)
#define sincospi(X, S, C) EMULATOR_SINCOS(double, sinpi, cospi, X, S, C)
