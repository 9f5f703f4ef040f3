// What the members of a group up to the calling one bring, combined.
#pragma once

#include "../cooperative_groups.h"

namespace cooperative_groups {

template <typename Group, typename T, typename Operation = plus<T>>
EMULATOR_BARRIER T inclusive_scan(const Group &group, T value, Operation operation = {}) {
    T values[32];
    group.gather(value, values, EMULATOR_HERE);
    T result = values[0];
    for (unsigned rank = 1; rank <= group.thread_rank(); ++rank) {
        result = operation(result, values[rank]);
    }
    return result;
}

// The first member gets T().
template <typename Group, typename T, typename Operation = plus<T>>
EMULATOR_BARRIER T exclusive_scan(const Group &group, T value, Operation operation = {}) {
    T values[32];
    group.gather(value, values, EMULATOR_HERE);
    const unsigned before = group.thread_rank();
    T result = before ? values[0] : T();
    for (unsigned rank = 1; rank < before; ++rank) result = operation(result, values[rank]);
    return result;
}

}  // namespace cooperative_groups
