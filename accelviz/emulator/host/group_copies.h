// Asynchronous copies by the members of a group.
#pragma once

#include <cstddef>
#include <type_traits>

#include "cuda_on_host.h"

namespace emulator {

struct SingleThread {
    static constexpr unsigned thread_rank() {
        return 0;
    }
    static constexpr unsigned num_threads() {
        return 1;
    }
};

// Neighboring members copy neighboring elements, so that accesses coalesce on a GPU; the first one
// copies the bytes of an incomplete element at the end.
template <typename Group, typename T>
EMULATOR_INSTRUCTION void copy_elements(const Group &group, T *to, const T *from, std::size_t bytes,
                                        void *code, const void *barrier = nullptr) {
    using Element = std::conditional_t<std::is_void_v<T>, char, T>;
    const std::size_t size = sizeof(Element), rank = group.thread_rank();
    const std::size_t power = size & (size - 1) ? alignof(Element) : size;
    const auto copy = [&](std::size_t at, std::size_t wide) {
        copy_async(static_cast<char *>(static_cast<void *>(to)) + at,
                   static_cast<const char *>(static_cast<const void *>(from)) + at, unsigned(wide),
                   0, code, barrier);
    };
    const std::size_t wide = power < 16 ? power : 16, end = bytes / size * size;
    for (std::size_t at = rank * size; at < end; at += group.num_threads() * size) {
        for (std::size_t part = 0; part < size; part += wide) copy(at + part, wide);
    }
    for (std::size_t at = end; at < bytes && !rank; ++at) copy(at, 1);
}

}  // namespace emulator
