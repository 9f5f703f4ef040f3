// Barriers of a block and exchanges of a warp, and errors if threads do not reach them.
#pragma once

#include <algorithm>
#include <array>
#include <deque>
#include <span>
#include <unordered_map>
#include <vector>

#include "compare.h"
#include "copies.h"
// Last, because its macros redefine C functions.
#include "cuda_on_host.h"

namespace emulator {

static std::vector<EmulatorRecord> trace;
static std::uint32_t steps = 0;          // number of steps of the traced block
static std::deque<std::uint32_t> ready;  // threads whose exchange is complete
// Masks of the lanes that called a shuffle, by warp and address of the call.
static std::unordered_map<std::uint64_t, std::array<unsigned, lanes>> groups;
static std::size_t n_at_activemask = 0;  // number of threads that wait at an __activemask
static unsigned barrier_votes = 0;  // number of true votes at a __syncthreads_count
struct Warp {
    unsigned waiting = 0, left = 0;  // masks of lanes at an exchange, and outside of the kernel
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

inline void begin_phase(std::uint32_t new_epoch) {
    epoch = new_epoch;
    shared.begin_phase(block, epoch);
    std::uint32_t tag = 0, clock = 0;
    for (Thread &thread : threads) {
        const std::uint32_t thread_clock = thread.synced ? thread.known[lane_of(thread)] : 1;
        if (!tag || thread_clock != clock) tag = new_tag();
        clock = thread_clock;
        thread.tag = tag;
        thread.n_visited = 0;
        thread.forgot = false;
    }
}

// Switches from the current thread to the next one; see machine.h.
void switch_threads();

inline void suspend(State state, std::uint64_t code) {
    if (state != State::AT_ACCESS) settle_rewrites();
    note(WAIT, code, 0, 0);
    current->state = state;
    current->code = code;
    switch_threads();
}

// Reports that `thread` waits for ever, and that `other` (if any) does not arrive.
inline void report_missing(const char *problem, const Thread &thread, const Thread *other,
                           std::uint32_t waiting, std::uint32_t left) {
    set_problem(problem, thread.index, thread.code, -1);
    answer->waiting = waiting;
    answer->left = left;
    answer->bytes = other != nullptr;
    if (other) {
        answer->other_code = other->state == State::DONE ? 0 : other->code - base;
        name_thread(block, other->index, answer->other_block, answer->other_thread);
    }
}

// Adds a note on threads that wait for each other at two addresses; Python compares their lines.
inline void add_note(const Thread &thread, const Thread &other, bool warp, bool unlike) {
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

// Checks shuffles that read outside the mask. It is an error if no lane reads inside the mask and
// the source lanes call the same shuffle with another mask: both masks were meant to be one.
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

// Orders all earlier accesses of the lanes of a mask before all later ones (see order.h).
inline void share_order(std::span<Thread> mates, unsigned named, unsigned present) {
    std::uint32_t known[lanes] = {}, clock = 0;
    const Order *order = nullptr;
    for (unsigned lane : Lanes{named}) {
        for (unsigned i = 0; i < lanes; ++i)
            known[i] = std::max(known[i], mates[lane].known[i]);
        order = merged(order, mates[lane].order);
    }
    for (unsigned lane : Lanes{named}) clock = std::max(clock, known[lane]);
    const std::uint32_t tag = new_tag();
    for (unsigned lane : Lanes{present}) {
        Thread &thread = mates[lane];
        std::ranges::copy(known, thread.known);
        thread.known[lane] = clock + 1;
        thread.tag = tag;
        thread.synced = true;
        thread.order = order;
    }
}

// Completes an exchange if every lane of its mask waits there or has left, else returns false.
inline bool complete_exchange(const Thread &self) {
    const std::span<Thread> mates = warp_of(self);
    Warp &warp = waiting_of(self);
    const unsigned mask = self.mask, named = mask & ~0u >> (lanes - mates.size());
    if (named & ~(warp.waiting | warp.left)) return false;
    std::uint64_t values[lanes];
    unsigned votes = 0, present = 0;
    bool orders = false;
    bool any_left = false;
    const Thread *departed = nullptr;
    for (unsigned lane : Lanes{named}) {
        const Thread &thread = mates[lane];
        values[lane] = thread.value;
        if (thread.state == State::DONE) {
            any_left |= !thread.judged;
            if (went_past(thread, self)) departed = &thread;
            continue;
        }
        if (thread.mask != mask) return false;
        votes |= unsigned(thread.vote) << lane;
        present |= 1u << lane;
        orders |= thread.orders;
    }
    if (departed) {
        report_missing("lanes missing", self, departed, 0, 0);
        current->fiber->leave();
    }
    if (any_left) {
        const auto is_present = [&](const Thread &thread) {
            return present >> lane_of(thread) & 1;
        };
        suspect_departed(mates, self, is_present, "lanes missing", 1 + self.warp, 0, 0);
    }
    if (self.source & may_be_outside) check_groups(mates, present, mask);
    for (unsigned lane : Lanes{present}) {
        Thread &thread = mates[lane];
        const bool both = thread.orders && self.orders;
        const bool unlike = thread.orders != self.orders || thread.polled != self.polled;
        if (thread.code != self.code && !both) add_note(self, thread, true, unlike);
        const unsigned source = thread.source % lanes;
        const bool lenient = thread.source & may_be_outside;
        if (mask >> source & 1 ? !(present >> source & 1) : !lenient) {
            current = &thread;
            fail(mask >> source & 1 ? "lane gone" : "lane outside mask", thread.code);
        }
        thread.value = mask >> source & 1 ? values[source] : undefined({thread.code, false});
        thread.votes = votes;
        thread.state = State::READY;
        if (&thread != current && !launch->traced) ready.push_back(thread.index);
    }
    warp.waiting &= ~present;
    if (orders) share_order(mates, named, present);
    return true;
}

// Releases threads at __activemask, if any; lanes of a warp at the same code get one mask.
inline bool release_active_lanes() {
    bool any_released = false;
    if (!n_at_activemask) return false;
    n_at_activemask = 0;
    for (Thread &thread : threads) {
        if (thread.state != State::AT_ACTIVEMASK) continue;
        unsigned active = 0;
        for (const Thread &other : warp_of(thread)) {
            const bool same = other.state == State::AT_ACTIVEMASK && other.code == thread.code;
            active |= unsigned(same) << lane_of(other);
        }
        for (Thread &other : warp_of(thread)) {
            if (!(active >> lane_of(other) & 1)) continue;
            other.mask = active;
            other.state = State::READY;
        }
        any_released = true;
    }
    return any_released;
}

// Returns a lane in a waiting thread's mask that is neither at the exchange nor has left.
inline const Thread *missing_lane(const Thread &waiting) {
    for (const Thread &thread : warp_of(waiting)) {
        const bool present = thread.state == State::AT_EXCHANGE && thread.mask == waiting.mask;
        const bool named = waiting.mask >> lane_of(thread) & 1;
        if (named && !present && thread.state != State::DONE) return &thread;
    }
    return nullptr;
}

// Appends the wait of each warp at a barrier to the trace.
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

enum class Passed { YES, NO, OUTER };

// Whether a thread waits at a barrier of the cluster or of the grid.
inline bool waits_outside(const Thread &thread) {
    return thread.state == State::AT_CLUSTER_BARRIER || thread.state == State::AT_GRID_BARRIER;
}

// Returns a thread of the tile that `waiting` waits for, which does not wait there.
inline const Thread *missing_from_tile(const Thread &waiting) {
    for (const Thread &thread : std::span(threads).subspan(waiting.tile, waiting.tile_size)) {
        if (thread.state != State::AT_TILE) return &thread;
    }
    return nullptr;
}

// Reports threads that wait for the phase of a barrier at which nobody will arrive. Called when no
// thread can run. Returns whether there are any.
inline bool report_deadlock() {
    const auto stuck = std::ranges::find(threads, State::AT_PHASE, &Thread::state);
    if (stuck == threads.end()) return false;
    std::uint32_t waiting = 0, left = 0;
    const Thread *other = nullptr;
    for (const Thread &thread : threads) {
        const bool with = thread.state == State::AT_PHASE && thread.code == stuck->code;
        waiting += with;
        left += thread.state == State::DONE;
        if (!with && thread.state != State::DONE && !other) other = &thread;
    }
    report_missing("deadlock", *stuck, other, waiting, left);
    answer->missing = *stuck->missing;
    return true;
}

// Releases the threads at a barrier of the block. Returns NO if the block has ended or a thread is
// missing, OUTER if its threads wait at a barrier of the cluster or of the grid.
inline Passed pass_barrier() {
    std::uint32_t waiting = 0, left = 0;
    Thread *stuck = nullptr, *first = nullptr;
    const Order *all = nullptr;
    for (Thread &thread : threads) {
        if (thread.order != all) all = merged(all, thread.order);
        const bool at_barrier = thread.state == State::AT_BARRIER || waits_outside(thread);
        const bool waits = at_barrier && (!first || thread.state == first->state);
        const bool done = thread.state == State::DONE;
        waiting += waits;
        left += done;
        if (waits && !first) first = &thread;
        if (!waits && !done && !stuck) stuck = &thread;
    }
    if (report_suspect()) return Passed::NO;
    const bool is_over = left == threads.size();
    const State at = first ? first->state : State::DONE;
    const char *const missed = at == State::AT_CLUSTER_BARRIER ? "cluster barrier missed"
                               : at == State::AT_GRID_BARRIER  ? "grid barrier missed"
                                                               : "barrier missed";
    if (deferred) {
        const bool other_cause = is_over || stuck || judge_deferred(at, missed, waiting, left);
        if (other_cause) report_deferred();
        else if (at == State::AT_GRID_BARRIER) report_missed(suspects.begin()->second);
        if (failed()) return Passed::NO;
    }
    if (is_over || report_deadlock()) return Passed::NO;
    if (stuck && stuck->state == State::AT_TILE) {
        report_missing("tile missed", *stuck, missing_from_tile(*stuck), waiting, left);
        return Passed::NO;
    }
    if (stuck) {
        const bool at_barrier = stuck->state != State::AT_EXCHANGE;
        report_missing(at_barrier ? "barriers differ" : "lanes missing", *stuck,
                       at_barrier ? first : missing_lane(*stuck), waiting, left);
        return Passed::NO;
    }
    if (left) {
        const auto waits = [&](const Thread &thread) { return thread.state == at; };
        suspect_departed(threads, *first, waits, missed, 0, waiting, left);
    }
    forget_known_landings(all);
    for (const Thread &thread : threads) {
        if (thread.state == at && thread.code != first->code)
            add_note(*first, thread, false, false);
    }
    if (first->state == State::AT_CLUSTER_BARRIER) return Passed::OUTER;
    if (first->state == State::AT_GRID_BARRIER) {
        if (threads[0].state != State::DONE) return Passed::OUTER;
        report_missing("grid barrier missed", *first, &threads[0], waiting, left);
        return Passed::NO;
    }
    if (launch->traced) record_waits();
    begin_phase(epoch + 1);
    for (Thread &thread : threads) {
        thread.order = all;
        if (thread.state == State::DONE) continue;
        thread.state = State::READY;
    }
    return Passed::YES;
}

void sync_threads(void *code) {
    report_doubt(*current);
    current->arrived = steps;
    suspend(State::AT_BARRIER, address_of(code));
}

char (*tile_values())[32] {
    static char values[1024][32];
    return values;
}

// A barrier of the `size` threads from `first` on, which are several warps.
void sync_tile(unsigned first, unsigned size, void *code) {
    Thread &self = *current;
    report_doubt(self);
    self.tile = first;
    self.tile_size = std::min<std::size_t>(size, threads.size() - first);
    const std::span tile = std::span(threads).subspan(first, self.tile_size);
    const std::uint64_t key = address_of(&self) - self.index * sizeof(Thread) + first;
    fence(BLOCK);
    synchronise(key, ATOMIC);
    const auto waits = [&](const Thread &thread) {
        return &thread == &self || (thread.state == State::AT_TILE && thread.tile_size == self.tile_size);
    };
    if (!std::ranges::all_of(tile, waits)) {
        suspend(State::AT_TILE, address_of(code));
    } else {
        for (Thread &thread : tile) {
            if (&thread == &self) continue;
            thread.state = State::READY;
            if (!launch->traced) ready.push_back(thread.index);
        }
    }
    synchronise(key, ATOMIC);
    acquire();
}

void end_phase(const void *barrier, std::uint32_t phase) {
    if (Log *log = log_of_barrier(barrier)) log->phases[phase] = log->releases.size();
    for (Thread &thread : threads) {
        if (thread.state != State::AT_PHASE || thread.barrier != barrier) continue;
        thread.state = State::READY;
        if (!launch->traced) ready.push_back(thread.index);
    }
}

// Only threads of the block can arrive at a barrier in its shared memory, unless there are clusters:
// a thread that waits for another barrier keeps looking.
void wait_for_arrivals(const void *barrier, const std::uint16_t *missing, void *code) {
    const int number = memory->find(address_of(barrier));
    if (has_clusters() || number < 0 || !is_shared(memory->array(number))) return;
    report_doubt(*current);
    current->barrier = barrier;
    current->missing = missing;
    suspend(State::AT_PHASE, address_of(code));
}

void sync_cluster(void *code) {
    if (!has_clusters()) return sync_threads(code);
    report_doubt(*current);
    current->arrived = steps;
    suspend(State::AT_CLUSTER_BARRIER, address_of(code));
}

void sync_grid(void *code) {
    if (has_clusters()) fail("grid barrier in clusters", address_of(code));
    constexpr std::uint64_t most_threads = 16384;  // each has a stack as long as the grid waits
    if (std::uint64_t(launch->n_blocks) * threads.size() > most_threads)
        fail("grid too large", address_of(code));
    report_doubt(*current);
    current->arrived = steps;
    suspend(State::AT_GRID_BARRIER, address_of(code));
}

// Between the two barriers, every thread reads the number of votes.
unsigned count_threads(bool vote, void *code) {
    barrier_votes += vote;
    sync_threads(code);
    const unsigned count = barrier_votes;
    sync_threads(code);
    barrier_votes -= vote;  // not = 0: other threads may have voted for the next barrier
    return count;
}

unsigned active_lanes(void *code) {
    ++n_at_activemask;
    suspend(State::AT_ACTIVEMASK, address_of(code));
    return current->mask;
}

inline std::uint64_t exchange(unsigned mask, std::uint64_t value, int source, bool vote,
                              unsigned *votes, bool orders, std::uint64_t code,
                              unsigned line) {
    Thread &self = *current;
    const unsigned lane = lane_of(self);
    report_doubt(self);
    settle_rewrites();
    note(WAIT, code, mask, 0);
    self.mask = mask;
    self.value = value;
    self.source = source < 0 ? int(lane) : source;
    self.vote = vote;
    self.orders = orders;
    self.polled = votes != nullptr;
    self.code = code;
    self.line = line;
    self.state = State::AT_EXCHANGE;
    waiting_of(self).waiting |= 1u << lane;
    if (!(mask >> lane & 1)) fail("not in mask", code);
    if (!complete_exchange(self)) switch_threads();
    if (votes) *votes = self.votes;
    return self.value;
}

std::uint64_t exchange(unsigned mask, std::uint64_t value, int source, bool vote, unsigned *votes,
                       void *code, unsigned line) {
    return exchange(mask, value, source, vote, votes, false, address_of(code), line);
}
void sync_warp(unsigned mask, void *code, unsigned line) {
    exchange(mask, 0, -1, false, nullptr, true, address_of(code), line);
}

}  // namespace emulator
