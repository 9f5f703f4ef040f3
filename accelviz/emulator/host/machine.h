// The machine: runs the threads of a block as fibers, has their accesses judged, and traces them.
//
// Threads switch where CUDA lets one wait for another: at barriers and warp-wide exchanges, and now
// and then at atomics and volatile loads, for loops that wait for another thread. A traced block
// switches at each access and basic block, too, so that the lanes of a warp go side by side. Of
// lanes at different addresses the lowest goes first: as on a GPU, lanes that leave a loop or skip
// a branch wait where the paths meet again.
#pragma once

#include <deque>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "meetings.h"
// After all others, as it gives words of theirs another meaning.
#include "cuda_on_host.h"

namespace emulator {

inline std::vector<std::uint32_t> numbers(std::uint32_t first, std::uint32_t count) {
    std::vector<std::uint32_t> numbers(count);
    std::iota(numbers.begin(), numbers.end(), first);
    return numbers;
}

static void **arguments;
static void (*kernel_entry)(void **);
static std::mt19937_64 random_bits;
static std::deque<std::uint32_t> polling;

inline bool runs(const Thread &thread) {
    return thread.state == State::UNSTARTED || thread.state == State::READY;
}

inline void resume(Thread &thread) {
    if (thread.state == State::UNSTARTED) {
        if (!thread.fiber) thread.fiber = std::make_unique<Fiber>();
        thread.fiber->reset();
    }
    thread.state = State::READY;
    current = &thread;
    threadIdx = index_of(thread.index, blockDim);
    thread.fiber->enter();
}

inline std::uint32_t taken(std::deque<std::uint32_t> &queue) {
    const auto next = queue.begin() + (launch->seed ? random_bits() % queue.size() : 0);
    const std::uint32_t index = *next;
    queue.erase(next);
    return index;
}

inline std::vector<std::uint32_t> thread_order() {
    if (!launch->seed) return numbers(0, threads.size());
    std::vector<std::uint32_t> warps = numbers(0, (threads.size() + lanes - 1) / lanes), mixed;
    std::ranges::shuffle(warps, random_bits);
    for (std::uint32_t warp : warps) {
        const std::uint32_t first = warp * lanes, left = threads.size() - first;
        std::vector<std::uint32_t> inside = numbers(first, std::min(lanes, left));
        std::ranges::shuffle(inside, random_bits);
        mixed.insert(mixed.end(), inside.begin(), inside.end());
    }
    return mixed;
}

// Runs threads until all have left the kernel or wait for others.
inline void run_freely() {
    const std::vector<std::uint32_t> order = thread_order();
    for (std::size_t next = 0;;) {
        Thread *thread;
        if (!ready.empty()) {
            thread = &threads[taken(ready)];
        } else if (next < order.size()) {
            thread = &threads[order[next++]];
        } else if (!polling.empty()) {
            thread = &threads[taken(polling)];
        } else {
            return;
        }
        if (!runs(*thread)) continue;  // it ran already
        resume(*thread);
        if (failed()) return;
    }
}

// Brings all lanes of a warp to their next access, then lets those at the lowest address go on.
inline bool step_warp(std::span<Thread> warp) {
    for (bool again = true; again;) {
        again = false;
        for (Thread &thread : warp) {
            if (!runs(thread)) continue;
            resume(thread);
            if (failed()) return false;
            again = true;
        }
    }
    std::uint64_t lowest = ~0ull;
    for (const Thread &thread : warp) {
        if (thread.state == State::AT_ACCESS) lowest = std::min(lowest, thread.code);
    }
    const std::size_t before = trace.size();
    for (Thread &thread : warp) {
        if (thread.state != State::AT_ACCESS || thread.code != lowest) continue;
        thread.state = State::READY;
        thread.record.step = steps;
        if (thread.records) trace.push_back(thread.record);
    }
    steps += trace.size() > before;
    return lowest != ~0ull;
}

// Runs warps in turn, a step each, until all have left the kernel or wait for others.
inline void run_traced() {
    for (bool moved = true; moved;) {
        moved = false;
        for (std::size_t first = 0; first < threads.size(); first += lanes) {
            moved |= step_warp(warp_at(first));
            if (failed()) return;
        }
    }
    ready.clear();
}

inline void run_block(std::uint32_t number) {
    block = number;
    blockIdx = index_of(number, gridDim);
    epoch = 0;
    steps = 0;
    begin_block();
    for (Thread &thread : threads) {
        thread.state = State::UNSTARTED;
        if (!thread.known[lane_of(thread)] || thread.synced) {
            std::ranges::fill(thread.known, 0);
            thread.known[lane_of(thread)] = 1;
            thread.synced = false;
        }
        thread.order = nullptr;
        thread.doubt.array = -1;
        thread.flag.address = nullptr;
        thread.last = thread.passed = thread.yields = 0;
    }
    for (;;) {
        launch->traced ? run_traced() : run_freely();
        if (failed() || (!meet() && !pass_barrier())) break;
    }
}

// Runs the launch; `code` calls the kernel with `values`.
inline void run(void (*code)(void **), void **values, const EmulatorArray *arrays) {
    kernel_entry = code;
    arguments = values;
    random_bits.seed(launch->seed);
    memory = new Memory(arrays, launch->n_arrays, base, launch->n_blocks < 32);
    blockDim = dim3(launch->block[0], launch->block[1], launch->block[2]);
    gridDim = dim3(launch->grid[0], launch->grid[1], launch->grid[2]);
    threads.resize(blockDim.x * blockDim.y * blockDim.z);
    for (std::size_t i = 0; i < threads.size(); ++i) threads[i].index = i;
    std::vector<std::uint32_t> blocks = numbers(launch->first_block, launch->n_blocks);
    if (launch->seed) std::ranges::shuffle(blocks, random_bits);
    for (std::uint32_t number : blocks) {
        run_block(number);
        if (failed()) return;
    }
    if (launch->writer_of[0] >= 0) name_writer(launch->writer_of[0], launch->writer_of[1]);
}

inline void run_current() {
    kernel_entry(arguments);
    settle(*current);
    current->state = State::DONE;
    Warp &warp = waiting_of(*current);
    warp.left |= 1u << lane();
    // Other lanes may wait for this one.
    for (unsigned waiting : Lanes{warp.waiting}) {
        if (complete_exchange(warp_of(*current)[waiting])) break;
    }
    current->fiber->leave();
}

void access(const void *address, unsigned bytes, Kind kind, Scope scope, void *code) {
    if (!current) return;
    const Access access{static_cast<const char *>(address), bytes, kind, scope, address_of(code)};
    const int number = launch->checked ? judge(access) : -1;
    if (number < 0 && (launch->checked || access.kind < ATOMIC)) return;
    Thread &self = *current;
    if (launch->traced) {
        const std::uint16_t warp = self.index / lanes, bytes = access.bytes;
        const std::uint8_t lane = lane_of(self), kind = plain(access.kind);
        const std::uint64_t offset = address_of(access.address) - memory->array(number).address;
        self.record = {block, warp,  lane, kind, 0, std::int16_t(number),
                       bytes,  access.code - base, offset};
        self.records = true;
        wait(State::AT_ACCESS, access.code);
    } else if (access.kind >= ATOMIC && ++self.polls == 32) {
        self.polls = 0;
        ++self.yields;
        self.state = State::READY;
        polling.push_back(self.index);
        self.fiber->leave();
    }
}

// Lanes that took different paths meet again at the beginning of a basic block.
inline void begin_basic_block(std::uint64_t code) {
    if (!current) return;
    current->passed = current->last;
    current->last = code;
    if (!launch->traced) return;
    current->records = false;
    wait(State::AT_ACCESS, code);
}

unsigned lane() { return lane_of(*current); }

}  // namespace emulator
