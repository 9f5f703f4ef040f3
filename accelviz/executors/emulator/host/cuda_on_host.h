// The CUDA vocabulary that kernels may use, for a C++ compiler on the host.
//
// A kernel file is compiled with this header in front of it and with the compiler's instrumentation
// for thread checkers, which calls a function before every load and store. Those functions, and
// everything that involves more than one thread, are in runtime.cpp. To add a CUDA feature, declare
// it here; if it touches memory, let it go through `emulator::access`, so that it is checked and
// traced like plain loads and stores.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#define __global__
#define __device__
#define __host__
// The debugging information tells memory apart: function's own variables are shared, protected ones
// constant, all others the device's.
#define __constant__ __attribute__((visibility("protected")))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) alignas(n)
#define __shared__ static __attribute__((used, aligned(16)))

// Two calls in two branches stay two calls: at a barrier it matters which one a thread is at.
#ifdef __clang__
#define EMULATOR_UNCOVERED __attribute__((no_sanitize("coverage")))
#define EMULATOR_BARRIER __attribute__((noinline, nomerge)) EMULATOR_UNCOVERED
#define EMULATOR_APART nomerge,
#else
#define EMULATOR_APART
#define EMULATOR_UNCOVERED __attribute__((no_sanitize_coverage))
#define EMULATOR_BARRIER __attribute__((noinline)) EMULATOR_UNCOVERED
#endif

// Functions that stand for one instruction: they report their access themselves, with the address
// of the code that called them.
#define EMULATOR_INSTRUCTION \
    __attribute__((EMULATOR_APART noinline, no_sanitize("thread"))) EMULATOR_UNCOVERED
#define EMULATOR_HERE __builtin_return_address(0)

namespace emulator {

// COMPARE is an atomic that says what it expects to find, as atomicCAS does.
enum Kind : std::int32_t { LOAD, STORE, ATOMIC, VOLATILE_LOAD, VOLATILE_STORE, COMPARE };
enum Scope : std::int32_t { BLOCK, DEVICE };

// Checks and traces an access of the running thread before it happens.
void access(const void *address, unsigned bytes, Kind kind, Scope scope, void *code);

// What `source` of `exchange` has added if the lane may be one outside the mask, which on a GPU gives
// a number without meaning: here this one, which is NaN if it is a float.
constexpr int anywhere = 256;
constexpr std::uint64_t undefined_value = 0x7fffffff7fffffff;

// Waits until every lane of `mask` has come here or has left the kernel, then gives the value that
// lane `source` brought; with `source` < 0, the calling lane's own. `votes` gets the lanes whose
// `vote` was true.
std::uint64_t exchange(unsigned mask, std::uint64_t value, int source, bool vote, unsigned *votes,
                       void *code);

// `exchange` as __syncwarp, which also orders the memory of these lanes.
void sync_warp(unsigned mask, void *code);
void sync_threads(void *code);
void fence(Scope scope);
unsigned count_threads(bool vote, void *code);  // of the block, after a barrier
// The lanes of the warp that wait here once none of its lanes can go on.
unsigned active_lanes(void *code);
// Ends the launch; `problem` is a key of problems.py, which may have ": " and more after it.
[[noreturn]] void stop(const char *problem, void *code);
// memmove and memset with every word of theirs checked.
void *moved(void *to, const void *from, std::size_t bytes, void *code);
void *filled(void *to, int byte, std::size_t bytes, void *code);
unsigned lane();

// T where it should not be deduced.
template <typename T>
using as_is = typename std::common_type<T>::type;

template <typename To, typename From>
EMULATOR_INSTRUCTION inline To bits(From from) {
    static_assert(sizeof(To) >= sizeof(From), "the value does not fit");
    To to{};
    std::memcpy(&to, &from, sizeof(From));
    return to;
}

template <typename T>
EMULATOR_INSTRUCTION inline T narrowed(std::uint64_t from) {
    T to;
    std::memcpy(&to, &from, sizeof(T));
    return to;
}

}  // namespace emulator

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
// Constant for a thread as long as it runs, so that the compiler may keep them.
#ifdef EMULATOR_RUNTIME
extern dim3 threadIdx, blockIdx, blockDim, gridDim;
#else
extern const dim3 threadIdx, blockIdx, blockDim, gridDim;
#endif
constexpr int warpSize = 32;

// Vectors move as one access, as they do on a GPU.
#define EMULATOR_MOVE(FROM, TO, BYTES)                                             \
    emulator::access(FROM, BYTES, emulator::LOAD, emulator::DEVICE, EMULATOR_HERE); \
    emulator::access(TO, BYTES, emulator::STORE, emulator::DEVICE, EMULATOR_HERE);  \
    std::memcpy(static_cast<void *>(TO), FROM, BYTES)
