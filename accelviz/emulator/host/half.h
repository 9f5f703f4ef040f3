// 16-bit floating-point numbers and pairs of them, for cuda_fp16.h and cuda_bf16.h.
//
// Operations are evaluated in double and rounded once, to nearest with ties to even. With at most
// 11 significant bits this is correctly rounded for sums, products, quotients and roots. The macro
// EMULATOR_NARROW at the end declares CUDA's functions for a type.
#pragma once

#include "cuda_on_host.h"

namespace emulator {

enum class Toward { NEAREST, ZERO, UP, DOWN };

// Rounds to an integer.
EMULATOR_PURE double round_to_integer(double x, Toward direction) {
    switch (direction) {
        case Toward::ZERO: return __builtin_trunc(x);
        case Toward::UP: return __builtin_ceil(x);
        case Toward::DOWN: return __builtin_floor(x);
        default: return __builtin_nearbyint(x);
    }
}

// a + b rounded to odd: a second rounding to fewer bits is then correct.
EMULATOR_PURE double odd_sum(double a, double b) {
    const double sum = a + b, part = sum - a, rest = (a - (sum - part)) + (b - part);
    const auto as_bits = bits<std::int64_t>(sum);
    if (!__builtin_isfinite(sum) || rest == 0 || as_bits & 1) return sum;
    return bits<double>(as_bits + ((rest > 0) == (sum > 0) ? 1 : -1));
}

// Tables of functions for numbers of type N: X(N, name, name for pairs, expression in x, y, z).
#define EMULATOR_UNARY_FUNCTIONS(X, N)           \
    X(N, __hneg, __hneg2, -x)                    \
    X(N, __habs, __habs2, __builtin_fabs(x))     \
    X(N, hsqrt, h2sqrt, __builtin_sqrt(x))       \
    X(N, hrsqrt, h2rsqrt, 1 / __builtin_sqrt(x)) \
    X(N, hrcp, h2rcp, 1 / x)                     \
    X(N, hexp, h2exp, __builtin_exp(x))          \
    X(N, hexp2, h2exp2, __builtin_exp2(x))       \
    X(N, hexp10, h2exp10, __builtin_pow(10, x))  \
    X(N, hlog, h2log, __builtin_log(x))          \
    X(N, hlog2, h2log2, __builtin_log2(x))       \
    X(N, hlog10, h2log10, __builtin_log10(x))    \
    X(N, hsin, h2sin, __builtin_sin(x))          \
    X(N, hcos, h2cos, __builtin_cos(x))          \
    X(N, htanh, h2tanh, __builtin_tanh(x))       \
    X(N, hfloor, h2floor, __builtin_floor(x))    \
    X(N, hceil, h2ceil, __builtin_ceil(x))       \
    X(N, htrunc, h2trunc, __builtin_trunc(x))    \
    X(N, hrint, h2rint, __builtin_nearbyint(x))
#define EMULATOR_BINARY_FUNCTIONS(X, N)                           \
    X(N, __hadd, __hadd2, x + y)                                  \
    X(N, __hsub, __hsub2, x - y)                                  \
    X(N, __hmul, __hmul2, x *y)                                   \
    X(N, __hadd_rn, __hadd2_rn, x + y)                            \
    X(N, __hsub_rn, __hsub2_rn, x - y)                            \
    X(N, __hmul_rn, __hmul2_rn, x *y)                             \
    X(N, __hdiv, __h2div, x / y)                                  \
    X(N, __hadd_sat, __hadd2_sat, saturate(x + y))                \
    X(N, __hsub_sat, __hsub2_sat, saturate(x - y))                \
    X(N, __hmul_sat, __hmul2_sat, saturate(x *y))                 \
    X(N, __hmax, __hmax2, y != y || larger(x, y) ? x : y)         \
    X(N, __hmin, __hmin2, y != y || larger(y, x) ? x : y)         \
    X(N, __hmax_nan, __hmax2_nan, x != x || larger(x, y) ? x : y) \
    X(N, __hmin_nan, __hmin2_nan, x != x || larger(y, x) ? x : y)
#define EMULATOR_TERNARY_FUNCTIONS(X, N)                      \
    X(N, __hfma, __hfma2, odd_sum(x *y, z))                   \
    X(N, __hfma_sat, __hfma2_sat, saturate(odd_sum(x *y, z))) \
    X(N, __hfma_relu, __hfma2_relu, relu(odd_sum(x *y, z)))
// Comparisons also have a function that is true if both numbers of a pair compare true, and an
// operator. Functions with `u` in the name are true for NaN.
#define EMULATOR_COMPARISONS(X, N)                 \
    X(N, __heq, __heq2, __hbeq2, ==, x == y)       \
    X(N, __hlt, __hlt2, __hblt2, <, x < y)         \
    X(N, __hle, __hle2, __hble2, <=, x <= y)       \
    X(N, __hgt, __hgt2, __hbgt2, >, x > y)         \
    X(N, __hge, __hge2, __hbge2, >=, x >= y)       \
    X(N, __hneu, __hneu2, __hbneu2, !=, !(x == y))
#define EMULATOR_NAMED_COMPARISONS(X, N)                 \
    X(N, __hne, __hne2, __hbne2, , x < y || x > y)       \
    X(N, __hequ, __hequ2, __hbequ2, , !(x < y || x > y)) \
    X(N, __hltu, __hltu2, __hbltu2, , !(x >= y))         \
    X(N, __hleu, __hleu2, __hbleu2, , !(x > y))          \
    X(N, __hgtu, __hgtu2, __hbgtu2, , !(x <= y))         \
    X(N, __hgeu, __hgeu2, __hbgeu2, , !(x < y))

EMULATOR_PURE double saturate(double x) { return x > 0 ? (x < 1 ? x : 1) : 0; }
EMULATOR_PURE double relu(double x) { return x > 0 || x != x ? x : 0; }
EMULATOR_PURE bool larger(double x, double y) {
    return x > y || (x == y && __builtin_signbit(y));  // +0 > -0
}

// Report accesses to operands, for functions without instrumentation.
template <typename... T>
EMULATOR_PURE void loaded(void *code, const T &...operand) {
    (access(&operand, sizeof(T), LOAD, DEVICE, code), ...);
}
template <typename T>
EMULATOR_PURE void update(T &operand, void *code) {
    access(&operand, sizeof(T), LOAD, DEVICE, code);
    access(&operand, sizeof(T), STORE, DEVICE, code);
}

// A number with numbers of exponent and fraction bits: half is <5, 10>, bfloat16 is <8, 7>.
template <int EXPONENT, int FRACTION>
struct Narrow {
    static constexpr int bias = (1 << (EXPONENT - 1)) - 1;
    static constexpr unsigned infinity = ((1u << EXPONENT) - 1) << FRACTION, nan = 0x7fff;

