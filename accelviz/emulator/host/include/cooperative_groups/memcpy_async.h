// Asynchronous copies by a group; `wait` waits for those of its thread, and is a barrier.
#pragma once

#include "../cooperative_groups.h"
#include "group_copies.h"

namespace cooperative_groups {

template <typename Group, typename T, typename Bytes>
EMULATOR_INSTRUCTION void memcpy_async(const Group &group, T *to, const T *from, Bytes bytes) {
    emulator::copy_elements(group, to, from, std::size_t(bytes), EMULATOR_HERE);
    emulator::commit_copies();
}
// Copies min(n_to, n_from) elements.
template <typename Group, typename T>
EMULATOR_INSTRUCTION void memcpy_async(const Group &group, T *to, std::size_t n_to, const T *from,
                                       std::size_t n_from) {
    const std::size_t bytes = (n_to < n_from ? n_to : n_from) * sizeof(T);
    emulator::copy_elements(group, to, from, bytes, EMULATOR_HERE);
    emulator::commit_copies();
}
template <typename Group>
EMULATOR_BARRIER void wait(const Group &group) {
    emulator::await_copies(0);
    group.sync_at(EMULATOR_HERE);
}
// Waits for all but the last `N` copies.
template <unsigned N, typename Group>
EMULATOR_BARRIER void wait_prior(const Group &group) {
    emulator::await_copies(N);
    group.sync_at(EMULATOR_HERE);
}

}  // namespace cooperative_groups
