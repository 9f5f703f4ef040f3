// CUDA's functions of a single thread: integers, bits, floating point, conversions.
//
// Included by cuda_on_host.h. Functions of the C library (expf, fmaf, floor ...) are not repeated.
#pragma once

#include <cfenv>
#include <limits>

namespace emulator {
using ull = unsigned long long;
}

// ---- min and max, with CUDA's overloads, so that the same calls are ambiguous ----

#define EMULATOR_LESSER(R, A, B)                                     \
    constexpr R min(A a, B b) { return (R)b < (R)a ? (R)b : (R)a; } \
    constexpr R max(A a, B b) { return (R)a < (R)b ? (R)b : (R)a; }
#define EMULATOR_LESSERS(SIGNED, UNSIGNED)        \
    EMULATOR_LESSER(SIGNED, SIGNED, SIGNED)       \
    EMULATOR_LESSER(UNSIGNED, UNSIGNED, UNSIGNED) \
    EMULATOR_LESSER(UNSIGNED, SIGNED, UNSIGNED)   \
    EMULATOR_LESSER(UNSIGNED, UNSIGNED, SIGNED)
EMULATOR_LESSERS(int, unsigned)
EMULATOR_LESSERS(long, unsigned long)
EMULATOR_LESSERS(long long, unsigned long long)

// If one argument is NaN, the result is the other one.
#define EMULATOR_LESSER_FLOAT(R, A, B)                       \
    inline R min(A a, B b) { return std::fmin(R(a), R(b)); } \
    inline R max(A a, B b) { return std::fmax(R(a), R(b)); }
EMULATOR_LESSER_FLOAT(float, float, float)
EMULATOR_LESSER_FLOAT(double, double, double)
EMULATOR_LESSER_FLOAT(double, float, double)
EMULATOR_LESSER_FLOAT(double, double, float)

#define EMULATOR_LESSER_NAMED(PREFIX, T)                        \
    inline T PREFIX##min(T a, T b) { return min(a, b); }        \
    inline T PREFIX##max(T a, T b) { return max(a, b); }
EMULATOR_LESSER_NAMED(u, unsigned)
EMULATOR_LESSER_NAMED(ll, long long)
EMULATOR_LESSER_NAMED(ull, unsigned long long)

// ---- integers ----

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(emulator::ull x) { return __builtin_popcountll(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(unsigned(x)); }
inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll(emulator::ull(x)); }
inline unsigned __brev(unsigned x) {
    x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
    x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
    x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
    return __builtin_bswap32(x);
}
inline emulator::ull __brevll(emulator::ull x) {
    return emulator::ull(__brev(unsigned(x))) << 32 | __brev(unsigned(x >> 32));
}

