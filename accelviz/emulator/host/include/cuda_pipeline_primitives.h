// Asynchronous copies by single threads, in groups that a thread commits and waits for.
#pragma once

#include <cstddef>

#include "cuda_on_host.h"

// Copies 4, 8 or 16 bytes from global to shared memory; the last `zeros` of them become zeros.
EMULATOR_INSTRUCTION inline void __pipeline_memcpy_async(void *to, const void *from,
                                                         std::size_t bytes, std::size_t zeros = 0) {
    emulator::check_async_copy(to, bytes, zeros, EMULATOR_HERE);
    emulator::copy_async(to, from, unsigned(bytes), unsigned(zeros), EMULATOR_HERE);
}
EMULATOR_BARRIER inline void __pipeline_commit() { emulator::commit_copies(); }
EMULATOR_BARRIER inline void __pipeline_wait_prior(std::size_t unfinished) {
    emulator::await_copies(unsigned(unfinished));
}
