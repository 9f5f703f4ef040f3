// The threads of a launch with their state, and the note of a problem in its answer.
#pragma once

#include <dlfcn.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

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

// A plain load that no barrier orders with an atomic. It is no race if an atomicCAS on the value
// follows, as in loops that build other atomics.
struct Doubt {
    Access access{};
    int array = -1;  // none
    unsigned age = 0, lane = 0;
    Entry other{};
};

// A volatile load of another block's store, which may be a flag.
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
    bool vote = false, orders = false, polled = false;  // for an exchange
    unsigned votes = 0;
    // The last access or basic block, and the one before it if it is a basic block.
    std::uint64_t last = 0, passed = 0;
    unsigned polls = 0;
    std::uint64_t yields = 0;
    std::uint32_t known[lanes] = {};  // clocks of its warp's lanes up to which it knows
    bool synced = false;  // whether they have changed in this block
    const Order *order = nullptr;
    Doubt doubt;
    Flag flag;
};

inline unsigned lane_of(const Thread &thread) { return thread.index % lanes; }

inline dim3 index_of(unsigned number, const dim3 &size) {
    return dim3(number % size.x, number / size.x % size.y, number / size.x / size.y);
}

// The state of the launch, of which this process has one.
static const EmulatorLaunch *launch;
static EmulatorAnswer *answer;
static Memory *memory;
static std::uint64_t base;  // where the kernel's library begins
static std::vector<Thread> threads;
static Thread *current = nullptr;  // none while the library is loaded
static std::uint32_t block = 0, epoch = 0;  // epoch: how often the block has passed a barrier
static std::vector<std::uint32_t> guessed;
static std::unordered_map<std::uint64_t, Log> logs;
static bool fences = false;

inline Kind plain(Kind kind) {
    return kind == VOLATILE_LOAD    ? LOAD
           : kind == VOLATILE_STORE ? STORE
           : kind == COMPARE        ? ATOMIC
                                    : kind;
}

inline bool loads(Kind kind) { return kind == LOAD || kind == VOLATILE_LOAD; }

inline bool is_shared(const EmulatorArray &array) {
    return array.space == SHARED || array.space == DYNAMIC;
}

inline bool failed() { return answer->problem[0]; }

inline void name_thread(std::uint32_t block, std::uint32_t thread, std::uint32_t *block_index,
                 std::uint32_t *thread_index) {
    const dim3 in_grid = index_of(block, gridDim), in_block = index_of(thread, blockDim);
    std::memcpy(block_index, &in_grid, sizeof(dim3));
    std::memcpy(thread_index, &in_block, sizeof(dim3));
}

inline void note(const char *problem, std::uint32_t thread, std::uint64_t code, int array) {
    put(answer->problem, problem);
    answer->code = code - base;
    answer->array = array;
    answer->in_kernel = 1;
    name_thread(block, thread, answer->block, answer->thread);
}

[[noreturn]] inline void fail(const char *problem, std::uint64_t code, int array = -1) {
    note(problem, current->index, code, array);
    current->fiber->leave();
    std::abort();  // a failed fiber is never entered again
}

[[noreturn]] inline void fail_at(const char *problem, int array, const Access &access) {
    answer->kind = plain(access.kind);
    answer->bytes = access.bytes;
    answer->offset =
        address_of(access.address) - (array < 0 ? 0 : memory->array(array).address);
    fail(problem, access.code, array);
}

// For a signal's handler, after which the process ends.
inline void note_here(const char *problem, std::uint64_t code) {
    if (!current) return put(answer->problem, problem);
    note(problem, current->index, code ? code : current->last, -1);
    answer->waiting = current->yields > 1000;
}

inline bool on_stack(const void *address) {
    return current && current->fiber->guards(address);
}

}  // namespace emulator