// Products of the lowest 24 bits.
inline unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffffu) * (b & 0xffffffu); }
inline int __mul24(int a, int b) {
    return int(unsigned(int(unsigned(a) << 8) >> 8) * unsigned(int(unsigned(b) << 8) >> 8));
}
inline int __mulhi(int a, int b) { return int((long long)(a) * b >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) { return unsigned(emulator::ull(a) * b >> 32); }
inline long long __mul64hi(long long a, long long b) { return (long long)(__int128(a) * b >> 64); }
inline emulator::ull __umul64hi(emulator::ull a, emulator::ull b) {
    return emulator::ull((unsigned __int128)(a) * b >> 64);
}

inline unsigned __usad(unsigned a, unsigned b, unsigned sum) { return max(a, b) - min(a, b) + sum; }
inline unsigned __sad(int a, int b, unsigned sum) {
    return unsigned(max(a, b)) - unsigned(min(a, b)) + sum;
}
inline int __hadd(int a, int b) { return int(((long long)(a) + b) >> 1); }
inline int __rhadd(int a, int b) { return int(((long long)(a) + b + 1) >> 1); }
inline unsigned __uhadd(unsigned a, unsigned b) { return unsigned((emulator::ull(a) + b) >> 1); }
inline unsigned __urhadd(unsigned a, unsigned b) {
    return unsigned((emulator::ull(a) + b + 1) >> 1);
}

namespace emulator {
inline ull joined(unsigned low, unsigned high) { return ull(high) << 32 | low; }
}
// Selects four of the eight bytes of `low` and `high`, by the lowest 3 bits of each choice.
inline unsigned __byte_perm(unsigned low, unsigned high, unsigned choices) {
    unsigned bytes = 0;
    for (unsigned i = 0; i < 4; ++i) {
        const unsigned choice = choices >> 4 * i & 7u;
        bytes |= unsigned(emulator::joined(low, high) >> 8 * choice & 0xffu) << 8 * i;
    }
    return bytes;
}
// Shift high:low; return the higher half (shifted left) or the lower half (shifted right).
inline unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned by) {
    return unsigned(emulator::joined(low, high) << min(by, 32u) >> 32);
}
inline unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned by) {
    return unsigned(emulator::joined(low, high) >> min(by, 32u));
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned by) {
    return __funnelshift_lc(low, high, by & 31u);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) {
    return __funnelshift_rc(low, high, by & 31u);
}
// `sum` plus the products of the four pairs of bytes.
#define EMULATOR_DP4A(T, BYTE)                                                                   \
    inline T __dp4a(T a, T b, T sum) {                                                           \
        for (unsigned at = 0; at < 32; at += 8) {                                                \
            sum = T(unsigned(sum) + unsigned(BYTE(unsigned(a) >> at) * BYTE(unsigned(b) >> at))); \
        }                                                                                        \
        return sum;                                                                              \
    }
EMULATOR_DP4A(int, std::int8_t)
EMULATOR_DP4A(unsigned, std::uint8_t)

// ---- the bits of numbers ----

namespace emulator {

// Inlined, so that it adds no basic blocks at which lanes of a traced warp could diverge.
template <typename To, typename From>
__forceinline__ To same_bits(From from) {
    static_assert(sizeof(To) == sizeof(From), "the value does not fit");
    To to{};
    std::memcpy(&to, &from, sizeof(From));
    return to;
}

}  // namespace emulator

#define EMULATOR_BITS(TO, TO_NAME, FROM, NAME) \
    __forceinline__ TO __##NAME##_as_##TO_NAME(FROM x) { return emulator::same_bits<TO>(x); }
EMULATOR_BITS(int, int, float, float)
EMULATOR_BITS(unsigned, uint, float, float)
EMULATOR_BITS(float, float, int, int)
EMULATOR_BITS(float, float, unsigned, uint)
EMULATOR_BITS(long long, longlong, double, double)
EMULATOR_BITS(double, double, long long, longlong)
inline int __double2hiint(double x) { return int(__double_as_longlong(x) >> 32); }
inline int __double2loint(double x) { return int(__double_as_longlong(x)); }
inline double __hiloint2double(int high, int low) {
    return __longlong_as_double((long long)(emulator::joined(unsigned(low), unsigned(high))));
}

// ---- conversions ----

namespace emulator {

// Converts an integral floating-point number to the nearest value of an integer type, as on a GPU.
// NaN is converted to 0, or, if one of the types has 64 bits, to the highest bit alone.
template <typename To, typename From>
EMULATOR_PURE To saturated(From x) {
    using Limits = std::numeric_limits<To>;
    if (x != x) {
        const bool wide = sizeof(From) == 8 || sizeof(To) == 8;
        return wide ? To(std::make_unsigned_t<To>(1) << (8 * sizeof(To) - 1)) : To(0);
    }
    const From above = std::ldexp(From(1), Limits::digits);  // the smallest number out of range
    if (x >= above) return Limits::max();
    if (x < (Limits::is_signed ? -above : From(0))) return Limits::min();
    return To(x);
}

}  // namespace emulator

// X for each integer type, with its name in CUDA's functions.
#define EMULATOR_INTEGERS(X, ...)                                              \
    X(int, int, __VA_ARGS__) X(uint, unsigned, __VA_ARGS__)                    \
    X(ll, long long, __VA_ARGS__) X(ull, unsigned long long, __VA_ARGS__)