// Constant default constructors: g++ would initialise a shared array of anything else at run time,
// under a guard at which the threads of a block, all of them one of the host's, wait for ever.
#define EMULATOR_VECTOR_COPIES(NAME)                  \
    EMULATOR_INSTRUCTION NAME(const NAME &from) {     \
        EMULATOR_MOVE(&from, this, sizeof(NAME));     \
    }                                                 \
    EMULATOR_INSTRUCTION NAME &operator=(const NAME &from) { \
        EMULATOR_MOVE(&from, this, sizeof(NAME));     \
        return *this;                                 \
    }
#define EMULATOR_VECTORS(T, PREFIX)                                                        \
    struct alignas(2 * sizeof(T)) PREFIX##2 {                                              \
        T x, y;                                                                            \
        constexpr PREFIX##2() : x(), y() {}                                                \
        PREFIX##2(T x, T y) : x(x), y(y) {}                                                \
        EMULATOR_VECTOR_COPIES(PREFIX##2)                                                  \
    };                                                                                     \
    struct alignas(4 * sizeof(T) < 16 ? 4 * sizeof(T) : 16) PREFIX##4 {                    \
        T x, y, z, w;                                                                      \
        constexpr PREFIX##4() : x(), y(), z(), w() {}                                      \
        PREFIX##4(T x, T y, T z, T w) : x(x), y(y), z(z), w(w) {}                          \
        EMULATOR_VECTOR_COPIES(PREFIX##4)                                                  \
    };                                                                                     \
    inline PREFIX##2 make_##PREFIX##2(T x, T y) { return {x, y}; }                         \
    inline PREFIX##4 make_##PREFIX##4(T x, T y, T z, T w) { return {x, y, z, w}; }

EMULATOR_VECTORS(float, float)
EMULATOR_VECTORS(int, int)
EMULATOR_VECTORS(unsigned, uint)

// Loads and stores with a word on caching, which changes nothing here.
#define EMULATOR_LOAD(NAME)                                                                    \
    template <typename T>                                                                      \
    EMULATOR_INSTRUCTION T NAME(const T *address) {                                            \
        emulator::access(address, sizeof(T), emulator::LOAD, emulator::DEVICE, EMULATOR_HERE); \
        T value;                                                                               \
        std::memcpy(static_cast<void *>(&value), address, sizeof(T));                          \
        return value;                                                                          \
    }
#define EMULATOR_STORE(NAME)                                                                    \
    template <typename T>                                                                       \
    EMULATOR_INSTRUCTION void NAME(T *address, const emulator::as_is<T> &value) {               \
        emulator::access(address, sizeof(T), emulator::STORE, emulator::DEVICE, EMULATOR_HERE); \
        std::memcpy(static_cast<void *>(address), &value, sizeof(T));                           \
    }

EMULATOR_LOAD(__ldg)
EMULATOR_LOAD(__ldcs)
EMULATOR_LOAD(__ldcg)
EMULATOR_STORE(__stcs)
EMULATOR_STORE(__stcg)

// Read-modify-write, at the scope of a block or of the device.
#define EMULATOR_ATOMIC_AT(NAME, SCOPE, EXPRESSION)                                               \
    template <typename T>                                                                         \
    EMULATOR_INSTRUCTION T NAME(T *address, emulator::as_is<T> value) {                           \
        emulator::access(address, sizeof(T), emulator::ATOMIC, emulator::SCOPE, EMULATOR_HERE);   \
        const T old = *address;                                                                   \
        *address = EXPRESSION;                                                                    \
        return old;                                                                               \
    }
