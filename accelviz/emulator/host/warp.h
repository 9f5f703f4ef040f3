// Warp-wide functions, implemented by `emulator::exchange`, and loads and stores with cache hints.
//
// Included by cuda_on_host.h.
#pragma once

namespace emulator {

// Types that warp-wide functions accept; half.h adds its types.
template <typename T>
constexpr bool is_exchanged = std::is_arithmetic_v<T>;

template <typename T>
constexpr bool is_one_access = sizeof(T) <= 16 && (sizeof(T) & (sizeof(T) - 1)) == 0;

// Returns the value of lane `source`; the lane's own value if the source is `outside` its segment.
template <typename T>
EMULATOR_INSTRUCTION T shuffle(unsigned mask, T value, int source, bool outside, void *code,
                                unsigned line = 0) {
    static_assert(is_exchanged<T>,
                  "warp-wide functions exchange numbers (int to double, half, half2): move the "
                  "members of a struct one by one");
    const int from = outside ? int(lane()) : source;
    return bits<T>(exchange(mask, bits<std::uint64_t>(value), from, false, nullptr, code, line));
}
EMULATOR_PURE void check_width(int width, void *code) {
    if (width < 1 || width > 32 || width & (width - 1)) stop("width", code);
}
EMULATOR_UNCOVERED inline unsigned ballot(unsigned mask, bool vote, void *code,
                                          unsigned line = 0) {
    unsigned votes = 0;
    exchange(mask, 0, -1, vote, &votes, code, line);
    return votes;
}

// Writes the values of all lanes of the mask to `values`.
template <typename T>
EMULATOR_INSTRUCTION void gather(unsigned mask, const T &value, void *code, T (&values)[32]) {
    for (int from = 0; from < 32; ++from) {
        if (mask >> from & 1u) values[from] = shuffle(mask, value, from, false, code);
    }
}
// Returns the lanes of the mask with the same value.
template <typename T>
EMULATOR_INSTRUCTION unsigned lanes_with(unsigned mask, T value, void *code) {
    T values[32];
    gather(mask, value, code, values);
    unsigned same = 0;
    for (unsigned from = 0; from < 32; ++from) {
        const bool equal = mask >> from & 1u && std::memcmp(&values[from], &value, sizeof(T)) == 0;
        same |= unsigned(equal) << from;
    }
    return same;
}

}  // namespace emulator

template <typename T>
EMULATOR_INSTRUCTION T __shfl_sync(unsigned mask, T value, int source, int width = 32,
                                   unsigned line = __builtin_LINE()) {
    emulator::check_width(width, EMULATOR_HERE);
    const int first = int(emulator::lane()) & ~(width - 1), from = first + (source & (width - 1));
    return emulator::shuffle(mask, value, from, false, EMULATOR_HERE, line);
}
#define EMULATOR_SHUFFLE(NAME, DELTA, SOURCE, OUTSIDE)                                           \
    template <typename T>                                                                        \
    EMULATOR_INSTRUCTION T NAME(unsigned mask, T value, DELTA delta, int width = 32,             \
                                unsigned line = __builtin_LINE()) {                              \
        emulator::check_width(width, EMULATOR_HERE);                                             \
        const int lane = emulator::lane(), from = SOURCE;                                        \
        return emulator::shuffle(mask, value, from | emulator::may_be_outside, OUTSIDE,          \
                                 EMULATOR_HERE, line);                                           \
    }
EMULATOR_SHUFFLE(__shfl_up_sync, unsigned, lane - int(delta), from < (lane & ~(width - 1)))
EMULATOR_SHUFFLE(__shfl_down_sync, unsigned, lane + int(delta), from > (lane | (width - 1)))
EMULATOR_SHUFFLE(__shfl_xor_sync, int, lane ^ delta, from > (lane | (width - 1)))

