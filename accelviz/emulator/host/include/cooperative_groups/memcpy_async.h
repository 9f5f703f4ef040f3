// Asynchronous copies by a group, executed immediately; `wait` is the group's barrier.
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
        emulator::move(static_cast<const char *>(static_cast<const void *>(from)) + at,
                       static_cast<char *>(static_cast<void *>(to)) + at, size,
                       wide < 16 ? wide : 16, code);
    }
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
    group.sync();
}
// On a GPU the last `N` copies may be unfinished; here all are finished.
template <unsigned N, typename Group>
EMULATOR_BARRIER void wait_prior(const Group &group) {
    group.sync();
}

}  // namespace cooperative_groups
