// Replaces CUDA's header of this name: `reduce` returns the reduction of the values of all members
// of a group to every member.
#pragma once

#include "../cooperative_groups.h"

namespace cooperative_groups {

template <typename Group, typename T, typename Operation>
EMULATOR_BARRIER T reduce(const Group &group, T value, Operation operation) {
    return details::combined(group, value, operation, group.num_threads(), EMULATOR_HERE);
}

}  // namespace cooperative_groups
