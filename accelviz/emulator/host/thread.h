// What the emulator knows of a thread of the running block.
#pragma once

#include <memory>

#include "fibers.h"
#include "memory.h"
#include "order.h"
#include "runtime.h"
// After all others, as it gives words of theirs another meaning.
#include "cuda_on_host.h"

namespace emulator {

inline std::uint64_t address_of(const void *code) { return reinterpret_cast<std::uint64_t>(code); }

enum class State { UNSTARTED, READY, AT_ACCESS, AT_BARRIER, AT_EXCHANGE, MEETING, DONE };

struct Access {
    const char *address;
    unsigned bytes;
    Kind kind;
    Scope scope;
    std::uint64_t code;
};

// A plain load that no barrier orders with an atomic. It is no race if an atomicCAS follows which
// finds out whether the value still holds, as in loops that make atomics of it.
struct Doubt {
    Access access{};
    int array = -1;  // none
    unsigned age = 0, lane = 0;
    Entry other{};
};

// A volatile load of what a thread of another block has stored, which may have been a flag.
struct Flag {
    const char *address = nullptr;
    Entry store{};
    std::uint32_t epoch = 0, clock = 0;  // the loading thread's
};

struct Thread {
    State state = State::UNSTARTED;
    std::uint32_t index = 0;  // in the block
    std::unique_ptr<Fiber> fiber;
    std::uint64_t code = 0;  // where it waits
    std::uint32_t arrived = 0;  // step in which it came to a barrier
    bool records = false;    // at an access, and not at the beginning of a basic block
    EmulatorRecord record{};
    unsigned mask = 0;
    std::uint64_t value = 0;
    int source = 0;
    bool vote = false, orders = false, polled = false;  // what it brings to an exchange, and wants
    unsigned votes = 0;
    // The last access or basic block, and the one before it if it is a basic block.
    std::uint64_t last = 0, passed = 0;
    unsigned polls = 0;
    std::uint64_t yields = 0;
    std::uint32_t known[lanes] = {};  // clocks of its warp's lanes up to which it knows; its own too
    bool synced = false;  // whether they have changed in this block
    const Order *order = nullptr;
    Doubt doubt;
    Flag flag;
};

inline dim3 place(unsigned number, const dim3 &size) {
    return dim3(number % size.x, number / size.x % size.y, number / size.x / size.y);
}

}  // namespace emulator
