// Asynchronous copies: the functions of kernels/async_copy.cuh for the emulator.
#pragma once

template <typename T>
EMULATOR_INSTRUCTION inline void copy_async(T *shared, const T *global) {
    if (sizeof(T) == 2) return emulator::move(global, shared, 2, 2, EMULATOR_HERE);
    emulator::copy_async(shared, global, sizeof(T), 0, EMULATOR_HERE);
}
EMULATOR_BARRIER inline void close_copies() { emulator::commit_copies(); }
template <int LEFT>
EMULATOR_BARRIER inline void await_copies() {
    emulator::await_copies(LEFT);
}
