// Inclusive and exclusive scans of the values of a group's members.
#pragma once

#include "../cooperative_groups.h"

namespace cooperative_groups {

template <typename Group, typename T, typename Operation = plus<T>>
EMULATOR_BARRIER T inclusive_scan(const Group &group, T value, Operation operation = {}) {
    return details::combined(group, value, operation, group.thread_rank() + 1, EMULATOR_HERE);
}
// The result of the first member is T().
template <typename Group, typename T, typename Operation = plus<T>>
EMULATOR_BARRIER T exclusive_scan(const Group &group, T value, Operation operation = {}) {
    return details::combined(group, value, operation, group.thread_rank(), EMULATOR_HERE);
}

}  // namespace cooperative_groups
