// The CUDA vocabulary that kernels may use, for a C++ compiler on the host.
//
// A kernel file is compiled with this header in front of it and with the compiler's instrumentation
// for thread checkers, which calls a function before every load and store. Those functions, and
// everything that involves more than one thread, are in runtime.cpp. To add a CUDA feature, declare
// it here; if it touches memory, let it go through `emulator::access`, so that it is checked and
// traced like plain loads and stores.
#pragma once

#include <math.h>
#include <stdlib.h>

#include <cfloat>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>  // before `clock` is a macro
#include <type_traits>
#include <utility>

#define EMULATOR 1  // kernels/ leaves instructions that C++ lacks to instructions/
#define __global__
#define __device__
#define __host__
// symbols.py tells spaces apart by symbols: variables of functions or of a section are shared,
// protected ones constant, all others the device's.
#define __constant__ __attribute__((visibility("protected")))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __grid_constant__
#define __align__(n) alignas(n)
#define __shared__ static __attribute__((used, aligned(16)))
// What source.py puts there: shared variables outside of functions, which only the section tells
// from static ones of the device; constants that only the launch can give a value; what is the
// host's.
#ifdef __APPLE__
#define EMULATOR_FILE_SHARED __shared__
#define EMULATOR_UNFILLED __constant__
#define EMULATOR_HOST_VARIABLE
#else
#define EMULATOR_FILE_SHARED static __attribute__((used, aligned(16), section("emulator_shared")))
#define EMULATOR_UNFILLED __attribute__((visibility("protected"), section("emulator_unfilled")))
#define EMULATOR_HOST_VARIABLE __attribute__((section("emulator_host")))
#endif
#define EMULATOR_ON_HOST(NAME) emulator::host_function(NAME)
// A function call around parentheses, which the compiler does not take apart.
#define EMULATOR_WHOLE emulator::whole

// Calls in two branches are not merged, as barriers are told apart by their address.
#ifdef __clang__
#define EMULATOR_UNCOVERED __attribute__((no_sanitize("coverage")))
#define EMULATOR_BARRIER __attribute__((noinline, nomerge)) EMULATOR_UNCOVERED
#define EMULATOR_APART nomerge,
#else
#define EMULATOR_APART
#define EMULATOR_UNCOVERED __attribute__((no_sanitize_coverage))
#define EMULATOR_BARRIER __attribute__((noinline)) EMULATOR_UNCOVERED
#endif

// A variable that may stay unwritten.
#if __has_attribute(uninitialized)
#define EMULATOR_UNWRITTEN __attribute__((uninitialized))
#else
#define EMULATOR_UNWRITTEN
#endif

// Functions that stand for one instruction: they report their access themselves, with the address
// of the code that called them.
#define EMULATOR_INSTRUCTION \
    __attribute__((EMULATOR_APART noinline, no_sanitize("thread"))) EMULATOR_UNCOVERED
#define EMULATOR_HERE __builtin_return_address(0)
// Functions of numbers alone: a thread neither stops nor is watched in them.
#define EMULATOR_PURE inline __attribute__((no_sanitize("thread"))) EMULATOR_UNCOVERED

namespace emulator {

// COMPARE is an atomicCAS.
enum Kind : std::int32_t { LOAD, STORE, ATOMIC, VOLATILE_LOAD, VOLATILE_STORE, COMPARE };
enum Scope : std::int32_t { BLOCK, DEVICE };

// Checks and traces an access of the running thread before it happens.
void access(const void *address, unsigned bytes, Kind kind, Scope scope, void *code);

// What `source` of `exchange` has added if the lane may be one outside the mask, which on a GPU
// gives a number without meaning: here this one, which is NaN if it is a float.
constexpr int anywhere = 256;
constexpr std::uint64_t undefined_value = 0x7fffffff7fffffff;

// Waits until every lane of `mask` has come here or has left the kernel, then gives the value that
// lane `source` brought; with `source` < 0, the calling lane's own. `votes` gets the lanes whose
// `vote` was true.
std::uint64_t exchange(unsigned mask, std::uint64_t value, int source, bool vote, unsigned *votes,
                       void *code);

// An exchange that also orders the memory of its lanes.
void sync_warp(unsigned mask, void *code);
void sync_threads(void *code);
void fence(Scope scope);
unsigned count_threads(bool vote, void *code);  // of the block, after a barrier
// Waits until no lane of the warp can go on; returns the lanes that wait here.
unsigned active_lanes(void *code);
// Ends the launch; `problem` is a key of problems.py, which may have ": " and more after it.
[[noreturn]] void stop(const char *problem, void *code);
// Called at the beginning of the host's functions; ends a launch.
void on_host(const char *name, void *code);
// memmove and memset with checks of every word.
void *moved(void *to, const void *from, std::size_t bytes, void *code);
void *filled(void *to, int byte, std::size_t bytes, void *code);
unsigned lane();

// T that is not deduced.
template <typename T>
using as_is = typename std::common_type<T>::type;

// The bytes of one type as another, with zeros behind if that is longer.
template <typename To, typename From>
EMULATOR_INSTRUCTION inline To bits(From from) {
    To to{};
    std::memcpy(static_cast<void *>(&to), &from,
                sizeof(To) < sizeof(From) ? sizeof(To) : sizeof(From));
    return to;
}

}  // namespace emulator

struct uint3;
struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
    dim3(uint3 from);
    operator uint3() const;
};
// Constant for a thread, so that the compiler may keep them in registers.
#ifdef EMULATOR_RUNTIME
extern dim3 threadIdx, blockIdx, blockDim, gridDim;
#else
extern const dim3 threadIdx, blockIdx, blockDim, gridDim;
#endif
constexpr int warpSize = 32;

#include "vectors.h"

EMULATOR_PURE dim3::dim3(uint3 from) : x(from.x), y(from.y), z(from.z) {}
EMULATOR_PURE dim3::operator uint3() const { return {x, y, z}; }

#include "intrinsics.h"

#include "atomics.h"

EMULATOR_BARRIER inline void __syncthreads() { emulator::sync_threads(EMULATOR_HERE); }
EMULATOR_BARRIER inline void __syncwarp(unsigned m = ~0u) { emulator::sync_warp(m, EMULATOR_HERE); }
EMULATOR_BARRIER inline int __syncthreads_count(int predicate) {
    return int(emulator::count_threads(predicate != 0, EMULATOR_HERE));
}
EMULATOR_BARRIER inline int __syncthreads_or(int predicate) {
    return emulator::count_threads(predicate != 0, EMULATOR_HERE) != 0;
}
EMULATOR_BARRIER inline int __syncthreads_and(int predicate) {
    return emulator::count_threads(predicate == 0, EMULATOR_HERE) == 0;
}
inline void __threadfence() { emulator::fence(emulator::DEVICE); }
inline void __threadfence_system() { emulator::fence(emulator::DEVICE); }
inline void __threadfence_block() { emulator::fence(emulator::BLOCK); }
[[noreturn]] EMULATOR_BARRIER inline void __trap() { emulator::stop("trapped", EMULATOR_HERE); }

#include "warp.h"

#include "services.h"

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
#define EMULATOR_DYNAMIC_SHARED 0x078000000000ull
#define DYNAMIC_SHARED(T, NAME) T *const NAME = reinterpret_cast<T *>(EMULATOR_DYNAMIC_SHARED)

#include "entry.h"

// Last, as the headers above use these names.
#ifndef EMULATOR_RUNTIME
#define memcpy emulator_memcpy
#define memmove emulator_memcpy
#define memset emulator_memset
#endif
