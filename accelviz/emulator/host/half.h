// Numbers of 16 bits and pairs of them: what cuda_fp16.h and cuda_bf16.h declare.
//
// Operations are worked out in double and rounded once, to the nearest, halfway to the even one.
// Numbers of at most 11 significant bits are few enough for a sum, product, quotient or root to come
// out right that way. The functions that both types share are friends, found by their arguments;
// those with the type in their name are made by EMULATOR_NARROW at the end.
#pragma once

#include "cuda_on_host.h"

namespace emulator {

enum class Toward { NEAREST, ZERO, UP, DOWN };

// Rounds to a whole number.
EMULATOR_PURE double whole(double x, Toward direction) {
    switch (direction) {
        case Toward::ZERO: return __builtin_trunc(x);
        case Toward::UP: return __builtin_ceil(x);
        case Toward::DOWN: return __builtin_floor(x);
        default: return __builtin_nearbyint(x);
    }
}

// a + b with the last bit set where it is not exact: rounding that again to fewer bits is right.
EMULATOR_PURE double odd_sum(double a, double b) {
    const double sum = a + b, part = sum - a, rest = (a - (sum - part)) + (b - part);
    const auto as_bits = bits<std::int64_t>(sum);
    if (!__builtin_isfinite(sum) || rest == 0 || as_bits & 1) return sum;
    return bits<double>(as_bits + ((rest > 0) == (sum > 0) ? 1 : -1));
}

// One function of numbers x (and y, z), for one number and for each of a pair.
#define EMULATOR_UNARY_FUNCTIONS(X)           \
    X(__hneg, __hneg2, -x)                    \
    X(__habs, __habs2, __builtin_fabs(x))     \
    X(hsqrt, h2sqrt, __builtin_sqrt(x))       \
    X(hrsqrt, h2rsqrt, 1 / __builtin_sqrt(x)) \
    X(hrcp, h2rcp, 1 / x)                     \
    X(hexp, h2exp, __builtin_exp(x))          \
    X(hexp2, h2exp2, __builtin_exp2(x))       \
    X(hexp10, h2exp10, __builtin_pow(10, x))  \
    X(hlog, h2log, __builtin_log(x))          \
    X(hlog2, h2log2, __builtin_log2(x))       \
    X(hlog10, h2log10, __builtin_log10(x))    \
    X(hsin, h2sin, __builtin_sin(x))          \
    X(hcos, h2cos, __builtin_cos(x))          \
    X(htanh, h2tanh, __builtin_tanh(x))       \
    X(hfloor, h2floor, __builtin_floor(x))    \
    X(hceil, h2ceil, __builtin_ceil(x))       \
    X(htrunc, h2trunc, __builtin_trunc(x))    \
    X(hrint, h2rint, __builtin_nearbyint(x))
#define EMULATOR_BINARY_FUNCTIONS(X)                           \
    X(__hadd, __hadd2, x + y)                                  \
    X(__hsub, __hsub2, x - y)                                  \
    X(__hmul, __hmul2, x *y)                                   \
    X(__hadd_rn, __hadd2_rn, x + y)                            \
    X(__hsub_rn, __hsub2_rn, x - y)                            \
    X(__hmul_rn, __hmul2_rn, x *y)                             \
    X(__hdiv, __h2div, x / y)                                  \
    X(__hadd_sat, __hadd2_sat, saturate(x + y))                \
    X(__hsub_sat, __hsub2_sat, saturate(x - y))                \
    X(__hmul_sat, __hmul2_sat, saturate(x *y))                 \
    X(__hmax, __hmax2, y != y || larger(x, y) ? x : y)         \
    X(__hmin, __hmin2, y != y || larger(y, x) ? x : y)         \
    X(__hmax_nan, __hmax2_nan, x != x || larger(x, y) ? x : y) \
    X(__hmin_nan, __hmin2_nan, x != x || larger(y, x) ? x : y)
#define EMULATOR_TERNARY_FUNCTIONS(X)                      \
    X(__hfma, __hfma2, odd_sum(x *y, z))                   \
    X(__hfma_sat, __hfma2_sat, saturate(odd_sum(x *y, z))) \
    X(__hfma_relu, __hfma2_relu, relu(odd_sum(x *y, z)))
// Each also in a form that is true if one of the two is NaN, with a `u` in its name.
#define EMULATOR_COMPARISONS(X)           \
    X(__heq, __heq2, __hbeq2, ==, x == y) \
    X(__hlt, __hlt2, __hblt2, <, x < y)   \
    X(__hle, __hle2, __hble2, <=, x <= y) \
    X(__hgt, __hgt2, __hbgt2, >, x > y)   \
    X(__hge, __hge2, __hbge2, >=, x >= y) \
    X(__hneu, __hneu2, __hbneu2, !=, !(x == y))
#define EMULATOR_NAMED_COMPARISONS(X)                 \
    X(__hne, __hne2, __hbne2, , x < y || x > y)       \
    X(__hequ, __hequ2, __hbequ2, , !(x < y || x > y)) \
    X(__hltu, __hltu2, __hbltu2, , !(x >= y))         \
    X(__hleu, __hleu2, __hbleu2, , !(x > y))          \
    X(__hgtu, __hgtu2, __hbgtu2, , !(x <= y))         \
    X(__hgeu, __hgeu2, __hbgeu2, , !(x < y))

EMULATOR_PURE double saturate(double x) { return x > 0 ? (x < 1 ? x : 1) : 0; }
EMULATOR_PURE double relu(double x) { return x > 0 || x != x ? x : 0; }
EMULATOR_PURE bool larger(double x, double y) {
    return x > y || (x == y && __builtin_signbit(y));  // of the zeros, +0
}

// Accesses of functions that are not instrumented, to what they are given references to.
template <typename... T>
EMULATOR_PURE void loaded(void *code, const T &...each) {
    (access(&each, sizeof(T), LOAD, DEVICE, code), ...);
}
template <typename T>
EMULATOR_PURE void update(T &each, void *code) {
    access(&each, sizeof(T), LOAD, DEVICE, code);
    access(&each, sizeof(T), STORE, DEVICE, code);
}

// The operators ++ and --, in front and behind: SET gives `a` what is in `now`.
#define EMULATOR_STEP(T, SIGN, SET, COPY)                          \
    EMULATOR_INSTRUCTION friend T &operator SIGN##SIGN(T &a) {     \
        emulator::update(a, EMULATOR_HERE);                        \
        const T now = COPY SIGN T(1);                              \
        SET;                                                       \
        return a;                                                  \
    }                                                              \
    EMULATOR_INSTRUCTION friend T operator SIGN##SIGN(T &a, int) { \
        emulator::update(a, EMULATOR_HERE);                        \
        const T before = COPY, now = COPY SIGN T(1);               \
        SET;                                                       \
        return before;                                             \
    }