#define EMULATOR_ATOMIC(NAME, EXPRESSION)        \
    EMULATOR_ATOMIC_AT(NAME, DEVICE, EXPRESSION) \
    EMULATOR_ATOMIC_AT(NAME##_block, BLOCK, EXPRESSION)

EMULATOR_ATOMIC(atomicAdd, old + value)
EMULATOR_ATOMIC(atomicSub, old - value)
EMULATOR_ATOMIC(atomicExch, value)
EMULATOR_ATOMIC(atomicMin, value < old ? value : old)
EMULATOR_ATOMIC(atomicMax, value > old ? value : old)
EMULATOR_ATOMIC(atomicAnd, old &value)
EMULATOR_ATOMIC(atomicOr, old | value)

template <typename T>
EMULATOR_INSTRUCTION T atomicCAS(T *address, emulator::as_is<T> expected,
                                 emulator::as_is<T> value) {
    emulator::access(address, sizeof(T), emulator::COMPARE, emulator::DEVICE, EMULATOR_HERE);
    const T old = *address;
    if (old == expected) *address = value;
    return old;
}

EMULATOR_BARRIER inline void __syncthreads() { emulator::sync_threads(EMULATOR_HERE); }
EMULATOR_BARRIER inline void __syncwarp(unsigned m = ~0u) { emulator::sync_warp(m, EMULATOR_HERE); }
inline void __threadfence() { emulator::fence(emulator::DEVICE); }
inline void __threadfence_system() { emulator::fence(emulator::DEVICE); }
inline void __threadfence_block() { emulator::fence(emulator::BLOCK); }
[[noreturn]] EMULATOR_BARRIER inline void __trap() { emulator::stop("trapped", EMULATOR_HERE); }

namespace emulator {

// Shuffles give the lane's own value where the source would lie outside its segment of lanes.
template <typename T>
EMULATOR_INSTRUCTION T shuffle(unsigned mask, T value, int source, bool outside, void *code) {
    return narrowed<T>(exchange(mask, bits<std::uint64_t>(value), outside ? int(lane()) : source,
                                false, nullptr, code));
}
EMULATOR_UNCOVERED inline unsigned ballot(unsigned mask, bool vote, void *code) {
    unsigned votes = 0;
    exchange(mask, 0, -1, vote, &votes, code);
    return votes;
}

}  // namespace emulator

template <typename T>
EMULATOR_INSTRUCTION T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
    const int first = int(emulator::lane()) & ~(width - 1), from = first + (source & (width - 1));
    return emulator::shuffle(mask, value, from, false, EMULATOR_HERE);
}
template <typename T>
EMULATOR_INSTRUCTION T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
    const int lane = emulator::lane(), from = lane - int(delta);
    return emulator::shuffle(mask, value, from | emulator::anywhere, from < (lane & ~(width - 1)),
                             EMULATOR_HERE);
}
template <typename T>
EMULATOR_INSTRUCTION T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
    const int lane = emulator::lane(), from = lane + int(delta);
    return emulator::shuffle(mask, value, from | emulator::anywhere, from > (lane | (width - 1)),
                             EMULATOR_HERE);
}
template <typename T>
EMULATOR_INSTRUCTION T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32) {
    const int lane = emulator::lane(), from = lane ^ lane_mask;
    return emulator::shuffle(mask, value, from | emulator::anywhere, from > (lane | (width - 1)),
                             EMULATOR_HERE);
}
EMULATOR_BARRIER inline unsigned __ballot_sync(unsigned mask, int predicate) {
    return emulator::ballot(mask, predicate != 0, EMULATOR_HERE);
}
EMULATOR_BARRIER inline int __any_sync(unsigned mask, int predicate) {
    return emulator::ballot(mask, predicate != 0, EMULATOR_HERE) != 0;
}
EMULATOR_BARRIER inline int __all_sync(unsigned mask, int predicate) {
    return emulator::ballot(mask, predicate == 0, EMULATOR_HERE) == 0;
}

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(unsigned(x)); }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline int __float_as_int(float x) { return emulator::bits<int>(x); }
inline long long __double_as_longlong(double x) { return emulator::bits<long long>(x); }
inline double __longlong_as_double(long long x) { return emulator::bits<double>(x); }
inline float __int_as_float(int x) { return emulator::bits<float>(x); }

template <typename T>
constexpr T min(T a, T b) {
    return b < a ? b : a;
}
template <typename T>
constexpr T max(T a, T b) {
    return a < b ? b : a;
}

EMULATOR_BARRIER inline void *emulator_memcpy(void *to, const void *from, std::size_t bytes) {
    return emulator::moved(to, from, bytes, EMULATOR_HERE);
}
EMULATOR_BARRIER inline void *emulator_memset(void *to, int byte, std::size_t bytes) {
    return emulator::filled(to, byte, bytes, EMULATOR_HERE);
}
namespace std {
using ::emulator_memcpy;
using ::emulator_memset;
}  // namespace std

// Memory whose size the launch decides, which lies where nothing else does; `extern __shared__ T
// name[]` on a GPU, and so it is translated.
#define EMULATOR_DYNAMIC_SHARED 0x0f8000000000ull
#define DYNAMIC_SHARED(T, NAME) T *const NAME = reinterpret_cast<T *>(EMULATOR_DYNAMIC_SHARED)

#include "entry.h"

// Last, as these are words of the headers above.
#ifndef EMULATOR_RUNTIME
#define memcpy emulator_memcpy
#define memmove emulator_memcpy
#define memset emulator_memset
#endif
