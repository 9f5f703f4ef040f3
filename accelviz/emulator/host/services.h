// printf, assert, clocks, and compile-time errors for functions that kernels cannot call.
//
// Included by cuda_on_host.h.
#pragma once

namespace emulator {

// What printf's conversions tell apart: a floating-point number, an integer, a text, an address.
template <typename T>
constexpr char printed_kind() {
    if constexpr (std::is_floating_point_v<T>) return 'f';
    if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) return 'i';
    using Value = std::remove_pointer_t<T>;
    if constexpr (std::is_pointer_v<T> && std::is_integral_v<Value>)
        return sizeof(Value) == 1 ? 's' : 'p';
    return std::is_convertible_v<T, const void *> ? 'p' : '?';
}

// Not strchr, as functions of C that a kernel of A4 names may become calls of it.
EMULATOR_PURE bool is_among(char letter, const char *letters) {
    while (*letters && *letters != letter) ++letters;
    return letter && *letters;
}

// Ends the launch unless CUDA's printf has each conversion of a format and its argument fits.
// `kinds` has a letter an argument. With `reads_texts`, reads the texts of %s as the kernel's loads.
EMULATOR_PURE void check_format(const char *format, const char *kinds, const void *const *arguments,
                                void *code, bool reads_texts) {
    const auto fail = [&](const char *from, const char *to, const char *argument) {
        static char text[160];
        std::snprintf(text, sizeof text, "printf: %.*s for %s", int(to - from), from, argument);
        stop(text, code);
    };
    unsigned n = 0;
    for (const char *c = format; *c; ++c) {
        if (*c != '%' || *++c == '%') continue;
        const char *from = c - 1;
        long precision = -1;
        bool after_point = false;
        for (; is_among(*c, "-+ #0123456789.*hljzt"); ++c) {
            if (*c == '.') after_point = true, precision = 0;
            if (after_point && *c >= '0' && *c <= '9') precision = 10 * precision + (*c - '0');
            if (*c != '*') continue;
            if (kinds[n] != 'i') fail(from, c + 1, kinds[n] ? "no integer" : "a missing argument");
            if (after_point) precision = *static_cast<const int *>(arguments[n]);
            ++n;
        }
        const char *wanted = !*c                          ? ""
                             : is_among(*c, "diouxXc") ? "i"
                             : is_among(*c, "eEfgGaA") ? "f"
                             : *c == 's'                  ? "s"
                             : *c == 'p'                  ? "sp"
                                                          : "";
        const char *to = *c ? c + 1 : c;
        if (!*wanted) fail(from, to, "any argument");
        if (!kinds[n]) fail(from, to, "a missing argument");
        if (!is_among(kinds[n], wanted))
            fail(from, to,
                 kinds[n] == 'f'   ? "a floating-point number"
                 : kinds[n] == 'i' ? "an integer"
                 : kinds[n] == '?' ? "a structure"
                                   : "a pointer");
        if (*c == 's' && reads_texts) {
            const char *text = *static_cast<const char *const *>(arguments[n]);
            for (char letter = 1; letter && precision != 0; ++text, --precision)
                copy_memory(&letter, text, 1, code);
        }
        ++n;
        if (!*c) return;
    }
}

// Prints immediately; returns the number of arguments, as on a GPU.
template <typename... A>
EMULATOR_INSTRUCTION int print(const char *format, A... arguments) {
    const char kinds[] = {printed_kind<A>()..., 0};
    const void *const addresses[] = {__builtin_addressof(arguments)..., nullptr};
    // Again, as other warps of a traced block may change the format at each of these loads.
    for (bool reads_texts : {true, false})
        check_format(format, kinds, addresses, EMULATOR_HERE, reads_texts);
    std::printf(format, arguments...);
    std::fflush(stdout);
    return sizeof...(A);
}

// Each call adds 64 cycles, so that results are reproducible and loops that wait for a time end.
EMULATOR_PURE long long cycles() {
    read_clock();
    static long long now = 0;
    return now += 64;
}