#define EMULATOR_STEPS(T, SET, COPY) EMULATOR_STEP(T, +, SET, COPY) EMULATOR_STEP(T, -, SET, COPY)

// IEEE's layout: a sign, exponent bits, fraction bits. half is <5, 10>, bfloat16 <8, 7>.
template <int EXPONENT, int FRACTION>
struct Narrow {
    static constexpr int bias = (1 << (EXPONENT - 1)) - 1;
    static constexpr unsigned infinity = ((1u << EXPONENT) - 1) << FRACTION, nan = 0x7fff;

    unsigned short storage = 0;

    constexpr Narrow() {}  // see vectors.h
    // The compiler does not report a structure in memory that a function gets or returns by value.
    EMULATOR_VECTOR_COPIES(Narrow, unsigned short, 1)
    template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>
    EMULATOR_PURE Narrow(T from) : Narrow(rounded(double(from), Toward::NEAREST)) {}

    EMULATOR_PURE static Narrow of_bits(unsigned bits) {
        Narrow made;
        made.storage = static_cast<unsigned short>(bits);
        return made;
    }
    EMULATOR_PURE static Narrow rounded(double from, Toward direction) {
        const bool negative = __builtin_signbit(from);
        const unsigned sign = negative ? 0x8000 : 0;
        const double size = __builtin_fabs(from);
        if (size != size) return of_bits(nan);
        if (size == 0 || size == __builtin_inf()) return of_bits(sign | (size == 0 ? 0 : infinity));
        if (negative && direction == Toward::UP) direction = Toward::ZERO;
        if (negative && direction == Toward::DOWN) direction = Toward::UP;
        int exponent;
        __builtin_frexp(size, &exponent);
        if (exponent < 2 - bias) exponent = 2 - bias;  // those below have the same spacing
        const double steps = whole(__builtin_ldexp(size, FRACTION + 1 - exponent), direction);
        // The highest bit of the steps, not stored, adds 1 to the exponent.
        const unsigned found = unsigned(exponent + bias - 2) * (1u << FRACTION) + unsigned(steps);
        const bool grows = direction == Toward::NEAREST || direction == Toward::UP;
        return of_bits(sign | min(found, grows ? infinity : infinity - 1));
    }

