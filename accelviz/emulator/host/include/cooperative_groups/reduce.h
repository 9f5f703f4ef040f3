// A value of all members of a group, made of what each brings.
#pragma once

#include "../cooperative_groups.h"

namespace cooperative_groups {

template <typename Group, typename T, typename Operation>
EMULATOR_BARRIER T reduce(const Group &group, T value, Operation operation) {
    T values[32];
    group.gather(value, values, EMULATOR_HERE);
    T result = values[0];
    for (unsigned rank = 1; rank < group.num_threads(); ++rank) {
        result = operation(result, values[rank]);
    }
    return result;
}

}  // namespace cooperative_groups
