// CUDA's keywords, built-in variables and functions, for a C++ compiler on the host.
//
// A kernel is compiled with this header included first, and with the instrumentation of
// ThreadSanitizer, which calls a function before every load and store. Those functions, and all
// that involves several threads, are in the runtime: a program that loads the compiled kernel. To
// add a CUDA feature, declare it here; if it accesses memory, call `emulator::access`, so that the
// access is checked and traced like loads and stores in the kernel's source.
#pragma once

#include <math.h>
#include <stdlib.h>

#include <cfloat>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>  // before services.h defines the macro `clock`
#include <type_traits>
#include <utility>

#define EMULATOR 1  // headers in kernels/ then include include/instructions/ in place of PTX
#define __global__
#define __device__
#define __host__
// symbols.py determines the memory space of a variable from its symbol: constant if its visibility
// is protected; shared if it is local to a function or in section emulator_shared; else device.
#define __constant__ __attribute__((visibility("protected")))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __cluster_dims__(...)
#define __grid_constant__
#define __managed__
// An attribute of GNU may stand anywhere in a declaration; C++'s alignas may not.
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __align__(n)
// source.py inserts it in place of `alignas` between specifiers. `int(T)` is the type of a function
// if T is a type, else a number.
#define EMULATOR_ALIGNED(...) __attribute__((aligned(emulator::alignment<int(__VA_ARGS__)>())))
// Macros that source.py inserts: for __shared__ variables at file scope (a section distinguishes
// them from static device variables), for __constant__ variables without initial value, and for
// variables and functions of the host. Static shared memory has at most 48 KB: its alignment leaves
// a gap behind each array, so that a pointer which runs past the end is noticed.
#ifdef __APPLE__
#define __shared__ static __attribute__((used, aligned(32)))
#define EMULATOR_FILE_SHARED __shared__
#define EMULATOR_UNFILLED __constant__
#define EMULATOR_HOST_VARIABLE
#else
#define __shared__ static __attribute__((used, aligned(65536)))
#define EMULATOR_FILE_SHARED static __attribute__((used, aligned(65536), section("emulator_shared")))
#define EMULATOR_UNFILLED __attribute__((visibility("protected"), section("emulator_unfilled")))
#define EMULATOR_HOST_VARIABLE __attribute__((section("emulator_host")))
#endif
#define EMULATOR_ON_HOST(NAME) emulator::host_function(NAME)
// Returns a parenthesised expression unchanged; source.py inserts it against a bug of g++ 12.
#define EMULATOR_WHOLE emulator::whole

// UNCOVERED: a function without a call at each basic block. APART: calls in two branches are not
// merged. BARRIER: a function in which threads wait; the address of its call identifies it.
#ifdef __clang__
#define EMULATOR_UNCOVERED __attribute__((no_sanitize("coverage")))
#define EMULATOR_BARRIER __attribute__((noinline, nomerge)) EMULATOR_UNCOVERED
#define EMULATOR_APART nomerge,
#else
#define EMULATOR_APART
#define EMULATOR_UNCOVERED __attribute__((no_sanitize_coverage))
#define EMULATOR_BARRIER __attribute__((noinline)) EMULATOR_UNCOVERED
#endif

// A function that emulates one instruction. It is not instrumented; it reports its accesses itself,
// with the address of the calling code (EMULATOR_HERE).
#define EMULATOR_UNINSTRUMENTED __attribute__((no_sanitize("thread"))) EMULATOR_UNCOVERED
#define EMULATOR_INSTRUCTION __attribute__((EMULATOR_APART noinline)) EMULATOR_UNINSTRUMENTED
#define EMULATOR_HERE __builtin_return_address(0)
// A function that only computes: it is not instrumented and reports no accesses.
#define EMULATOR_PURE inline EMULATOR_UNINSTRUMENTED