    unsigned short storage;

    Narrow() = default;  // see vectors.h
    // Copies report their accesses, since the compiler does not instrument copies of structures.
    EMULATOR_VECTOR_COPIES(Narrow, unsigned short, 1)
    template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>
    EMULATOR_PURE Narrow(T from) : Narrow(rounded(double(from), Toward::NEAREST)) {}

    EMULATOR_PURE static Narrow of_bits(unsigned bits) {
        Narrow number;
        number.storage = static_cast<unsigned short>(bits);
        return number;
    }
    EMULATOR_PURE static Narrow ones() { return 1; }
    // `copy`, `set` and `number` do not report accesses.
    EMULATOR_PURE Narrow copy() const { return of_bits(storage); }
    EMULATOR_PURE Narrow &set(const Narrow &to) {
        storage = to.storage;
        return *this;
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
        if (exponent < 2 - bias) exponent = 2 - bias;  // subnormal numbers have this spacing
        const double scaled = __builtin_ldexp(size, FRACTION + 1 - exponent);
        const double steps = round_to_integer(scaled, direction);
        // The leading bit of `steps` is implicit: it adds 1 to the exponent.
        const unsigned bits = unsigned(exponent + bias - 2) * (1u << FRACTION) + unsigned(steps);
        const bool grows = direction == Toward::NEAREST || direction == Toward::UP;
        return of_bits(sign | min(bits, grows ? infinity : infinity - 1));
    }

