// Read-modify-write: CUDA's atomics for the types that it has them for, and no others.
//
// Included by cuda_on_host.h; a type of its own, such as half, specialises `emulator::adds`.
#pragma once

namespace emulator {

template <typename T, typename... Of>
constexpr bool is_one_of = (std::is_same_v<T, Of> || ...);

// Types that atomicAdd takes.
template <typename T>
constexpr bool adds = is_one_of<T, int, unsigned, ull, float, double, float2, float4>;

template <typename T>
EMULATOR_PURE T sum_of(T a, T b) {
    return a + b;
}
EMULATOR_PURE float2 sum_of(const float2 &a, const float2 &b) { return {a.x + b.x, a.y + b.y}; }
EMULATOR_PURE float4 sum_of(const float4 &a, const float4 &b) {
    return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
}

}  // namespace emulator

// Threads of a traced block switch in instrumented code, so the expressions of updates have none.
#define EMULATOR_ATOMIC_AT(NAME, KIND, SCOPE, ALLOWED, SAYS, PARAMETERS, EXPRESSION)          \
    template <typename T>                                                                     \
    EMULATOR_INSTRUCTION T NAME PARAMETERS {                                                  \
        static_assert(ALLOWED, #NAME " takes the address of " SAYS);                          \
        emulator::access(address, sizeof(T), emulator::KIND, emulator::SCOPE, EMULATOR_HERE); \
        T old;                                                                                \
        std::memcpy(static_cast<void *>(&old), address, sizeof(T));                           \
        const T now = EXPRESSION;                                                             \
        std::memcpy(static_cast<void *>(address), &now, sizeof(T));                           \
        return old;                                                                           \
    }
#define EMULATOR_ATOMICS(NAME, KIND, ALLOWED, SAYS, PARAMETERS, EXPRESSION)              \
    EMULATOR_ATOMIC_AT(NAME, KIND, DEVICE, ALLOWED, SAYS, PARAMETERS, EXPRESSION)        \
    EMULATOR_ATOMIC_AT(NAME##_block, KIND, BLOCK, ALLOWED, SAYS, PARAMETERS, EXPRESSION) \
    EMULATOR_ATOMIC_AT(NAME##_system, KIND, DEVICE, ALLOWED, SAYS, PARAMETERS, EXPRESSION)
#define EMULATOR_ATOMIC(NAME, ALLOWED, SAYS, EXPRESSION)                                           \
    EMULATOR_ATOMICS(NAME, ATOMIC, ALLOWED, SAYS, (T * address, emulator::as_is<T> value), \
                     EXPRESSION)
#define EMULATOR_OF(...) (emulator::is_one_of<T, __VA_ARGS__>)

EMULATOR_ATOMIC(atomicAdd, emulator::adds<T>,
                "an int, unsigned, unsigned long long, float, double, half or half2 (bfloat16 "
                "likewise); for a long long, cast the address to unsigned long long *",
                emulator::sum_of(old, value))
EMULATOR_ATOMIC(atomicSub, EMULATOR_OF(int, unsigned),
                "an int or unsigned; for another type, let atomicAdd add the negative", old - value)
EMULATOR_ATOMIC(atomicExch, EMULATOR_OF(int, unsigned, emulator::ull, float),
                "an int, unsigned, unsigned long long or float; for a double, exchange its bits "
                "(__double_as_longlong)",
                value)
EMULATOR_ATOMIC(atomicMin, EMULATOR_OF(int, unsigned, long long, emulator::ull),
                "an int, unsigned, long long or unsigned long long; for a float, loop over "
                "atomicCAS on its bits (__float_as_int)",
                value < old ? value : old)
EMULATOR_ATOMIC(atomicMax, EMULATOR_OF(int, unsigned, long long, emulator::ull),
                "an int, unsigned, long long or unsigned long long; for a float, loop over "
                "atomicCAS on its bits (__float_as_int)",
                value > old ? value : old)
EMULATOR_ATOMIC(atomicInc, EMULATOR_OF(unsigned), "an unsigned", old >= value ? 0 : old + 1)
EMULATOR_ATOMIC(atomicDec, EMULATOR_OF(unsigned), "an unsigned",
                old == 0 || old > value ? value : old - 1)
EMULATOR_ATOMIC(atomicAnd, EMULATOR_OF(int, unsigned, emulator::ull),
                "an int, unsigned or unsigned long long", old &value)
EMULATOR_ATOMIC(atomicOr, EMULATOR_OF(int, unsigned, emulator::ull),
                "an int, unsigned or unsigned long long", old | value)
EMULATOR_ATOMIC(atomicXor, EMULATOR_OF(int, unsigned, emulator::ull),
                "an int, unsigned or unsigned long long", old ^ value)

EMULATOR_ATOMICS(atomicCAS, COMPARE, EMULATOR_OF(int, unsigned, emulator::ull, unsigned short),
                 "an int, unsigned, unsigned long long or unsigned short; for a float or double, "
                 "compare its bits (__float_as_int, __double_as_longlong)",
                 (T * address, emulator::as_is<T> expected, emulator::as_is<T> value),
                 old == expected ? value : old)
