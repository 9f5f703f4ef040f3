// Meetings: barriers of a block and exchanges of a warp, and the threads that are missing there.
#pragma once

#include <algorithm>
#include <array>
#include <deque>
#include <span>
#include <unordered_map>
#include <vector>

#include "judge.h"
// After all others, as it gives words of theirs another meaning.
#include "cuda_on_host.h"

namespace emulator {

static std::vector<EmulatorRecord> trace;
static std::uint32_t steps = 0;  // of the block that is traced
static std::deque<std::uint32_t> ready;
// By warp and code: the masks of lanes that came to a shuffle there.
static std::unordered_map<std::uint64_t, std::array<unsigned, lanes>> groups;
static unsigned barrier_votes = 0;  // of the threads at a __syncthreads_count
// Lanes that wait at an exchange, and lanes that have left the kernel.
struct Warp {
    unsigned waiting = 0, left = 0;
};
static std::vector<Warp> warps;
inline Warp &waiting_of(const Thread &thread) { return warps[thread.index / lanes]; }
inline std::span<Thread> warp_at(std::size_t first) {
    return std::span(threads).subspan(first,
                                       std::min<std::size_t>(lanes, threads.size() - first));
}
inline std::span<Thread> warp_of(const Thread &thread) {
    return warp_at(thread.index / lanes * lanes);
}

inline void begin_block() {
    warps.assign((threads.size() + lanes - 1) / lanes, {});
    groups.clear();
}

// Whether a thread that has left the kernel went past a barrier. Leaving early is allowed; what it
// did last, before the block that ends the function, tells.
inline bool went_past(const Thread &thread, std::uint64_t barrier) {
    const std::uint64_t last = thread.passed ? thread.passed : thread.last;
    const auto inside = [&](std::uint64_t code) {
        return code - base > launch->kernel[0] && code - base <= launch->kernel[1];
    };
    return inside(barrier) && inside(last) && last > barrier;
}

inline void wait(State state, std::uint64_t code) {
    current->state = state;
    current->code = code;
    current->fiber->leave();
}

inline void report(const char *problem, const Thread &thread, const Thread *other,
            std::uint32_t waiting, std::uint32_t left) {
    note(problem, thread.index, thread.code, -1);
    answer->waiting = waiting;
    answer->left = left;
    answer->bytes = other != nullptr;
    if (other) {
        answer->other_code = other->state == State::DONE ? 0 : other->code - base;
        name_thread(block, other->index, answer->other_block, answer->other_thread);
    }
}

// Notes threads that wait together at two addresses. Python knows whether these are one line.
inline void note_together(const Thread &thread, const Thread &other, bool warp, bool unlike) {
    const std::uint64_t code = thread.code - base, other_code = other.code - base;
    const std::span notes(answer->notes, answer->n_notes);
    const auto same = [&](const EmulatorNote &note) {
        return note.code == code && note.other_code == other_code;
    };
    if (std::ranges::any_of(notes, same) || notes.size() == std::size(answer->notes)) return;
    EmulatorNote &note = answer->notes[answer->n_notes++];
    note = {.code = code, .other_code = other_code, .warp = warp, .unlike = unlike};
    name_thread(block, thread.index, note.block, note.thread);
    name_thread(block, other.index, note.block, note.other_thread);
}

// Reads from outside the mask are allowed if the number is not used. If no lane reads inside, and
// the lanes read came to the same code with another mask, one mask of both was meant.
inline void check_groups(std::span<Thread> mates, unsigned present, unsigned mask) {
    if (present == ~0u) return;
    auto &masks = groups[mates[0].index + mates[*Lanes{present}].code * threads.size()];
    Thread *outside = nullptr;
    bool inside = false;
    for (unsigned lane : Lanes{present}) {
        const unsigned source = mates[lane].source % lanes;
        masks[lane] = mask;
        inside |= source != lane && mask >> source & 1;
        if (!(mask >> source & 1) && masks[source] && !(masks[source] >> lane & 1))
            outside = &mates[lane];
    }
    if (inside || !outside) return;
    current = outside;
    fail("lane outside mask", outside->code);
}

// Lets the lanes that came know what any of them knew.
inline void share_order(std::span<Thread> mates, unsigned named, unsigned present) {
    std::uint32_t known[lanes] = {}, clock = 0;
    const Order *order = nullptr;
    for (unsigned lane : Lanes{named}) {
        for (unsigned i = 0; i < lanes; ++i)
            known[i] = std::max(known[i], mates[lane].known[i]);
        order = united(order, mates[lane].order);
    }
    for (unsigned lane : Lanes{named}) clock = std::max(clock, known[lane]);
    for (unsigned lane : Lanes{present}) {
        Thread &thread = mates[lane];
        std::ranges::copy(known, thread.known);
        thread.known[lane] = clock + 1;
        thread.synced = true;
        thread.order = order;
    }
}

// Gives every lane of the mask its value once all have come or left the kernel.
inline bool complete_exchange(const Thread &self) {
    const std::span<Thread> mates = warp_of(self);
    Warp &warp = waiting_of(self);
    const unsigned mask = self.mask, named = mask & ~0u >> (lanes - mates.size());
    if (named & ~(warp.waiting | warp.left)) return false;
    std::uint64_t values[lanes];
    unsigned votes = 0, present = 0;
    bool orders = false;
    const Thread *departed = nullptr;
    for (unsigned lane : Lanes{named}) {
        const Thread &thread = mates[lane];
        values[lane] = thread.value;
        if (thread.state == State::DONE) {
            if (went_past(thread, self.code)) departed = &thread;
            continue;
        }
        if (thread.mask != mask) return false;
        votes |= unsigned(thread.vote) << lane;
        present |= 1u << lane;
        orders |= thread.orders;
    }
    if (departed) {
        report("lanes missing", self, departed, 0, 0);
        current->fiber->leave();
    }
    if (self.source & anywhere) check_groups(mates, present, mask);
    for (unsigned lane : Lanes{present}) {
        Thread &thread = mates[lane];
        const bool both = thread.orders && self.orders;
        const bool unlike = thread.orders != self.orders || thread.polled != self.polled;
        if (thread.code != self.code && !both) note_together(self, thread, true, unlike);
        const unsigned source = thread.source % lanes;
        const bool lenient = thread.source & anywhere;
        if (mask >> source & 1 ? !(present >> source & 1) : !lenient) {
            current = &thread;
            fail(mask >> source & 1 ? "lane gone" : "lane outside mask", thread.code);
        }
        thread.value = mask >> source & 1 ? values[source] : undefined_value;
        thread.votes = votes;
        thread.state = State::READY;
        if (&thread != current && !launch->traced) ready.push_back(thread.index);
    }
    warp.waiting &= ~present;
    if (orders) share_order(mates, named, present);
    return true;
}

// Lets lanes at an __activemask go on with the lanes at the same code; false if there are none.
inline bool meet() {
    bool any = false;
    for (Thread &thread : threads) {
        if (thread.state != State::MEETING) continue;
        unsigned together = 0;
        for (const Thread &other : warp_of(thread)) {
            const bool meets = other.state == State::MEETING && other.code == thread.code;
            together |= unsigned(meets) << lane_of(other);
        }
        for (Thread &other : warp_of(thread)) {
            if (!(together >> lane_of(other) & 1)) continue;
            other.mask = together;
            other.state = State::READY;
        }
        any = true;
    }
    return any;
}

// Returns a lane of a waiting thread's mask that is elsewhere.
inline const Thread *missing_lane(const Thread &waiting) {
    for (const Thread &thread : warp_of(waiting)) {
        const bool present = thread.state == State::AT_EXCHANGE && thread.mask == waiting.mask;
        const bool named = waiting.mask >> lane_of(thread) & 1;
        if (named && !present && thread.state != State::DONE) return &thread;
    }
    return nullptr;
}

inline void record_waits() {
    for (std::size_t first = 0; first < threads.size(); first += lanes) {
        const Thread *last = nullptr;
        for (const Thread &thread : warp_at(first)) {
            if (thread.state != State::AT_BARRIER) continue;
            if (!last || thread.arrived >= last->arrived) last = &thread;
        }
        if (!last) continue;
        const std::uint16_t warp = first / lanes;
        trace.push_back({block, warp, 0, 3, last->arrived, -1, 0, last->code - base, steps});
    }
}

// Lets the threads go on from a barrier; false if the block has ended, or one never comes.
inline bool pass_barrier() {
    std::uint32_t waiting = 0, left = 0;
    Thread *stuck = nullptr, *first = nullptr, *departed = nullptr;
    for (Thread &thread : threads) {
        const bool waits = thread.state == State::AT_BARRIER;
        const bool done = thread.state == State::DONE;
        waiting += waits;
        left += done;
        if (waits && !first) first = &thread;
        if (!waits && !done && !stuck) stuck = &thread;
    }
    if (left == threads.size()) return false;
    for (Thread &thread : threads) {
        if (first && thread.state == State::DONE && went_past(thread, first->code))
            departed = &thread;
    }
    if (stuck) {
        report("lanes missing", *stuck, missing_lane(*stuck), waiting, left);
        return false;
    }
    if (departed) {
        report("barrier missed", *first, departed, waiting, left);
        return false;
    }
    if (launch->traced) record_waits();
    const Order *all = nullptr;
    for (const Thread &thread : threads) all = united(all, thread.order);
    for (Thread &thread : threads) {
        thread.order = all;
        if (thread.state == State::DONE) continue;
        if (thread.code != first->code) note_together(*first, thread, false, false);
        thread.state = State::READY;
    }
    ++epoch;
    return true;
}

void sync_threads(void *code) {
    settle(*current);
    current->arrived = steps;
    wait(State::AT_BARRIER, address_of(code));
}

// Counts the true votes of the block at a barrier; all read the count before a second one.
unsigned count_threads(bool vote, void *code) {
    barrier_votes += vote;
    sync_threads(code);
    const unsigned all = barrier_votes;
    sync_threads(code);
    barrier_votes -= vote;  // others may have voted for the next barrier already
    return all;
}

unsigned active_lanes(void *code) {
    wait(State::MEETING, address_of(code));
    return current->mask;
}

inline std::uint64_t exchange(unsigned mask, std::uint64_t value, int source, bool vote,
                              unsigned *votes, bool orders, std::uint64_t code) {
    Thread &self = *current;
    const unsigned lane = lane_of(self);
    settle(self);
    self.mask = mask;
    self.value = value;
    self.source = source < 0 ? int(lane) : source;
    self.vote = vote;
    self.orders = orders;
    self.polled = votes != nullptr;
    self.code = code;
    self.state = State::AT_EXCHANGE;
    waiting_of(self).waiting |= 1u << lane;
    if (!(mask >> lane & 1)) fail("not in mask", code);
    if (!complete_exchange(self)) self.fiber->leave();
    if (votes) *votes = self.votes;
    return self.value;
}

std::uint64_t exchange(unsigned mask, std::uint64_t value, int source, bool vote, unsigned *votes,
                       void *code) {
    return exchange(mask, value, source, vote, votes, false, address_of(code));
}
void sync_warp(unsigned mask, void *code) {
    exchange(mask, 0, -1, false, nullptr, true, address_of(code));
}

}  // namespace emulator