    EMULATOR_PURE float number() const {
        const unsigned size = storage & 0x7fffu, fraction = size & ((1u << FRACTION) - 1);
        const int exponent = size >> FRACTION, scale = max(exponent, 1) - bias - FRACTION;
        const unsigned steps = exponent ? fraction | 1u << FRACTION : fraction;
        const float magnitude = size > infinity    ? __builtin_nanf("")
                                : size == infinity ? __builtin_inff()
                                                   : __builtin_ldexpf(steps, scale);
        return storage & 0x8000u ? -magnitude : magnitude;
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
};

// Two numbers that are loaded and stored as one.
template <typename N>
struct alignas(4) Pair {
    N x, y;

    Pair() = default;
    EMULATOR_PURE Pair(N x, N y) : x(x), y(y) {}
    EMULATOR_VECTOR_COPIES(Pair, N, 2)
    // `low`, `high`, `copy` and `set` do not report accesses.
    EMULATOR_PURE N low() const { return x.copy(); }
    EMULATOR_PURE N high() const { return y.copy(); }
    EMULATOR_PURE Pair copy() const { return {low(), high()}; }
    EMULATOR_PURE Pair &set(const Pair &to) {
        x.set(to.x);
        y.set(to.y);
        return *this;
    }

    EMULATOR_PURE static Pair ones() { return {N(1), N(1)}; }
};

// Functions of pairs report loads of their operands. Functions of numbers take them by value.
#define EMULATOR_OF_PAIR(N, T, NAME, RESULT)                      \
    EMULATOR_INSTRUCTION inline T NAME(const Pair<N> &a) {        \
        emulator::loaded(EMULATOR_HERE, a);                       \
        return RESULT;                                            \
    }
#define EMULATOR_OF_PAIRS(N, T, NAME, RESULT)                                      \
    EMULATOR_INSTRUCTION inline T NAME(const Pair<N> &a, const Pair<N> &b) {       \
        emulator::loaded(EMULATOR_HERE, a, b);                                     \
        return RESULT;                                                             \
    }
#define EMULATOR_EACH(N, F) Pair<N>(F(a.low(), b.low()), F(a.high(), b.high()))
#define EMULATOR_BOTH(F) (F(a.low(), b.low()) && F(a.high(), b.high()))
#define EMULATOR_UNARY(N, NAME, PAIRED, EXPRESSION) \
    EMULATOR_PURE N NAME(N a) {                     \
        const double x = a.number();                \
        return EXPRESSION;                          \
    }                                               \
    EMULATOR_OF_PAIR(N, Pair<N>, PAIRED, Pair<N>(NAME(a.low()), NAME(a.high())))
#define EMULATOR_BINARY(N, NAME, PAIRED, EXPRESSION)     \
    EMULATOR_PURE N NAME(N a, N b) {                     \
        const double x = a.number(), y = b.number();     \
        return EXPRESSION;                               \
    }                                                    \
    EMULATOR_OF_PAIRS(N, Pair<N>, PAIRED, EMULATOR_EACH(N, NAME))
#define EMULATOR_TERNARY(N, NAME, PAIRED, EXPRESSION)                                 \
    EMULATOR_PURE N NAME(N a, N b, N c) {                                             \
        const double x = a.number(), y = b.number(), z = c.number();                  \
        return EXPRESSION;                                                            \
    }                                                                                 \
    EMULATOR_INSTRUCTION inline Pair<N> PAIRED(const Pair<N> &a, const Pair<N> &b,    \
                                               const Pair<N> &c) {                    \
        emulator::loaded(EMULATOR_HERE, a, b, c);                                     \
        return {NAME(a.low(), b.low(), c.low()), NAME(a.high(), b.high(), c.high())}; \
    }
#define EMULATOR_NAMED_COMPARISON(N, NAME, PAIRED, BOTH, OPERATOR, EXPRESSION) \
    EMULATOR_PURE bool NAME(N a, N b) {                                        \
        const float x = a.number(), y = b.number();                            \
        return EXPRESSION;                                                     \
    }                                                                          \
    EMULATOR_OF_PAIRS(N, Pair<N>, PAIRED, EMULATOR_EACH(N, NAME))              \
    EMULATOR_OF_PAIRS(N, bool, BOTH, EMULATOR_BOTH(NAME))
#define EMULATOR_COMPARISON(N, NAME, PAIRED, BOTH, OPERATOR, EXPRESSION)           \
    EMULATOR_NAMED_COMPARISON(N, NAME, PAIRED, BOTH, OPERATOR, EXPRESSION)         \
    EMULATOR_PURE bool operator OPERATOR(N a, N b) { return NAME(a, b); }          \
    EMULATOR_OF_PAIRS(N, bool, operator OPERATOR, EMULATOR_BOTH(NAME))
#define EMULATOR_OPERATOR(N, SIGN, NAME)                                              \
    EMULATOR_PURE N operator SIGN(N a, N b) { return NAME(a, b); }                    \
    EMULATOR_OF_PAIRS(N, Pair<N>, operator SIGN, EMULATOR_EACH(N, NAME))              \
    EMULATOR_INSTRUCTION inline N &operator SIGN##=(N & a, N b) {                     \
        emulator::update(a, EMULATOR_HERE);                                           \
        return a.set(NAME(a, b));                                                     \
    }                                                                                 \
    EMULATOR_INSTRUCTION inline Pair<N> &operator SIGN##=(Pair<N> & a, const Pair<N> &b) { \
        emulator::loaded(EMULATOR_HERE, b);                                           \
        emulator::update(a, EMULATOR_HERE);                                           \
        return a.set(EMULATOR_EACH(N, NAME));                                         \
    }
