// CUDA's atomic functions, for the types that they have in CUDA.
//
// Included by cuda_on_host.h; half.h adds its types to `emulator::is_addable`.
#pragma once

namespace emulator {

template <typename T, typename... Of>
constexpr bool is_one_of = (std::is_same_v<T, Of> || ...);

// Types that atomicAdd takes.
template <typename T>
constexpr bool is_addable = is_one_of<T, int, unsigned, ull, float, double, float2, float4>;

template <typename T>
EMULATOR_PURE T sum_of(T a, T b) {
    return a + b;
}
EMULATOR_PURE float2 sum_of(const float2 &a, const float2 &b) {
    return {a.x + b.x, a.y + b.y};
}
EMULATOR_PURE float4 sum_of(const float4 &a, const float4 &b) {
    return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
}

// The kind of an atomic that adds `value`: it counts, unless it only reads.
template <typename T>
EMULATOR_PURE Kind counting(const T &value) {
    if constexpr (std::is_arithmetic_v<T>) return value != T(0) ? COUNT : ATOMIC;
    else return COUNT;
}

}  // namespace emulator

// Not instrumented, so that threads of a traced block do not switch within the update.
#define EMULATOR_ATOMIC_AT(NAME, KIND, SCOPE, ALLOWED, TYPES, PARAMETERS, EXPRESSION)         \
    template <typename T>                                                                     \
    EMULATOR_INSTRUCTION T NAME PARAMETERS {                                                  \
        static_assert(ALLOWED, #NAME " takes the address of " TYPES);                         \
        emulator::access(address, sizeof(T), emulator::KIND, emulator::SCOPE, EMULATOR_HERE); \
        T old;                                                                                \
        std::memcpy(static_cast<void *>(&old), address, sizeof(T));                           \
        const T now = EXPRESSION;                                                             \
        std::memcpy(static_cast<void *>(address), &now, sizeof(T));                           \
        return old;                                                                           \
    }
#define EMULATOR_ATOMICS(NAME, KIND, ALLOWED, TYPES, PARAMETERS, EXPRESSION)              \
    EMULATOR_ATOMIC_AT(NAME, KIND, DEVICE, ALLOWED, TYPES, PARAMETERS, EXPRESSION)        \
    EMULATOR_ATOMIC_AT(NAME##_block, KIND, BLOCK, ALLOWED, TYPES, PARAMETERS, EXPRESSION) \
    EMULATOR_ATOMIC_AT(NAME##_system, KIND, DEVICE, ALLOWED, TYPES, PARAMETERS, EXPRESSION)
#define EMULATOR_ATOMIC(NAME, KIND, ALLOWED, TYPES, EXPRESSION)                                \
    EMULATOR_ATOMICS(NAME, KIND, ALLOWED, TYPES, (T * address, emulator::identity_t<T> value), \
                     EXPRESSION)
#define EMULATOR_OF(...) (emulator::is_one_of<T, __VA_ARGS__>)

EMULATOR_ATOMIC(atomicAdd, counting(value), emulator::is_addable<T>,
                "an int, unsigned, unsigned long long, float, double, half or half2 (bfloat16 "
                "likewise); for a long long, cast the address to unsigned long long *",
                emulator::sum_of(old, value))
EMULATOR_ATOMIC(atomicSub, counting(value), EMULATOR_OF(int, unsigned),
                "an int or unsigned; for another type, let atomicAdd add the negative", old - value)
EMULATOR_ATOMIC(atomicExch, ATOMIC, EMULATOR_OF(int, unsigned, emulator::ull, float),
                "an int, unsigned, unsigned long long or float; for a double, exchange its bits "
                "(__double_as_longlong)",
                value)
EMULATOR_ATOMIC(atomicMin, ATOMIC, EMULATOR_OF(int, unsigned, long long, emulator::ull),
                "an int, unsigned, long long or unsigned long long; for a float, loop over "
                "atomicCAS on its bits (__float_as_int)",
                value < old ? value : old)
EMULATOR_ATOMIC(atomicMax, ATOMIC, EMULATOR_OF(int, unsigned, long long, emulator::ull),
                "an int, unsigned, long long or unsigned long long; for a float, loop over "
                "atomicCAS on its bits (__float_as_int)",
                value > old ? value : old)
EMULATOR_ATOMIC(atomicInc, COUNT, EMULATOR_OF(unsigned), "an unsigned", old >= value ? 0 : old + 1)
EMULATOR_ATOMIC(atomicDec, COUNT, EMULATOR_OF(unsigned), "an unsigned",
                old == 0 || old > value ? value : old - 1)
EMULATOR_ATOMIC(atomicAnd, ATOMIC, EMULATOR_OF(int, unsigned, emulator::ull),
                "an int, unsigned or unsigned long long", old &value)
EMULATOR_ATOMIC(atomicOr, ATOMIC, EMULATOR_OF(int, unsigned, emulator::ull),
                "an int, unsigned or unsigned long long", old | value)
EMULATOR_ATOMIC(atomicXor, ATOMIC, EMULATOR_OF(int, unsigned, emulator::ull),
                "an int, unsigned or unsigned long long", old ^ value)

EMULATOR_ATOMICS(atomicCAS, COMPARE, EMULATOR_OF(int, unsigned, emulator::ull, unsigned short),
                 "an int, unsigned, unsigned long long or unsigned short; for a float or double, "
                 "compare its bits (__float_as_int, __double_as_longlong)",
                 (T * address, emulator::identity_t<T> expected, emulator::identity_t<T> value),
                 old == expected ? value : old)