// The interface of the runtime. `code` is always the return address of the calling code.
namespace emulator {

// COMPARE is an atomicCAS, READ_ONLY_LOAD an __ldg. ATOMIC_LOAD and ATOMIC_STORE are those of
// cuda::atomic, volatile accesses in all memories. ARRIVE and POLL are a thread's arrival at a
// cuda::barrier, which acquires nothing, and its look for the end of a phase (`await_phase`). COUNT is
// an atomic that adds a number to a counter.
enum Kind : std::int32_t {
    READ_ONLY_LOAD = -1,
    LOAD,
    STORE,
    ATOMIC,
    VOLATILE_LOAD,
    VOLATILE_STORE,
    ATOMIC_LOAD,
    ATOMIC_STORE,
    ARRIVE,
    POLL,
    COUNT,
    COMPARE
};
enum Scope : std::int32_t { BLOCK, DEVICE };

// Called before a clock is read, which counts the readings of all blocks.
void read_clock();
// Checks and traces an access of the current thread before it is executed.
void access(const void *address, unsigned bytes, Kind kind, Scope scope, void *code);

// Flag in `source` of `exchange`: a source outside the mask is allowed, with an undefined result.
constexpr int may_be_outside = 256;

// Waits until every lane of `mask` has called it or has left the kernel. Returns the `value` of
// lane `source`, or of the calling lane if `source` < 0. `votes` receives a bit for each lane with
// a true `vote`. `line` is the call's in the source, the same in each round of an unrolled loop; 0
// if it is not known.
std::uint64_t exchange(unsigned mask, std::uint64_t value, int source, bool vote, unsigned *votes,
                       void *code, unsigned line = 0);

// An exchange that also orders the memory accesses of its lanes.
void sync_warp(unsigned mask, void *code, unsigned line = 0);
void sync_threads(void *code);
void sync_tile(unsigned first, unsigned size, void *code);  // of threads of several warps
char (*tile_values())[32];  // what the threads of a block exchange in such tiles
void sync_grid(void *code);  // a barrier of all threads of the launch
void sync_cluster(void *code);
// The address of a shared variable in another block of the cluster.
void *map_shared(const void *address, unsigned rank, void *code);
unsigned cluster_rank();
unsigned cluster_rank(const void *address);  // of the block whose shared memory it is
const std::uint32_t *cluster_size();         // blocks in x, y and z
void fence(Scope scope);
// What the thread's atomics have read is ordered before its later accesses.
void acquire();
// The end of a phase of a cuda::barrier, and a wait for it that has succeeded: it acquires the
// arrivals of this phase and of earlier ones, not of later ones.
void end_phase(const void *barrier, std::uint32_t phase);
void await_phase(const void *barrier, std::uint32_t phase);
// Called while the phase that the thread waits for has not ended, and lacks `missing` arrivals.
void wait_for_arrivals(const void *barrier, const std::uint16_t *missing, void *code);
unsigned count_threads(bool vote, void *code);  // a barrier that returns the number of true votes
// Waits until no lane of the warp can continue; returns the lanes that wait at this code.
unsigned active_lanes(void *code);
// Ends the launch. `problem` is a key of `_PROBLEMS` in problems.py, or "key: text".
[[noreturn]] void stop(const char *problem, void *code);
// Called at the beginning of functions of the host; ends the launch if a kernel called them.
void in_host_function(const char *name, void *code);
// `stop("converted")`, unless the number is undefined and the launch is compared (see compare.h).
void stop_conversion(void *code);
// Bits of an unwritten local variable. `name` contains its name and line.
std::uint64_t undefined_bits(const char *name) __attribute__((const));
// memmove and memset with checks of every word.
void *copy_memory(void *to, const void *from, std::size_t bytes, void *code);
void *fill_memory(void *to, int byte, std::size_t bytes, void *code);
// Copies at once, with `zeros` zeros at the end; both ranges are watched until the thread waits.
// A commit ends a group of copies; a wait leaves at most `unfinished` of the latest groups.
// Copies with a `barrier` are finished when its phase is.
void copy_async(void *to, const void *from, unsigned bytes, unsigned zeros, void *code,
                const void *barrier = nullptr);
void commit_copies();
void await_copies(unsigned unfinished);
// Called before a thread arrives at a barrier, and when the last one has.
void arrive_with_copies(const void *barrier);
void finish_copies(const void *barrier);
// Ends the launch unless a GPU copies so many bytes asynchronously, to shared memory.
void check_async_copy(const void *to, std::size_t bytes, std::size_t zeros, void *code);
// Applies n * 2^first steps of XORWOW to the five words of its state.
void skip_xorwow(std::uint32_t *v, std::uint64_t n, unsigned first);
unsigned lane();

template <typename F>
struct Returned;
template <typename T>
struct Returned<int(T)> {
    static constexpr std::size_t alignment = alignof(T);
};
template <typename F>
constexpr std::size_t alignment() {
    return Returned<F>::alignment;
}
template <int BYTES>
constexpr std::size_t alignment() {
    return BYTES;
}

// T in a context where template arguments are not deduced.
template <typename T>
using identity_t = typename std::common_type<T>::type;

// The bytes of `from` as a value of another type, truncated or padded with zeros.
template <typename To, typename From>
EMULATOR_INSTRUCTION inline To bits(From from) {
    To to{};
    std::memcpy(static_cast<void *>(&to), &from,
                sizeof(To) < sizeof(From) ? sizeof(To) : sizeof(From));
    return to;
}

// The undefined bits of element `i`: others than those of its neighbors, but for zeros.
constexpr std::uint64_t element_bits(std::uint64_t bits, std::uint64_t i) {
    return bits ? bits ^ (i * 0x0025000b00130007 & 0x003f003f003f003f) : 0;
}
template <typename T>
__attribute__((always_inline)) inline void set_undefined(T &variable, std::uint64_t bits) {
    if constexpr (std::is_same_v<T, bool>) bits &= 1;
    __builtin_memcpy(&variable, &bits, sizeof(T));
}
template <typename T, std::size_t N, std::size_t... I>
__attribute__((always_inline)) inline void set_elements(T (&array)[N], std::uint64_t bits,
                                                        std::index_sequence<I...>) {
    (set_undefined(array[I], element_bits(bits, I)), ...);
}

// Writes undefined bits to a local variable that has just been declared without a value. Padding
// stays zero, since copies of structures contain it. Inlined, and short arrays by element, so that
// a variable that is written before it is read costs nothing.
template <typename T>
__attribute__((always_inline)) inline void undefine(T &declared, const char *name) {
    auto &variable = const_cast<std::remove_cv_t<T> &>(declared);
    using Element = std::remove_cv_t<std::remove_extent_t<T>>;
    constexpr bool is_small = sizeof(Element) <= 8 && std::is_scalar_v<Element>;
    const std::uint64_t bits = undefined_bits(name);
    if constexpr (is_small && !std::is_array_v<T>) {
        set_undefined(variable, bits);
    } else if constexpr (is_small && sizeof(T) <= 256) {
        set_elements(variable, bits, std::make_index_sequence<std::extent_v<T>>());
    } else if constexpr (std::is_trivially_default_constructible_v<std::remove_all_extents_t<T>>) {
        auto *bytes = reinterpret_cast<char *>(&variable);
        for (std::size_t at = 0; at + 8 <= sizeof(T); at += 8) {
            const std::uint64_t word = element_bits(bits, at / 8);
            __builtin_memcpy(bytes + at, &word, 8);
        }
        constexpr std::size_t rest = sizeof(T) % 8;
        const std::uint64_t word = element_bits(bits, sizeof(T) / 8);
        if constexpr (rest) __builtin_memcpy(bytes + sizeof(T) - rest, &word, rest);
#if __has_builtin(__builtin_clear_padding)
        if constexpr (std::is_trivially_copyable_v<T>) __builtin_clear_padding(&variable);
#endif
    }
}

}  // namespace emulator

