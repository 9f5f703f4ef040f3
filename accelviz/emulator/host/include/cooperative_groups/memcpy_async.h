// Asynchronous copies by a group; `wait` waits for those of its thread, and is a barrier.
#pragma once

#include "../cooperative_groups.h"

namespace cooperative_groups {

namespace details {

// Neighboring members copy neighboring elements, so that accesses coalesce on a GPU.
template <typename Group, typename T>
EMULATOR_INSTRUCTION void copy(const Group &group, T *to, const T *from, std::size_t bytes,
                               void *code) {
    using Element = std::conditional_t<std::is_void_v<T>, char, T>;
    const unsigned size = sizeof(Element), wide = size & (size - 1) ? alignof(Element) : size;
    for (std::size_t at = group.thread_rank() * size; at + size <= bytes;
         at += group.num_threads() * size) {
        for (unsigned part = 0; part < size; part += wide < 16 ? wide : 16) {
            emulator::copy_async(static_cast<char *>(static_cast<void *>(to)) + at + part,
                                 static_cast<const char *>(static_cast<const void *>(from)) + at +
                                     part,
                                 wide < 16 ? wide : 16, 0, code);
        }
    }
    emulator::commit_copies();
}

}  // namespace details

template <typename Group, typename T, typename Bytes>
EMULATOR_INSTRUCTION void memcpy_async(const Group &group, T *to, const T *from, Bytes bytes) {
    details::copy(group, to, from, std::size_t(bytes), EMULATOR_HERE);
}
// Copies min(n_to, n_from) elements.
template <typename Group, typename T>
EMULATOR_INSTRUCTION void memcpy_async(const Group &group, T *to, std::size_t n_to, const T *from,
                                       std::size_t n_from) {
    details::copy(group, to, from, (n_to < n_from ? n_to : n_from) * sizeof(T), EMULATOR_HERE);
}
template <typename Group>
EMULATOR_BARRIER void wait(const Group &group) {
    emulator::await_copies(0);
    group.sync();
}
// Waits for all but the last `N` copies.
template <unsigned N, typename Group>
EMULATOR_BARRIER void wait_prior(const Group &group) {
    emulator::await_copies(N);
    group.sync();
}

}  // namespace cooperative_groups
