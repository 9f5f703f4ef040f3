// Copies from global to shared memory that go on while the thread does something else. GPUs before
// compute capability 8.0, and the emulator, copy at once.
#pragma once

#include "common.cuh"

// Copies 4, 8 or 16 bytes; 2 at once, as there is no such instruction. Both addresses are multiples
// of that.
template <typename T>
DEVICE_INLINE void copy_async(T *shared, const T *global) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    const unsigned to = unsigned(__cvta_generic_to_shared(shared));
    if constexpr (sizeof(T) == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(global) : "memory");
    } else if constexpr (sizeof(T) == 2) {
        *shared = *global;
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(global),
                     "n"(int(sizeof(T)))
                     : "memory");
    }
#else
    *shared = *global;
#endif
}

// Closes the group of copies begun since the last call.
DEVICE_INLINE void close_copies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until no more than LEFT of this thread's groups, the last ones, are under way.
template <int LEFT>
DEVICE_INLINE void await_copies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
#endif
}
