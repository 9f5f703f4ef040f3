// Asynchronous copies from global to shared memory. GPUs before compute capability 8.0 copy
// synchronously; the emulator watches both ranges until the wait.
#pragma once

#include "common.cuh"

#ifdef EMULATOR
#include "instructions/async_copy.h"
#else

// Starts a copy of 4, 8 or 16 bytes; 2 bytes are copied at once, as PTX has no such instruction.
// Both addresses must be multiples of the size.
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

// Commits this thread's copies since the last call as one group.
DEVICE_INLINE void close_copies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until at most LEFT of this thread's latest groups are unfinished.
template <int LEFT>
DEVICE_INLINE void await_copies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
#endif
}

#endif
