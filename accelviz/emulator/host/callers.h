// The calls that have led to an instruction of the kernel, for messages: a mistake in a function of
// a library, or in a helper, is also named at the line that calls it.
#pragma once

#include <dlfcn.h>
#include <unwind.h>

#include <iterator>

#include "threads.h"

namespace emulator {

// Whether code is in the kernel's library.
inline bool in_kernel_library(std::uint64_t code) {
    Dl_info info;
    return dladdr(reinterpret_cast<void *>(code), &info) && address_of(info.dli_fbase) == base;
}

// Adds a return address to the answer. Returns false if it is none of the kernel, or the last.
inline bool add_caller(std::uint64_t code) {
    if (answer->n_callers == std::size(answer->callers) || !in_kernel_library(code)) return false;
    answer->callers[answer->n_callers++] = code - base;
    return true;
}

// Passes on the return addresses of frames on a stack, as long as `pass` returns true: the kernel's
// functions have frame pointers.
inline void walk(const std::uintptr_t *frame, const Fiber &fiber, auto pass) {
    while (fiber.owns(frame + 1) && pass(frame[1])) {
        const auto *next = reinterpret_cast<const std::uintptr_t *>(frame[0]);
        if (next <= frame) break;
        frame = next;
    }
}

// The frame of the function that continues at `code`, which the running thread has called; null if
// there is none. The kernel may have destroyed frames behind it.
inline const std::uintptr_t *calling_frame(std::uint64_t code) {
    struct Search {
        std::uint64_t code, frame;
    } search{code, 0};
    const auto visit = [](_Unwind_Context *context, void *data) {
#if defined(__x86_64__)
        constexpr int frame_register = 6;
#else
        constexpr int frame_register = 29;
#endif
        auto &search = *static_cast<Search *>(data);
        if (_Unwind_GetIP(context) != search.code) return _URC_NO_REASON;
        search.frame = _Unwind_GetGR(context, frame_register);
        return _URC_END_OF_STACK;
    };
    _Unwind_Backtrace(visit, &search);
    return reinterpret_cast<const std::uintptr_t *>(search.frame);
}

// The frame of the function in which a thread waits at `code`, which is a return address on its
// stack, in front of which is the address of that frame; null if there is none.
inline const std::uintptr_t *waiting_frame(const Fiber &fiber, std::uint64_t code) {
    if (fiber.owns(__builtin_frame_address(0))) return calling_frame(code);
    for (const std::uintptr_t *at = fiber.top(); fiber.owns(at + 1); ++at) {
        const auto *frame = reinterpret_cast<const std::uintptr_t *>(at[0]);
        if (at[1] == code && frame > at && fiber.owns(frame + 1) && frame[1] != code) return frame;
    }
    return nullptr;
}

// Describes the calls that have led to the code at which `set_problem` names a thread.
void add_callers(std::uint32_t index, std::uint64_t code) {
    const Thread &thread = threads[index];
    const std::uintptr_t *frame = thread.fiber ? waiting_frame(*thread.fiber, code) : nullptr;
    if (frame) walk(frame, *thread.fiber, add_caller);
}

// The code of the kernel itself at which a thread waits: perhaps its call of a function that waits.
std::uint64_t code_in_kernel(const Thread &thread) {
    std::uint64_t code = thread.code;
    const std::uintptr_t *frame = is_in_kernel(code) || !thread.fiber
                                      ? nullptr
                                      : waiting_frame(*thread.fiber, code);
    const auto pass = [&](std::uint64_t caller) {
        if (is_in_kernel(caller)) code = caller;
        return code != caller && in_kernel_library(caller);
    };
    if (frame) walk(frame, *thread.fiber, pass);
    return code;
}

}  // namespace emulator
