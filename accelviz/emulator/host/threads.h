// The threads of a launch, the state of the launch, and reports of problems in its answer.
#pragma once

#include <dlfcn.h>
#include <sys/time.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "fibers.h"
#include "order.h"
#include "memory.h"
#include "runtime.h"
// Last, because its macros redefine C functions.
#include "cuda_on_host.h"

namespace emulator {

inline std::uint64_t address_of(const void *code) { return reinterpret_cast<std::uint64_t>(code); }

enum class State {
    UNSTARTED,
    READY,
    AT_ACCESS,
    AT_BARRIER,
    AT_CLUSTER_BARRIER,
    AT_GRID_BARRIER,
    AT_EXCHANGE,
    AT_TILE,
    AT_PHASE,  // of a cuda::barrier
    AT_ACTIVEMASK,
    DONE
};

struct Access {
    const char *address;
    unsigned bytes;
    Kind kind;
    Scope scope;
    std::uint64_t code;
};

// A possible race: a plain load that is unordered with an atomic. It is harmless if an atomicCAS of
// the same address follows soon, as in loops that implement other atomics.
struct Doubt {
    int array = -1;  // -1: no doubt
    Access access{};
    unsigned age = 0, lane = 0;
    Entry other{};
};

// The thread's latest volatile load of another block's store, which may have been a flag.
struct Flag {
    const char *address = nullptr;
    Entry store{};
    std::uint32_t epoch = 0, clock = 0;  // the loading thread's
};

// An asynchronous copy, see copies.h.
struct Copy {
    std::uint64_t to, from;
    unsigned bytes, read;  // bytes of the destination, and of the source: the others become zeros
    unsigned group;        // number of commits of the thread before it
    std::uint64_t code;
    const void *barrier;  // whose phase it belongs to, if any
    bool arrived;         // whether the thread has arrived there since
    std::uint32_t block, thread;
};

// A store to bytes (a mask) of the word at offset `at` that another thread has stored, unordered: a
// race unless the thread stores the value that is there.
struct Rewrite {
    Access access;
    std::uint64_t at;
    unsigned bytes;
    int array;
    unsigned lane;
    Entry other;
    char before[4];
};

constexpr std::uint64_t basic_block = 1ull << 63;

// The first members are those that each barrier uses, close together.
struct alignas(64) Thread {
    // Code of the last access or basic block; of a basic block with the bit `basic_block`, and then
    // also the one before.
    std::uint64_t last = 0, before_last = 0;
    Loads *loads = nullptr;  // of its warp, see shared.h
    FirstLoad *first_loads = nullptr;
    // Equal tags of threads of a warp are of one phase and one clock; see `new_tag`.
    std::uint32_t tag = 0;
    std::uint32_t lane_bit = 0, warp = 0;
    State state = State::UNSTARTED;
    std::uint32_t n_visited = 0;
    std::uint32_t index = 0;  // in the block
    dim3 position;            // threadIdx
    bool judged = false;            // whether it has left, and what it ran is known to be right
    bool forgot = false;            // whether `visited` lacks blocks from before an exchange
    std::uint32_t arrived = 0;      // step in which it arrived at a barrier
    std::unique_ptr<Fiber> fiber;   // null before it starts and after it has ended
    std::uint64_t code = 0;         // address of the code where it waits
    const Order *order = nullptr;   // order by fences, see order.h
    std::vector<Rewrite> rewrites;  // by its last store
    bool synced = false;            // whether `known` has changed in this block
    Doubt doubt;
    std::uint32_t known[lanes] = {};  // accesses of its warp's lanes up to these clocks are ordered
    bool records = false;       // whether `record` is valid: not at the beginning of a basic block
    EmulatorRecord record{};
    // Arguments and results of an exchange; `orders` for __syncwarp, `polled` for a vote.
    unsigned mask = 0, line = 0;
    std::uint64_t value = 0;
    int source = 0;
    std::uint32_t tile = 0, tile_size = 0;  // first thread and size of the tile that it waits for
    const void *barrier = nullptr;  // the cuda::barrier for whose phase it waits
    const std::uint16_t *missing = nullptr;  // number of arrivals that the phase lacks
    bool vote = false, orders = false, polled = false;
    unsigned votes = 0;
    unsigned polls = 0;               // atomics and volatile accesses since the last yield
    const char *compared = nullptr;   // address of the latest atomicCAS, if it yielded before it
    std::uint64_t yields = 0;
    Flag flag;
    std::vector<Copy> copies;
    unsigned group = 0;  // number of its commits of asynchronous copies
    std::uint32_t visited[32];  // first basic blocks since the last barrier, see divergence.h
    char padding[48];    // neighbors use different lines of the processor's caches
};
static_assert(sizeof(Thread) % 128 == 64);

inline unsigned lane_of(const Thread &thread) { return thread.index % lanes; }

inline dim3 index_of(unsigned number, const dim3 &size) {
    return dim3(number % size.x, number / size.x % size.y, number / size.x / size.y);
}

// The state of the launch; a process runs one launch.
static const EmulatorLaunch *launch;
static EmulatorAnswer *answer;
static const EmulatorAnswer *deferred_answer = nullptr;  // see divergence.h
static Memory *memory;
static std::uint64_t base;  // address of the kernel's library
static std::vector<Thread> threads;
static Thread *current = nullptr;           // null while the library is loaded
static Thread *plain = nullptr;             // the same if `may_be_plain`, else null
static std::uint32_t block = 0, epoch = 0;  // epoch: number of barriers that the block has passed
// A tag for threads of a warp whose clocks are now equal, or for those of a block. After 2^32
// barriers and fences, earlier loads could be taken for later ones.
inline std::uint32_t new_tag() {
    static std::uint32_t latest = 0;
    return ++latest ? latest : ++latest;
}
// Epoch of every block after the latest barrier of the grid, which orders all accesses before it.
static std::uint32_t grid_epoch = 0;
static std::vector<std::uint32_t> first_guesses;     // code of loads, see `is_first_guess`
static std::unordered_map<std::uint64_t, Log> logs;  // by address of atomics
// Whether any thread has started an asynchronous copy or called __ldg of a writable array.
static bool watched = false;
static bool awaited = false;  // whether any thread has waited for an asynchronous copy
static bool has_short_paths = false;  // whether `access` may be replaced: not in traces
static bool fences = false;                          // whether any thread has called a fence

// Whether plain accesses of a thread may take the short paths of plain.h.
inline bool may_be_plain(const Thread &thread) {
    return has_short_paths && thread.doubt.array < 0 && thread.rewrites.empty();
}

inline void renew_plain() { plain = may_be_plain(*current) ? current : nullptr; }

inline Kind base_kind(Kind kind) {
    switch (kind) {
        case READ_ONLY_LOAD:
        case VOLATILE_LOAD:
        case ATOMIC_LOAD: return LOAD;
        case VOLATILE_STORE:
        case ATOMIC_STORE: return STORE;
        case ARRIVE:
        case POLL:
        case COUNT:
        case COMPARE: return ATOMIC;
        default: return kind;
    }
}

inline bool is_load(Kind kind) { return base_kind(kind) == LOAD; }

// Whether clusters have more than one block.
inline bool has_clusters() {
    return launch->cluster[0] * launch->cluster[1] * launch->cluster[2] > 1;
}

inline bool failed() { return answer->problem[0]; }

// Writes the indices of a thread and its block.
inline void name_thread(std::uint32_t block, std::uint32_t thread, std::uint32_t *block_index,
                 std::uint32_t *thread_index) {
    const dim3 in_grid = index_of(block, gridDim), in_block = index_of(thread, blockDim);
    std::memcpy(block_index, &in_grid, sizeof(dim3));
    std::memcpy(thread_index, &in_block, sizeof(dim3));
}

// Writes the calls that have led to the code of a thread to the answer; see callers.h.
void add_callers(std::uint32_t thread, std::uint64_t code);

// The calls that have led to code of a thread, without a problem.
inline std::vector<std::uint64_t> callers_of(std::uint32_t thread, std::uint64_t code) {
    answer->n_callers = 0;
    add_callers(thread, code);
    const std::vector<std::uint64_t> callers(answer->callers, answer->callers + answer->n_callers);
    answer->n_callers = 0;
    return callers;
}

inline void set_problem(const char *problem, std::uint32_t thread, std::uint64_t code, int array) {
    answer->n_callers = 0;
    add_callers(thread, code);
    copy_text(answer->problem, problem);
    answer->code = code - base;
    answer->array = array;
    answer->in_kernel = 1;
    name_thread(block, thread, answer->block, answer->thread);
}

// Called before a problem is reported: an earlier one that was deferred is reported instead.
inline bool report_deferred() {
    if (deferred_answer) *answer = *deferred_answer;
    return deferred_answer;
}

[[noreturn]] inline void fail(const char *problem, std::uint64_t code, int array = -1) {
    if (!report_deferred()) set_problem(problem, current->index, code, array);
    current->fiber->leave();
    std::abort();  // a failed fiber is never entered again
}

[[noreturn]] inline void fail_at(const char *problem, int array, const Access &access) {
    answer->kind = base_kind(access.kind);
    answer->bytes = access.bytes;
    answer->offset =
        address_of(access.address) - (array < 0 ? 0 : memory->array(array).address);
    fail(problem, access.code, array);
}

// `set_problem` in a signal handler; `code` is 0 if unknown.
inline void set_problem_in_signal(const char *problem, std::uint64_t code) {
    if (report_deferred()) return;
    if (!current) return copy_text(answer->problem, problem);
    set_problem(problem, current->index, code ? code : current->last & ~basic_block, -1);
    answer->waiting = current->yields > 1000;
}

inline void limit_time(int timer, double seconds) {
    const itimerval limit{{0, 0}, {time_t(seconds), suseconds_t(std::fmod(seconds, 1) * 1e6)}};
    setitimer(timer, &limit, nullptr);
}

// Whether code is in the kernel's own function.
inline bool is_in_kernel(std::uint64_t code) {
    return code - base > launch->kernel[0] && code - base <= launch->kernel[1];
}

inline bool on_stack(const void *address) {
    return current && current->fiber && current->fiber->guards(address);
}

}  // namespace emulator