// The operators ++ and --, prefix and postfix.
#define EMULATOR_STEP(T, SIGN)                                     \
    EMULATOR_INSTRUCTION inline T &operator SIGN##SIGN(T &a) {     \
        emulator::update(a, EMULATOR_HERE);                        \
        return a.set(a.copy() SIGN T::ones());                     \
    }                                                              \
    EMULATOR_INSTRUCTION inline T operator SIGN##SIGN(T &a, int) { \
        emulator::update(a, EMULATOR_HERE);                        \
        const T before = a.copy();                                 \
        a.set(before SIGN T::ones());                              \
        return before;                                             \
    }
#define EMULATOR_OPERATIONS(N)                                                              \
    EMULATOR_UNARY_FUNCTIONS(EMULATOR_UNARY, N)                                             \
    EMULATOR_BINARY_FUNCTIONS(EMULATOR_BINARY, N)                                           \
    EMULATOR_TERNARY_FUNCTIONS(EMULATOR_TERNARY, N)                                         \
    EMULATOR_COMPARISONS(EMULATOR_COMPARISON, N)                                            \
    EMULATOR_NAMED_COMPARISONS(EMULATOR_NAMED_COMPARISON, N)                                \
    EMULATOR_OPERATOR(N, +, __hadd)                                                         \
    EMULATOR_OPERATOR(N, -, __hsub)                                                         \
    EMULATOR_OPERATOR(N, *, __hmul)                                                         \
    EMULATOR_OPERATOR(N, /, __hdiv)                                                         \
    EMULATOR_STEP(N, +) EMULATOR_STEP(N, -) EMULATOR_STEP(Pair<N>, +) EMULATOR_STEP(Pair<N>, -) \
    EMULATOR_PURE bool __hisnan(N a) { return a.number() != a.number(); }                   \
    EMULATOR_PURE int __hisinf(N a) {                                                       \
        return (a.storage & 0x7fffu) == N::infinity ? (a.storage & 0x8000u ? -1 : 1) : 0;   \
    }                                                                                       \
    EMULATOR_PURE N operator+(N a) { return a; }                                            \
    EMULATOR_PURE N operator-(N a) { return __hneg(a); }                                    \
    EMULATOR_OF_PAIR(N, Pair<N>, operator+, a.copy())                                       \
    EMULATOR_OF_PAIR(N, Pair<N>, operator-, Pair<N>(-a.low(), -a.high()))                   \
    EMULATOR_OF_PAIR(N, Pair<N>, __hisnan2, Pair<N>(__hisnan(a.low()), __hisnan(a.high()))) \
    EMULATOR_OF_PAIR(N, float, __low2float, a.low().number())                               \
    EMULATOR_OF_PAIR(N, float, __high2float, a.high().number())                             \
    EMULATOR_OF_PAIR(N, Pair<N>, __lowhigh2highlow, Pair<N>(a.high(), a.low()))