EMULATOR_BARRIER inline unsigned __ballot_sync(unsigned mask, int predicate,
                                               unsigned line = __builtin_LINE()) {
    return emulator::ballot(mask, predicate != 0, EMULATOR_HERE, line);
}
EMULATOR_BARRIER inline int __any_sync(unsigned mask, int predicate,
                                               unsigned line = __builtin_LINE()) {
    return emulator::ballot(mask, predicate != 0, EMULATOR_HERE, line) != 0;
}
EMULATOR_BARRIER inline int __all_sync(unsigned mask, int predicate,
                                               unsigned line = __builtin_LINE()) {
    return emulator::ballot(mask, predicate == 0, EMULATOR_HERE, line) == 0;
}
template <typename T>
EMULATOR_BARRIER unsigned __match_any_sync(unsigned mask, T value) {
    return emulator::lanes_with(mask, value, EMULATOR_HERE);
}
template <typename T>
EMULATOR_BARRIER unsigned __match_all_sync(unsigned mask, T value, int *all) {
    *all = emulator::lanes_with(mask, value, EMULATOR_HERE) == mask;
    return *all ? mask : 0;
}
// All lanes of the warp that can reach this call together; on a GPU it may be fewer.
EMULATOR_BARRIER inline unsigned __activemask() { return emulator::active_lanes(EMULATOR_HERE); }

#define EMULATOR_REDUCE(NAME, T, EXPRESSION)                                   \
    EMULATOR_BARRIER inline T __reduce_##NAME##_sync(unsigned mask, T value) { \
        T values[32];                                                          \
        emulator::gather(mask, value, EMULATOR_HERE, values);                  \
        T a = values[__ffs(int(mask)) - 1];                                    \
        for (unsigned from = __ffs(int(mask)); from < 32; ++from) {            \
            const T b = values[from];                                          \
            if (mask >> from & 1u) a = EXPRESSION;                             \
        }                                                                      \
        return a;                                                              \
    }
#define EMULATOR_REDUCES(T)                               \
    EMULATOR_REDUCE(add, T, T(unsigned(a) + unsigned(b))) \
    EMULATOR_REDUCE(min, T, min(a, b))                    \
    EMULATOR_REDUCE(max, T, max(a, b))
EMULATOR_REDUCES(int)
EMULATOR_REDUCES(unsigned)
EMULATOR_REDUCE(and, unsigned, a &b)
EMULATOR_REDUCE(or, unsigned, a | b)
EMULATOR_REDUCE(xor, unsigned, a ^ b)

// Cache hints have no effect in the emulator.
#define EMULATOR_LOAD(NAME, KIND)                                                              \
    template <typename T>                                                                      \
    EMULATOR_INSTRUCTION T NAME(const T *address) {                                            \
        static_assert(emulator::is_one_access<T>, #NAME " loads a number or a vector");        \
        emulator::access(address, sizeof(T), emulator::KIND, emulator::DEVICE, EMULATOR_HERE); \
        T value;                                                                               \
        std::memcpy(static_cast<void *>(__builtin_addressof(value)), address, sizeof(T));      \
        return value;                                                                          \
    }
#define EMULATOR_STORE(NAME)                                                                    \
    template <typename T>                                                                       \
    EMULATOR_INSTRUCTION void NAME(T *address, emulator::identity_t<T> value) {                 \
        static_assert(emulator::is_one_access<T>, #NAME " stores a number or a vector");        \
        emulator::access(address, sizeof(T), emulator::STORE, emulator::DEVICE, EMULATOR_HERE); \
        std::memcpy(static_cast<void *>(address), __builtin_addressof(value), sizeof(T));       \
    }

EMULATOR_LOAD(__ldg, READ_ONLY_LOAD) EMULATOR_LOAD(__ldca, LOAD) EMULATOR_LOAD(__ldcg, LOAD)
EMULATOR_LOAD(__ldcs, LOAD) EMULATOR_LOAD(__ldcv, LOAD) EMULATOR_LOAD(__ldlu, LOAD)
EMULATOR_STORE(__stcg) EMULATOR_STORE(__stcs) EMULATOR_STORE(__stwb) EMULATOR_STORE(__stwt)