    EMULATOR_PURE float number() const {
        const unsigned size = storage & 0x7fffu, fraction = size & ((1u << FRACTION) - 1);
        const int exponent = size >> FRACTION;
        const unsigned steps = exponent ? fraction | 1u << FRACTION : fraction;
        const float found = size > infinity    ? __builtin_nanf("")
                            : size == infinity ? __builtin_inff()
                                               : __builtin_ldexpf(steps, (exponent ? exponent : 1) -
                                                                             bias - FRACTION);
        return storage & 0x8000u ? -found : found;
    }
    EMULATOR_INSTRUCTION operator float() const {
        emulator::loaded(EMULATOR_HERE, *this);
        return number();
    }
    template <typename T, typename = std::enable_if_t<std::is_integral_v<T>>>
    EMULATOR_INSTRUCTION operator T() const {
        emulator::loaded(EMULATOR_HERE, *this);
        if constexpr (std::is_same_v<T, bool>) {
            return number() != 0;
        } else {
            return saturated<T>(__builtin_truncf(number()));
        }
    }

// All take numbers by value, so that the kernel loads them.
#define EMULATOR_UNARY(NAME, PAIRED, EXPRESSION) \
    EMULATOR_PURE friend Narrow NAME(Narrow a) { \
        const double x = a.number();             \
        return EXPRESSION;                       \
    }
#define EMULATOR_BINARY(NAME, PAIRED, EXPRESSION)          \
    EMULATOR_PURE friend Narrow NAME(Narrow a, Narrow b) { \
        const double x = a.number(), y = b.number();       \
        return EXPRESSION;                                 \
    }
#define EMULATOR_TERNARY(NAME, PAIRED, EXPRESSION)                   \
    EMULATOR_PURE friend Narrow NAME(Narrow a, Narrow b, Narrow c) { \
        const double x = a.number(), y = b.number(), z = c.number(); \
        return EXPRESSION;                                           \
    }
#define EMULATOR_NAMED_COMPARISON(NAME, PAIRED, BOTH, OPERATOR, EXPRESSION) \
    EMULATOR_PURE friend bool NAME(Narrow a, Narrow b) {                    \
        const float x = a.number(), y = b.number();                         \
        return EXPRESSION;                                                  \
    }
#define EMULATOR_COMPARISON(NAME, PAIRED, BOTH, OPERATOR, EXPRESSION)   \
    EMULATOR_NAMED_COMPARISON(NAME, PAIRED, BOTH, OPERATOR, EXPRESSION) \
    EMULATOR_PURE friend bool operator OPERATOR(Narrow a, Narrow b) { return NAME(a, b); }
    EMULATOR_UNARY_FUNCTIONS(EMULATOR_UNARY)
    EMULATOR_BINARY_FUNCTIONS(EMULATOR_BINARY)
    EMULATOR_TERNARY_FUNCTIONS(EMULATOR_TERNARY)
    EMULATOR_COMPARISONS(EMULATOR_COMPARISON)
    EMULATOR_NAMED_COMPARISONS(EMULATOR_NAMED_COMPARISON)
#undef EMULATOR_UNARY
#undef EMULATOR_BINARY
#undef EMULATOR_TERNARY
#undef EMULATOR_NAMED_COMPARISON
#undef EMULATOR_COMPARISON
    EMULATOR_PURE friend bool __hisnan(Narrow a) { return a.number() != a.number(); }
    EMULATOR_PURE friend int __hisinf(Narrow a) {
        return (a.storage & 0x7fffu) == infinity ? (a.storage & 0x8000u ? -1 : 1) : 0;
    }
    EMULATOR_PURE friend Narrow operator+(Narrow a) { return a; }
    EMULATOR_PURE friend Narrow operator-(Narrow a) { return __hneg(a); }
#define EMULATOR_OPERATOR(SIGN, NAME)                                                    \
    EMULATOR_PURE friend Narrow operator SIGN(Narrow a, Narrow b) { return NAME(a, b); } \
    EMULATOR_INSTRUCTION friend Narrow &operator SIGN##=(Narrow & a, Narrow b) {         \
        emulator::update(a, EMULATOR_HERE);                                              \
        a.storage = NAME(a, b).storage;                                                  \
        return a;                                                                        \
    }
    EMULATOR_OPERATOR(+, __hadd)
    EMULATOR_OPERATOR(-, __hsub)
    EMULATOR_OPERATOR(*, __hmul)
    EMULATOR_OPERATOR(/, __hdiv)