// half corresponds to NumPy's float16. bfloat16 has no NumPy type: any 2 bytes are accepted.
template <>
struct Element<Narrow<5, 10>> {
    static constexpr char kind = 'f';
    static constexpr std::size_t bytes = 2;
};

template <typename N>
constexpr bool is_vector<Pair<N>> = true;

template <int E, int F>
constexpr bool is_addable<Narrow<E, F>> = true;
template <typename N>
constexpr bool is_addable<Pair<N>> = true;
template <int E, int F>
constexpr bool is_exchanged<Narrow<E, F>> = true;
template <typename N>
constexpr bool is_exchanged<Pair<N>> = true;

}  // namespace emulator

// X for each rounding direction.
#define EMULATOR_DIRECTIONS(X, ...)                                 \
    X(_rn, NEAREST, __VA_ARGS__) X(_rz, ZERO, __VA_ARGS__)          \
    X(_ru, UP, __VA_ARGS__) X(_rd, DOWN, __VA_ARGS__)
#define EMULATOR_NARROW_ROUNDED(SUFFIX, DIRECTION, TYPE, NAME, FROM, NUMBER)  \
    EMULATOR_PURE TYPE __##FROM##2##NAME##SUFFIX(NUMBER x) {                  \
        return TYPE::rounded(double(x), emulator::Toward::DIRECTION);         \
    }                                                                         \
    EMULATOR_PURE NUMBER __##NAME##2##FROM##SUFFIX(TYPE x) {                  \
        return emulator::saturated<NUMBER>(                                   \
            float(emulator::round_to_integer(x.number(), emulator::Toward::DIRECTION))); \
    }
#define EMULATOR_NARROW_INTEGER(FROM, NUMBER, TYPE, NAME) \
    EMULATOR_DIRECTIONS(EMULATOR_NARROW_ROUNDED, TYPE, NAME, FROM, NUMBER)
#define EMULATOR_NARROW_FLOAT(SUFFIX, DIRECTION, TYPE, NAME)  \
    EMULATOR_PURE TYPE __float2##NAME##SUFFIX(float x) {      \
        return TYPE::rounded(x, emulator::Toward::DIRECTION); \
    }
#define EMULATOR_NARROW(TYPE, NAME)                                                             \
    namespace emulator {                                                                        \
    EMULATOR_OPERATIONS(TYPE)                                                                   \
    }                                                                                           \
    EMULATOR_NARROW_FLOAT(, NEAREST, TYPE, NAME)                                                \
    EMULATOR_DIRECTIONS(EMULATOR_NARROW_FLOAT, TYPE, NAME)                                      \
    EMULATOR_NARROW_INTEGER(short, short, TYPE, NAME)                                           \
    EMULATOR_NARROW_INTEGER(ushort, unsigned short, TYPE, NAME)                                 \
    EMULATOR_INTEGERS(EMULATOR_NARROW_INTEGER, TYPE, NAME)                                      \
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
