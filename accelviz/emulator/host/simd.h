// CUDA's SIMD intrinsics: operations on the two halfwords or four bytes of a word.
//
// Included by cuda_on_host.h.
#pragma once

namespace emulator {

// Applies f to the parts of two words, as integers of type T; returns the word of the results.
template <typename T, typename F>
EMULATOR_PURE unsigned by_parts(unsigned a, unsigned b, F f) {
    constexpr unsigned bits = 8 * sizeof(T), mask = (1u << bits) - 1;
    unsigned word = 0;
    for (unsigned at = 0; at < 32; at += bits) {
        word |= (unsigned(f(int(T(a >> at)), int(T(b >> at)))) & mask) << at;
    }
    return word;
}
template <typename T>
EMULATOR_PURE int clamped(int x) {
    return min(max(x, int(std::numeric_limits<T>::min())), int(std::numeric_limits<T>::max()));
}
EMULATOR_PURE unsigned sum_of_parts(unsigned word, unsigned bits) {
    unsigned sum = 0;
    for (unsigned at = 0; at < 32; at += bits) sum += word >> at & ((1u << bits) - 1);
    return sum;
}

}  // namespace emulator

#define EMULATOR_SIMD_AS(NAME, T, PARAMETERS, B, EXPRESSION)               \
    EMULATOR_PURE unsigned NAME PARAMETERS {                               \
        return emulator::by_parts<T>(a, B, [](int x, int y) -> int {       \
            using emulator::clamped;                                       \
            using Part [[maybe_unused]] = T;                               \
            (void)y;                                                       \
            return EXPRESSION;                                             \
        });                                                                \
    }
// SIGN is `int` or `uint`, the type of the parts.
#define EMULATOR_SIMD_1(NAME, SIGN, EXPRESSION)                                        \
    EMULATOR_SIMD_AS(__v##NAME##2, std::SIGN##16_t, (unsigned a), 0u, EXPRESSION)      \
    EMULATOR_SIMD_AS(__v##NAME##4, std::SIGN##8_t, (unsigned a), 0u, EXPRESSION)
#define EMULATOR_SIMD(NAME, SIGN, EXPRESSION)                                                \
    EMULATOR_SIMD_AS(__v##NAME##2, std::SIGN##16_t, (unsigned a, unsigned b), b, EXPRESSION) \
    EMULATOR_SIMD_AS(__v##NAME##4, std::SIGN##8_t, (unsigned a, unsigned b), b, EXPRESSION)
EMULATOR_SIMD_1(abs, int, x < 0 ? -x : x)
EMULATOR_SIMD_1(absss, int, clamped<Part>(x < 0 ? -x : x))
EMULATOR_SIMD_1(neg, int, -x)
EMULATOR_SIMD_1(negss, int, clamped<Part>(-x))
EMULATOR_SIMD(add, uint, x + y)
EMULATOR_SIMD(addss, int, clamped<Part>(x + y))
EMULATOR_SIMD(addus, uint, clamped<Part>(x + y))
EMULATOR_SIMD(sub, uint, x - y)
EMULATOR_SIMD(subss, int, clamped<Part>(x - y))
EMULATOR_SIMD(subus, uint, clamped<Part>(x - y))
EMULATOR_SIMD(absdiffs, int, x < y ? y - x : x - y)
EMULATOR_SIMD(absdiffu, uint, x < y ? y - x : x - y)
EMULATOR_SIMD(avgs, int, ((x + y) >> 1) + (x + y > 0 && ((x + y) & 1)))  // away from zero
EMULATOR_SIMD(avgu, uint, (x + y + 1) >> 1)
EMULATOR_SIMD(haddu, uint, (x + y) >> 1)
EMULATOR_SIMD(maxs, int, x < y ? y : x)
EMULATOR_SIMD(maxu, uint, x < y ? y : x)
EMULATOR_SIMD(mins, int, x < y ? x : y)
EMULATOR_SIMD(minu, uint, x < y ? x : y)
// Comparisons: `cmp` gives all bits of a part, `set` the lowest one.
#define EMULATOR_SIMD_COMPARISON(NAME, SIGN, OPERATOR)      \
    EMULATOR_SIMD(cmp##NAME, SIGN, x OPERATOR y ? -1 : 0)   \
    EMULATOR_SIMD(set##NAME, SIGN, x OPERATOR y ? 1 : 0)
EMULATOR_SIMD_COMPARISON(eq, uint, ==)
EMULATOR_SIMD_COMPARISON(ne, uint, !=)
EMULATOR_SIMD_COMPARISON(ges, int, >=)
EMULATOR_SIMD_COMPARISON(geu, uint, >=)
EMULATOR_SIMD_COMPARISON(gts, int, >)
EMULATOR_SIMD_COMPARISON(gtu, uint, >)
EMULATOR_SIMD_COMPARISON(les, int, <=)
EMULATOR_SIMD_COMPARISON(leu, uint, <=)
EMULATOR_SIMD_COMPARISON(lts, int, <)
EMULATOR_SIMD_COMPARISON(ltu, uint, <)
// Sums of absolute differences.
#define EMULATOR_SIMD_SAD(SIGN)                                      \
    EMULATOR_PURE unsigned __vsad##SIGN##2(unsigned a, unsigned b) { \
        return emulator::sum_of_parts(__vabsdiff##SIGN##2(a, b), 16); \
    }                                                                \
    EMULATOR_PURE unsigned __vsad##SIGN##4(unsigned a, unsigned b) { \
        return emulator::sum_of_parts(__vabsdiff##SIGN##4(a, b), 8);  \
    }
EMULATOR_SIMD_SAD(s)
EMULATOR_SIMD_SAD(u)