#undef EMULATOR_OPERATOR
    EMULATOR_STEPS(Narrow, a.storage = now.storage, Narrow::of_bits(a.storage))
};

// Two numbers that move as one. What takes a pair loads all of it.
template <typename N>
struct alignas(4) Pair {
    N x{}, y{};

    constexpr Pair() {}
    EMULATOR_PURE Pair(N x, N y) : x(x), y(y) {}
    EMULATOR_VECTOR_COPIES(Pair, N, 2)
    // The two, without a word of it.
    EMULATOR_PURE N low() const { return N::of_bits(x.storage); }
    EMULATOR_PURE N high() const { return N::of_bits(y.storage); }

#define EMULATOR_OF_PAIR(T, NAME, RESULT)               \
    EMULATOR_INSTRUCTION friend T NAME(const Pair &a) { \
        emulator::loaded(EMULATOR_HERE, a);             \
        return RESULT;                                  \
    }
#define EMULATOR_OF_PAIRS(T, NAME, RESULT)                             \
    EMULATOR_INSTRUCTION friend T NAME(const Pair &a, const Pair &b) { \
        emulator::loaded(EMULATOR_HERE, a, b);                         \
        return RESULT;                                                 \
    }
#define EMULATOR_UNARY(NAME, PAIRED, EXPRESSION) \
    EMULATOR_OF_PAIR(Pair, PAIRED, Pair(NAME(a.low()), NAME(a.high())))
#define EMULATOR_BINARY(NAME, PAIRED, EXPRESSION) \
    EMULATOR_OF_PAIRS(Pair, PAIRED, Pair(NAME(a.low(), b.low()), NAME(a.high(), b.high())))
#define EMULATOR_TERNARY(NAME, PAIRED, EXPRESSION)                                         \
    EMULATOR_INSTRUCTION friend Pair PAIRED(const Pair &a, const Pair &b, const Pair &c) { \
        emulator::loaded(EMULATOR_HERE, a, b, c);                                          \
        return {NAME(a.low(), b.low(), c.low()), NAME(a.high(), b.high(), c.high())};      \
    }
#define EMULATOR_NAMED_COMPARISON(NAME, PAIRED, BOTH, OPERATOR, EXPRESSION) \
    EMULATOR_BINARY(NAME, PAIRED, EXPRESSION)                               \
    EMULATOR_OF_PAIRS(bool, BOTH, NAME(a.low(), b.low()) && NAME(a.high(), b.high()))
#define EMULATOR_COMPARISON(NAME, PAIRED, BOTH, OPERATOR, EXPRESSION)   \
    EMULATOR_NAMED_COMPARISON(NAME, PAIRED, BOTH, OPERATOR, EXPRESSION) \
    EMULATOR_OF_PAIRS(bool, operator OPERATOR, NAME(a.low(), b.low()) && NAME(a.high(), b.high()))
#define EMULATOR_OPERATOR(SIGN)                                                                \
    EMULATOR_OF_PAIRS(Pair, operator SIGN, Pair(a.low() SIGN b.low(), a.high() SIGN b.high())) \
    EMULATOR_INSTRUCTION friend Pair &operator SIGN##=(Pair & a, const Pair &b) {              \
        emulator::loaded(EMULATOR_HERE, b);                                                    \
        emulator::update(a, EMULATOR_HERE);                                                    \
        const N x = a.low() SIGN b.low(), y = a.high() SIGN b.high();                          \
        a.x.storage = x.storage;                                                               \
        a.y.storage = y.storage;                                                               \
        return a;                                                                              \
    }
    EMULATOR_UNARY_FUNCTIONS(EMULATOR_UNARY)
    EMULATOR_BINARY_FUNCTIONS(EMULATOR_BINARY)
    EMULATOR_TERNARY_FUNCTIONS(EMULATOR_TERNARY)
    EMULATOR_COMPARISONS(EMULATOR_COMPARISON)
    EMULATOR_NAMED_COMPARISONS(EMULATOR_NAMED_COMPARISON)
    EMULATOR_OPERATOR(+)
    EMULATOR_OPERATOR(-)
    EMULATOR_OPERATOR(*)
    EMULATOR_OPERATOR(/)
    EMULATOR_OF_PAIR(Pair, operator+, Pair(a.low(), a.high()))
    EMULATOR_OF_PAIR(Pair, operator-, Pair(-a.low(), -a.high()))
    EMULATOR_OF_PAIR(Pair, __hisnan2, Pair(__hisnan(a.low()), __hisnan(a.high())))
    EMULATOR_OF_PAIR(float, __low2float, a.low().number())
    EMULATOR_OF_PAIR(float, __high2float, a.high().number())
    EMULATOR_OF_PAIR(Pair, __lowhigh2highlow, Pair(a.high(), a.low()))
    EMULATOR_STEPS(Pair, (a.x.storage = now.x.storage, a.y.storage = now.y.storage), Pair(a.low(), a.high()))

   private:
    EMULATOR_PURE explicit Pair(int both) : x(both), y(both) {}
};