EMULATOR_BARRIER inline void require(bool holds, const char *problem) {
    if (!holds) stop(problem, EMULATOR_HERE);
}

// See EMULATOR_WHOLE.
template <typename T>
__attribute__((always_inline)) inline T &&whole(T &&x) {
    return static_cast<T &&>(x);
}
EMULATOR_BARRIER inline void host_function(const char *name) {
    in_host_function(name, EMULATOR_HERE);
}

}  // namespace emulator

#define printf(...) emulator::print(__VA_ARGS__)
#define clock() clock_t(emulator::cycles())
inline long long clock64() {
    return emulator::cycles();
}
inline void __nanosleep(unsigned) {
}
inline void __prof_trigger(int) {
}
inline void __brkpt() {
}

// The value of a conditional node matters to the graph alone, which the emulator does not run.
typedef unsigned long long cudaGraphConditionalHandle;
inline void cudaGraphSetConditional(cudaGraphConditionalHandle, unsigned) {
}

// g++ has no __builtin_assume.
#ifndef __clang__
#define __builtin_assume(...) static_cast<void>(0)
#endif
#define __assume(...) __builtin_assume(__VA_ARGS__)

// Called in checked builds for a conversion of a floating-point number out of the integer type's
// range. It is undefined in C++; a GPU returns the nearest integer, or 0 for NaN.
extern "C" __attribute__((used)) EMULATOR_INSTRUCTION inline void
__ubsan_handle_float_cast_overflow(void *, std::uintptr_t) {
    emulator::stop_conversion(EMULATOR_HERE);
}

// g++ calls it to test whether a static variable in a function is initialised: always in kernels.
extern "C" __attribute__((used)) EMULATOR_INSTRUCTION inline unsigned char __tsan_atomic8_load(
    const volatile unsigned char *, int) {
    return 1;
}

// ptx.py replaces inline PTX in the kernel's own file; in others it is an error at its own line.
#define asm                                                                         \
    _Pragma(                                                                        \
        "GCC error \"the emulator runs no PTX of included files: use functions of " \
        "docs/emulator.md, or put it into the file of the kernel\"") __asm__

// C functions that do not exist in CUDA or in the emulator: a call is a compile-time error.
#ifndef EMULATOR_RUNTIME
#ifdef __clang__
#define EMULATOR_ERROR(WHY) __attribute__((diagnose_if(true, WHY, "error")))
#else
#define EMULATOR_ERROR(WHY) __attribute__((error(WHY)))
#endif
#define EMULATOR_REFUSED(NAME, WHY) extern __typeof__(NAME) NAME EMULATOR_ERROR(WHY);
#define EMULATOR_OF_HOST(NAME)                                                     \
    EMULATOR_REFUSED(NAME, #NAME                                                   \
                     " is a function of the host, which no kernel can call: pass " \
                     "what it gives as an argument")
EMULATOR_OF_HOST(rand)
EMULATOR_OF_HOST(srand) EMULATOR_OF_HOST(random) EMULATOR_OF_HOST(time) EMULATOR_OF_HOST(getenv)
    EMULATOR_OF_HOST(system) EMULATOR_OF_HOST(qsort) EMULATOR_OF_HOST(puts)
        EMULATOR_OF_HOST(putchar) EMULATOR_OF_HOST(scanf) EMULATOR_OF_HOST(fopen)
#define EMULATOR_NO_HEAP                                                                         \
    "the emulator has no memory to be allocated by kernels: use a local array of fixed length, " \
    "shared memory, or an array that is an argument"
            EMULATOR_REFUSED(malloc, EMULATOR_NO_HEAP) EMULATOR_REFUSED(calloc, EMULATOR_NO_HEAP)
                EMULATOR_REFUSED(realloc, EMULATOR_NO_HEAP)
#ifndef __clang__  // clang reports errors in C++'s headers; accesses to memory of `new` are checked
                    void *operator new(std::size_t) EMULATOR_ERROR(EMULATOR_NO_HEAP);
void *operator new[](std::size_t) EMULATOR_ERROR(EMULATOR_NO_HEAP);
#endif
#endif

#include <assert.h>