#define EMULATOR_TO_INTEGER_AS(NAME, TYPE, FROM, WHOLE) \
    inline TYPE NAME(FROM x) { return emulator::saturated<TYPE>(WHOLE(x)); }
#define EMULATOR_TO_INTEGER(TO, TYPE, FROM)                                  \
    EMULATOR_TO_INTEGER_AS(__##FROM##2##TO##_rn, TYPE, FROM, std::nearbyint) \
    EMULATOR_TO_INTEGER_AS(__##FROM##2##TO##_rz, TYPE, FROM, std::trunc)     \
    EMULATOR_TO_INTEGER_AS(__##FROM##2##TO##_ru, TYPE, FROM, std::ceil)      \
    EMULATOR_TO_INTEGER_AS(__##FROM##2##TO##_rd, TYPE, FROM, std::floor)
EMULATOR_INTEGERS(EMULATOR_TO_INTEGER, float)
EMULATOR_INTEGERS(EMULATOR_TO_INTEGER, double)

// Functions by rounding direction. `volatile` keeps the evaluation between the two fesetround.
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
#define EMULATOR_FROM_INTEGER(NAME, TYPE, TO) \
    EMULATOR_ROUNDED(TO, __##NAME##2##TO, (volatile TYPE x), TO(x))
EMULATOR_INTEGERS(EMULATOR_FROM_INTEGER, float)
EMULATOR_FROM_INTEGER(ll, long long, double)
EMULATOR_FROM_INTEGER(ull, unsigned long long, double)
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

// On a GPU these are faster and less accurate.
#define EMULATOR_FAST(NAME) \
    inline float __##NAME##f(float x) { return std::NAME(x); }
EMULATOR_FAST(exp) EMULATOR_FAST(log) EMULATOR_FAST(log2) EMULATOR_FAST(log10)
EMULATOR_FAST(sin) EMULATOR_FAST(cos) EMULATOR_FAST(tan) EMULATOR_FAST(tanh)
inline float __powf(float x, float y) { return std::pow(x, y); }
inline float __exp10f(float x) { return float(std::pow(10.0, double(x))); }
inline float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f; }
inline float fdividef(float a, float b) { return a / b; }
// 0 for divisors above 2^126, as CUDA documents.
inline float __fdividef(float a, float b) {
    return std::isfinite(b) && std::fabs(b) > 0x1p126f ? a * 0.0f : a / b;
}

// Functions that the C library does not have.
#ifdef __APPLE__
inline float exp10f(float x) { return __exp10f(x); }
inline double exp10(double x) { return std::pow(10.0, x); }
#endif
#define EMULATOR_1(T) T a
#define EMULATOR_2(T) T a, T b
#define EMULATOR_3(T) T a, T b, T c
#define EMULATOR_4(T) T a, T b, T c, T d
// A function of N doubles, and one with suffix `f` of N floats that is computed in double.
#define EMULATOR_REAL(NAME, N, ARGUMENTS, EXPRESSION)               \
    inline double NAME(EMULATOR_##N(double)) { return EXPRESSION; } \
    inline float NAME##f(EMULATOR_##N(float)) { return float(NAME ARGUMENTS); }
EMULATOR_REAL(rsqrt, 1, (a), 1 / std::sqrt(a))
EMULATOR_REAL(rcbrt, 1, (a), 1 / std::cbrt(a))
EMULATOR_REAL(normcdf, 1, (a), std::erfc(-a * M_SQRT1_2) / 2)
// sin and cos of pi a; the remainder of a / 2 is exact.
EMULATOR_REAL(sinpi, 1, (a),
              std::fmod(a, 1.0) == 0 ? std::copysign(0.0, a) : std::sin(M_PI * std::fmod(a, 2.0)))
EMULATOR_REAL(cospi, 1, (a),
              std::fmod(std::fabs(a), 1.0) == 0.5 ? 0.0 : std::cos(M_PI * std::fmod(a, 2.0)))
EMULATOR_REAL(rhypot, 2, (a, b), 1 / std::hypot(a, b))
EMULATOR_REAL(norm3d, 3, (a, b, c), std::hypot(a, b, c))
EMULATOR_REAL(norm4d, 4, (a, b, c, d), std::hypot(std::hypot(a, b), std::hypot(c, d)))
EMULATOR_REAL(rnorm3d, 3, (a, b, c), 1 / norm3d(a, b, c))
EMULATOR_REAL(rnorm4d, 4, (a, b, c, d), 1 / norm4d(a, b, c, d))
inline float __frsqrt_rn(float x) { return rsqrtf(x); }
inline double fdivide(double a, double b) { return a / b; }
// The scaled complementary error function: exp(a a) erfc(a), for large a by its continued fraction.
namespace emulator {
EMULATOR_PURE double scaled_erfc(double a) {
    if (a < 5) return std::exp(a * a) * std::erfc(a);
    double fraction = a;
    for (int k = 80; k > 0; --k) fraction = a + k / 2.0 / fraction;
    return 1 / (std::sqrt(M_PI) * fraction);
}
// The inverse of erf at p, with tail = 1 - |p|, by Newton's method from an estimate.
EMULATOR_PURE double inverse_erf(double p, double tail) {
    if (!(tail >= 0)) return NAN;
    if (tail == 0) return p < 0 ? -INFINITY : INFINITY;
    if (p == 0) return p;
    const double size = std::fabs(p);
    const double log = std::log(tail * (1 + size)), half = 2 / (M_PI * 0.147) + log / 2;
    double x = std::sqrt(std::sqrt(half * half - log / 0.147) - half);
    for (int step = 0; step < 6; ++step) {
        // In the tail, Newton's method for the logarithm of erfc converges from below.
        const double erfc = std::erfc(x), slope = M_2_SQRTPI * std::exp(-x * x);
        x += size < 0.5 ? (size - std::erf(x)) / slope : erfc * std::log(erfc / tail) / slope;
    }
    return p < 0 ? -x : x;
}
// Modified Bessel functions of the first kind, by their series, whose terms are positive.
EMULATOR_PURE double bessel_i(int order, double a) {
    const double quarter = a * a / 4;
    if (std::fabs(a) > 713) return order && a < 0 ? -INFINITY : INFINITY;
    double term = order ? a / 2 : 1, sum = term;
    for (int k = 1; k < 2000 && std::fabs(term) > std::fabs(sum) * 1e-18; ++k) {
        term *= quarter / (double(k) * (k + order));
        sum += term;
    }
    return sum;
}
}  // namespace emulator
EMULATOR_REAL(erfcx, 1, (a), emulator::scaled_erfc(a))
EMULATOR_REAL(erfinv, 1, (a), emulator::inverse_erf(a, 1 - std::fabs(a)))
EMULATOR_REAL(erfcinv, 1, (a), emulator::inverse_erf(1 - a, a < 1 ? a : 2 - a))
EMULATOR_REAL(normcdfinv, 1, (a), -M_SQRT2 * erfcinv(2 * a))
EMULATOR_REAL(cyl_bessel_i0, 1, (a), emulator::bessel_i(0, a))
EMULATOR_REAL(cyl_bessel_i1, 1, (a), emulator::bessel_i(1, a))
// Norms of `n` numbers in memory, whose loads are checked.
#define EMULATOR_NORM(T, NAME, INVERSE)                                                         \
    EMULATOR_INSTRUCTION inline T NAME(int n, const T *a) {                                     \
        double sum = 0;                                                                         \
        for (int i = 0; i < n; ++i) {                                                           \
            emulator::access(a + i, sizeof(T), emulator::LOAD, emulator::DEVICE, EMULATOR_HERE); \
            sum = std::hypot(sum, double(a[i]));                                                \
        }                                                                                       \
        return T(INVERSE ? 1 / sum : sum);                                                      \
    }
EMULATOR_NORM(float, normf, false) EMULATOR_NORM(double, norm, false)
EMULATOR_NORM(float, rnormf, true) EMULATOR_NORM(double, rnorm, true)

// Functions with two results. Macros replace those of C, whose stores are not instrumented.
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