// NumPy's float16; it has no bfloat16, of which any 2 bytes are taken.
template <>
struct Element<Narrow<5, 10>> {
    static constexpr char kind = 'f';
    static constexpr std::size_t bytes() { return 2; }
};

template <typename N>
constexpr bool is_vector<Pair<N>> = true;

template <int E, int F>
constexpr bool adds<Narrow<E, F>> = true;
template <typename N>
constexpr bool adds<Pair<N>> = true;
template <int E, int F>
constexpr bool is_exchanged<Narrow<E, F>> = true;
template <typename N>
constexpr bool is_exchanged<Pair<N>> = true;

}  // namespace emulator

#define EMULATOR_NARROW_ROUNDED(TYPE, NAME, SUFFIX, DIRECTION, FROM, NUMBER)  \
    EMULATOR_PURE TYPE __##FROM##2##NAME##SUFFIX(NUMBER x) {                  \
        return TYPE::rounded(double(x), emulator::Toward::DIRECTION);         \
    }                                                                         \
    EMULATOR_PURE NUMBER __##NAME##2##FROM##SUFFIX(TYPE x) {                  \
        return emulator::saturated<NUMBER>(                                   \
            float(emulator::whole(x.number(), emulator::Toward::DIRECTION))); \
    }
#define EMULATOR_NARROW_INTEGER(TYPE, NAME, FROM, NUMBER)           \
    EMULATOR_NARROW_ROUNDED(TYPE, NAME, _rn, NEAREST, FROM, NUMBER) \
    EMULATOR_NARROW_ROUNDED(TYPE, NAME, _rz, ZERO, FROM, NUMBER)    \
    EMULATOR_NARROW_ROUNDED(TYPE, NAME, _ru, UP, FROM, NUMBER)      \
    EMULATOR_NARROW_ROUNDED(TYPE, NAME, _rd, DOWN, FROM, NUMBER)