// source.py inserts it after declarations of local variables without an initial value.
#ifdef EMULATOR_TRACKS_UNDEFINED
#define EMULATOR_TEXT(...) #__VA_ARGS__
#define EMULATOR_LINE(LINE) EMULATOR_TEXT(LINE)
#define EMULATOR_UNDEFINED(NAME) \
    emulator::undefine(NAME, #NAME " (line " EMULATOR_LINE(__LINE__) ")")
#else
#define EMULATOR_UNDEFINED(NAME)
#endif

struct uint3;
struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
    dim3(uint3 from);
    operator uint3() const;
};
// Constants to kernels, so that the compiler may keep them in registers.
#ifdef EMULATOR_RUNTIME
extern dim3 threadIdx, blockIdx, blockDim, gridDim;
#else
extern const dim3 threadIdx, blockIdx, blockDim, gridDim;
#endif
constexpr int warpSize = 32;

#include "vectors.h"

inline dim3::dim3(uint3 from) : x(from.x), y(from.y), z(from.z) {}
inline dim3::operator uint3() const { return {x, y, z}; }

#include "intrinsics.h"

#include "simd.h"

#include "atomics.h"

EMULATOR_BARRIER inline void __syncthreads() { emulator::sync_threads(EMULATOR_HERE); }
EMULATOR_BARRIER inline void __syncwarp(unsigned mask = ~0u, unsigned line = __builtin_LINE()) {
    emulator::sync_warp(mask, EMULATOR_HERE, line);
}
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

#include "ptx.h"

#include "fragments.h"

#include "services.h"

#include "textures.h"

EMULATOR_BARRIER inline void *emulator_memcpy(void *to, const void *from, std::size_t bytes) {
    return emulator::copy_memory(to, from, bytes, EMULATOR_HERE);
}
EMULATOR_BARRIER inline void *emulator_memset(void *to, int byte, std::size_t bytes) {
    return emulator::fill_memory(to, byte, bytes, EMULATOR_HERE);
}
namespace std {
using ::emulator_memcpy;
using ::emulator_memset;
}  // namespace std

// Dynamic shared memory, at a fixed address: source.py replaces `extern __shared__ T name[];` by
// DYNAMIC_SHARED(T, name).
#define EMULATOR_DYNAMIC_SHARED 0x078000000000ull
#define DYNAMIC_SHARED(T, NAME) T *const NAME = reinterpret_cast<T *>(EMULATOR_DYNAMIC_SHARED)
// The same for `extern __shared__ T name[][COLUMNS];`, with the lengths in parentheses.
#define EMULATOR_DYNAMIC_ROWS(LENGTHS, NAME, ...) \
    __VA_ARGS__(*const NAME) EMULATOR_ALL LENGTHS = \
        reinterpret_cast<__VA_ARGS__(*) EMULATOR_ALL LENGTHS>(EMULATOR_DYNAMIC_SHARED)

#include "entry.h"

// At the end, since the headers above call the C functions.
#ifndef EMULATOR_RUNTIME
#define memcpy emulator_memcpy
#define memmove emulator_memcpy
#define memset emulator_memset
#endif