#define EMULATOR_NARROW_FLOAT(TYPE, NAME, SUFFIX, DIRECTION)  \
    EMULATOR_PURE TYPE __float2##NAME##SUFFIX(float x) {      \
        return TYPE::rounded(x, emulator::Toward::DIRECTION); \
    }
#define EMULATOR_NARROW(TYPE, NAME)                                                             \
    EMULATOR_NARROW_FLOAT(TYPE, NAME, , NEAREST)                                                \
    EMULATOR_NARROW_FLOAT(TYPE, NAME, _rn, NEAREST)                                             \
    EMULATOR_NARROW_FLOAT(TYPE, NAME, _rz, ZERO)                                                \
    EMULATOR_NARROW_FLOAT(TYPE, NAME, _ru, UP)                                                  \
    EMULATOR_NARROW_FLOAT(TYPE, NAME, _rd, DOWN)                                                \
    EMULATOR_NARROW_INTEGER(TYPE, NAME, short, short)                                           \
    EMULATOR_NARROW_INTEGER(TYPE, NAME, ushort, unsigned short)                                 \
    EMULATOR_NARROW_INTEGER(TYPE, NAME, int, int)                                               \
    EMULATOR_NARROW_INTEGER(TYPE, NAME, uint, unsigned)                                         \
    EMULATOR_NARROW_INTEGER(TYPE, NAME, ll, long long)                                          \
    EMULATOR_NARROW_INTEGER(TYPE, NAME, ull, unsigned long long)                                \
    EMULATOR_PURE TYPE __double2##NAME(double x) { return x; }                                  \
    EMULATOR_PURE float __##NAME##2float(TYPE x) { return x.number(); }                         \
    EMULATOR_PURE short __##NAME##_as_short(TYPE x) { return short(x.storage); }                \
    EMULATOR_PURE unsigned short __##NAME##_as_ushort(TYPE x) { return x.storage; }             \
    EMULATOR_PURE TYPE __short_as_##NAME(short x) { return TYPE::of_bits(unsigned(x)); }        \
    EMULATOR_PURE TYPE __ushort_as_##NAME(unsigned short x) { return TYPE::of_bits(x); }        \
    EMULATOR_PURE TYPE##2 make_##NAME##2(TYPE x, TYPE y) { return {x, y}; }                     \
    EMULATOR_PURE TYPE##2 __halves2##NAME##2(TYPE x, TYPE y) { return {x, y}; }                 \
    EMULATOR_PURE TYPE##2 __##NAME##2##NAME##2(TYPE x) { return {x, x}; }                       \
    EMULATOR_PURE TYPE##2 __float2##NAME##2_rn(float x) { return {x, x}; }                      \
    EMULATOR_PURE TYPE##2 __floats2##NAME##2_rn(float x, float y) { return {x, y}; }            \
    EMULATOR_PURE TYPE##2 __float22##NAME##2_rn(float2 a) { return {a.x, a.y}; }                \
    EMULATOR_PURE float2 __##NAME##22float2(TYPE##2 a) { return {a.x.number(), a.y.number()}; } \
    EMULATOR_PURE TYPE __low2##NAME(TYPE##2 a) { return a.low(); }                              \
    EMULATOR_PURE TYPE __high2##NAME(TYPE##2 a) { return a.high(); }                            \
    EMULATOR_PURE TYPE##2 __low2##NAME##2(TYPE##2 a) { return {a.low(), a.low()}; }             \
    EMULATOR_PURE TYPE##2 __high2##NAME##2(TYPE##2 a) { return {a.high(), a.high()}; }          \
    EMULATOR_PURE TYPE##2 __lows2##NAME##2(TYPE##2 a, TYPE##2 b) { return {a.low(), b.low()}; } \
    EMULATOR_PURE TYPE##2 __highs2##NAME##2(TYPE##2 a, TYPE##2 b) { return {a.high(), b.high()}; }
