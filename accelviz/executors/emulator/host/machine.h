// The machine: runs the threads of a block as fibers, checks and traces their accesses.
//
// Threads switch only where CUDA lets one wait for another: at barriers and warp-wide exchanges, and
// now and then at atomics and volatile loads, so that a loop which waits for another thread gets
// what it waits for. A traced block switches at each access too, so that the lanes of a warp go
// through the kernel side by side. They also stop at each basic block, and among lanes that stand at
// different places the one with the lowest address goes first; lanes that leave a loop or skip a
// branch thus wait for the others where the paths meet again, as they do on a GPU.
#pragma once

#include <dlfcn.h>

#include <deque>
#include <memory>
#include <numeric>
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

// A plain load that no barrier orders with an atomic. It is no race if an atomicCAS follows which
// finds out whether the value still holds, as in loops that make atomics of it.
struct Doubt {
    Access access{};
    int array = -1;  // none
    unsigned age = 0, lane = 0;
    Entry other{};
};

struct Thread {
    State state = State::UNSTARTED;
    std::uint32_t index = 0;  // in the block
    std::unique_ptr<Fiber> fiber;
    std::uint64_t code = 0;  // where it waits
    bool records = false;    // at an access, and not at the beginning of a basic block
    EmulatorRecord record{};
    unsigned mask = 0;
    std::uint64_t value = 0;
    int source = 0;
    bool vote = false, orders = false;
    unsigned votes = 0;
    // The last access or basic block, and the one before it if it is a basic block.
    std::uint64_t last = 0, passed = 0;
    unsigned polls = 0;
    std::uint64_t yields = 0;
    std::uint32_t known[lanes] = {};  // clocks of its warp's lanes up to which it knows; its own too
    bool synced = false;  // whether they have changed in this block
    const Order *order = nullptr;
    Doubt doubt;
};

inline dim3 place(unsigned number, const dim3 &size) {
    return dim3(number % size.x, number / size.x % size.y, number / size.x / size.y);
}

inline std::vector<std::uint32_t> numbers(std::uint32_t first, std::uint32_t count) {
    std::vector<std::uint32_t> found(count);
    std::iota(found.begin(), found.end(), first);
    return found;
}

class Machine {
   public:
    // `entry` calls the kernel, whose library begins at `base`.
    Machine(const EmulatorLaunch &launch, EmulatorAnswer &answer, const EmulatorArray *arrays,
            void **arguments, void (*entry)(void **), std::uint64_t base)
        : launch_(launch), answer_(answer), memory_(arrays, launch.n_arrays, base),
          arguments_(arguments), entry_(entry), base_(base), random_(launch.seed) {
        blockDim = dim3(launch.block[0], launch.block[1], launch.block[2]);
        gridDim = dim3(launch.grid[0], launch.grid[1], launch.grid[2]);
        threads_.resize(blockDim.x * blockDim.y * blockDim.z);
        for (std::size_t i = 0; i < threads_.size(); ++i) threads_[i].index = i;
    }

    std::vector<EmulatorRecord> trace;

    void run() {
        std::vector<std::uint32_t> blocks = numbers(launch_.first_block, launch_.n_blocks);
        if (launch_.seed) shuffle(blocks);
        for (std::uint32_t block : blocks) {
            run_block(block);
            if (failed()) return;
        }
    }

    void run_current() {
        entry_(arguments_);
        settle(*current_);
        current_->state = State::DONE;
        Thread *first = warp_of(*current_);
        for (unsigned i = 0; exchanging_ && i < count_of(first); ++i) {  // the others may have waited for this one
            if (first[i].state == State::AT_EXCHANGE && complete_exchange(first[i])) break;
        }
        current_->fiber->leave();
    }

    void access(const Access &access) {
        if (!launch_.checked) return;
        Thread &self = *current_;
        self.last = access.code;
        self.passed = 0;
        const std::uint64_t at = address_of(access.address);
        const int found = memory_.find(at);
        if (found < 0) {
            if (self.fiber->owns(access.address)) {
                if (access.address >= __builtin_frame_address(0)) return;
                fail_at("local out of bounds", -1, access);
            }
            if (access.kind == LOAD && !memory_.among_variables(at) && in_library(access.address)) return;
            fail_at("out of bounds", memory_.nearest(at), access);
        }
        const EmulatorArray &array = memory_.array(found);
        const std::uint64_t offset = at - array.address, end = offset + access.bytes;
        if (end > array.bytes) fail_at("out of bounds", found, access);
        if (at % access.bytes) fail_at("misaligned", found, access);
        const bool loads = access.kind == LOAD || access.kind == VOLATILE_LOAD;
        if (!array.writable && !loads) fail_at("read only", found, access);
        if (array.writable) {
            Access seen = access;
            if (seen.kind == COMPARE) {
                seen.kind = ATOMIC;
                confirm(found, offset, access);
            } else if (self.doubt.array >= 0 && ++self.doubt.age > 16) {
                settle(self);
            }
            // Threads may wait for each other by volatile accesses to global memory.
            if (is_shared(array)) seen.kind = loads ? LOAD : seen.kind == ATOMIC ? ATOMIC : STORE;
            for (std::uint64_t word = offset / 4 * 4; word < end; word += 4) {
                const std::uint64_t from = std::max(word, offset) - word, to = std::min(end - word, std::uint64_t(4));
                touch(found, word, (1u << to) - (1u << from), seen);
            }
            if (seen.kind > STORE) synchronise(at, seen.kind);
        }
        if (launch_.traced) {
            const std::uint16_t warp = self.index / lanes, bytes = access.bytes;
            const std::uint8_t lane = self.index % lanes, kind = plain(access.kind);
            const std::int16_t number = found;
            self.record = {block_, warp, lane, kind, 0, number, bytes, access.code - base_, offset};
            self.records = true;
            wait(State::AT_ACCESS, access.code);
        } else if (access.kind >= ATOMIC && ++self.polls == 32) {
            self.polls = 0;
            ++self.yields;
            self.state = State::READY;
            polling_.push_back(self.index);
            self.fiber->leave();
        }
    }

    // Lanes that part meet again at the beginning of a basic block, also where nothing is accessed.
    void begin_basic_block(std::uint64_t code) {
        current_->passed = current_->last;
        current_->last = code;
        if (!launch_.traced) return;
        current_->records = false;
        wait(State::AT_ACCESS, code);
    }

    void fence(Scope scope) {
        Thread &self = *current_;
        Release release{block_, epoch_, std::uint8_t(self.index / lanes), scope == BLOCK, {}};
        std::memcpy(release.clocks, self.known, sizeof(release.clocks));
        self.order = fenced(self.order, release);
        ++self.known[self.index % lanes];
        self.synced = true;
        fences_ = true;
    }

    void sync_threads(std::uint64_t code) {
        settle(*current_);
        wait(State::AT_BARRIER, code);
    }

    // How many threads of the block bring a true vote to a barrier; the second lets all read it.
    unsigned count_threads(bool vote, std::uint64_t code) {
        votes_ += vote;
        sync_threads(code);
        const unsigned all = votes_;
        sync_threads(code);
        votes_ -= vote;  // its own alone: others may vote for the next one already
        return all;
    }

    unsigned active_lanes(std::uint64_t code) {
        wait(State::MEETING, code);
        return current_->mask;
    }

    std::uint64_t exchange(unsigned mask, std::uint64_t value, int source, bool vote,
                           unsigned *votes, bool orders, std::uint64_t code) {
        Thread &self = *current_;
        settle(self);
        self.mask = mask;
        self.value = value;
        self.source = source < 0 ? int(self.index % lanes) : source;
        self.vote = vote;
        self.orders = orders;
        self.code = code;
        self.state = State::AT_EXCHANGE;
        ++exchanging_;
        if (!(mask >> (self.index % lanes) & 1)) fail("not in mask", code);
        if (!complete_exchange(self)) self.fiber->leave();
        if (votes) *votes = self.votes;
        return self.value;
    }

    unsigned lane() const { return current_->index % lanes; }

    void say(const char *words) {
        std::strncpy(answer_.text, words, sizeof(answer_.text) - 1);
    }

    [[noreturn]] void fail(const char *problem, std::uint64_t code, int array = -1) {
        note(problem, current_->index, code, array);
        current_->fiber->leave();
        std::abort();  // a failed fiber is never entered again
    }

    // For what happens in a signal's handler, after which nothing goes on.
    void note_here(const char *problem, std::uint64_t code) {
        if (!current_) return name_problem(problem);
        note(problem, current_->index, code ? code : current_->last, -1);
        answer_.waiting = current_->yields > 1000;
    }
    bool on_stack(const void *address) const { return current_ && current_->fiber->guards(address); }

   private:
    static Kind plain(Kind kind) {
        return kind == VOLATILE_LOAD ? LOAD : kind == VOLATILE_STORE ? STORE : kind == COMPARE ? ATOMIC : kind;
    }
    static bool is_shared(const EmulatorArray &array) {
        return array.space == SHARED || array.space == DYNAMIC;
    }

    [[noreturn]] void fail_at(const char *problem, int array, const Access &access) {
        answer_.kind = plain(access.kind);
        answer_.bytes = access.bytes;
        answer_.offset = array < 0 ? 0 : address_of(access.address) - memory_.array(array).address;
        fail(problem, access.code, array);
    }

    void run_block(std::uint32_t block) {
        block_ = block;
        blockIdx = place(block, gridDim);
        epoch_ = 0;
        step_ = 0;
        exchanging_ = 0;
        for (Thread &thread : threads_) {
            thread.state = State::UNSTARTED;
            if (!thread.known[thread.index % lanes] || thread.synced) {
                std::fill(thread.known, thread.known + lanes, 0);
                thread.known[thread.index % lanes] = 1;
                thread.synced = false;
            }
            thread.order = nullptr;
            thread.doubt.array = -1;
            thread.last = thread.passed = thread.yields = 0;
        }
        for (;;) {
            launch_.traced ? run_traced() : run_freely();
            if (failed() || (!meet() && !pass_barrier())) break;
        }
    }

    static bool runs(const Thread &thread) {
        return thread.state == State::UNSTARTED || thread.state == State::READY;
    }

    // Runs threads until each has left the kernel or waits for others.
    void run_freely() {
        const std::vector<std::uint32_t> order = thread_order();
        for (std::size_t next = 0;;) {
            Thread *thread;
            if (!ready_.empty()) {
                thread = &threads_[taken(ready_)];
            } else if (next < order.size()) {
                thread = &threads_[order[next++]];
            } else if (!polling_.empty()) {
                thread = &threads_[taken(polling_)];
            } else {
                return;
            }
            if (!runs(*thread)) continue;  // it has had its turn
            resume(*thread);
            if (failed()) return;
        }
    }

    std::uint32_t taken(std::deque<std::uint32_t> &queue) {
        const std::size_t at = launch_.seed ? draw(queue.size()) : 0;
        const std::uint32_t index = queue[at];
        queue.erase(queue.begin() + at);
        return index;
    }

    // Runs warps in turn, a step each, until each has left the kernel or waits for others.
    void run_traced() {
        for (bool moved = true; moved;) {
            moved = false;
            for (std::size_t first = 0; first < threads_.size(); first += lanes) {
                moved |= step_warp(first, std::min<std::size_t>(first + lanes, threads_.size()));
                if (failed()) return;
            }
        }
        ready_.clear();
    }

    // Brings all lanes of a warp to their next access, then lets those at the first one have it.
    bool step_warp(std::size_t first, std::size_t last) {
        for (bool again = true; again;) {
            again = false;
            for (std::size_t i = first; i < last; ++i) {
                if (!runs(threads_[i])) continue;
                resume(threads_[i]);
                if (failed()) return false;
                again = true;
            }
        }
        std::uint64_t lowest = ~0ull;
        for (std::size_t i = first; i < last; ++i) {
            if (threads_[i].state == State::AT_ACCESS) lowest = std::min(lowest, threads_[i].code);
        }
        if (lowest == ~0ull) return false;
        const std::size_t before = trace.size();
        for (std::size_t i = first; i < last; ++i) {
            Thread &thread = threads_[i];
            if (thread.state != State::AT_ACCESS || thread.code != lowest) continue;
            thread.state = State::READY;
            thread.record.step = step_;
            if (thread.records) trace.push_back(thread.record);
        }
        step_ += trace.size() > before;
        return true;
    }

    // Lets lanes go on that wait for the others of their warp to come as far as they can; each learns
    // which have come to the same place. False if there are none.
    bool meet() {
        bool any = false;
        for (Thread &thread : threads_) {
            if (thread.state != State::MEETING) continue;
            Thread *first = warp_of(thread);
            unsigned together = 0;
            for (unsigned i = 0; i < count_of(first); ++i) {
                const bool here = first[i].state == State::MEETING && first[i].code == thread.code;
                together |= unsigned(here) << i;
            }
            for (unsigned i = 0; i < count_of(first); ++i) {
                if (!(together >> i & 1)) continue;
                first[i].mask = together;
                first[i].state = State::READY;
            }
            any = true;
        }
        return any;
    }

    // Lets the threads go on from a barrier that all have reached which have not left the kernel;
    // false if the block has ended.
    bool pass_barrier() {
        std::uint32_t waiting = 0, left = 0;
        Thread *stuck = nullptr, *first = nullptr, *gone = nullptr;
        for (Thread &thread : threads_) {
            const bool waits = thread.state == State::AT_BARRIER;
            const bool done = thread.state == State::DONE;
            waiting += waits;
            left += done;
            if (waits && !first) first = &thread;
            if (!waits && !done && !stuck) stuck = &thread;
        }
        if (left == threads_.size()) return false;
        for (Thread &thread : threads_) {
            if (first && thread.state == State::DONE && went_past(thread, first->code)) gone = &thread;
        }
        if (stuck) {
            report("lanes missing", *stuck, missing_lane(*stuck), waiting, left);
            return false;
        }
        if (gone) {
            report("barrier missed", *first, gone, waiting, left);
            return false;
        }
        const Order *all = nullptr;
        for (const Thread &thread : threads_) all = united(all, thread.order);
        for (Thread &thread : threads_) {
            thread.order = all;
            if (thread.state == State::DONE) continue;
            if (thread.code != first->code) note_together(*first, thread, false);
            thread.state = State::READY;
        }
        ++epoch_;
        return true;
    }

    // Whether a thread that has left the kernel came by this place in it before, rather than leaving
    // early, as CUDA allows: judged by what it did last before the block that ends the function.
    bool went_past(const Thread &thread, std::uint64_t barrier) const {
        const std::uint64_t last = thread.passed ? thread.passed : thread.last;
        const auto inside = [&](std::uint64_t code) {
            return code - base_ > launch_.kernel[0] && code - base_ <= launch_.kernel[1];
        };
        return inside(barrier) && inside(last) && last > barrier;
    }

    // A lane that a waiting thread names in its mask and that is elsewhere.
    const Thread *missing_lane(const Thread &waiting) {
        Thread *first = warp_of(waiting);
        for (unsigned i = 0; i < count_of(first); ++i) {
            const bool there = first[i].state == State::AT_EXCHANGE && first[i].mask == waiting.mask;
            if ((waiting.mask >> i & 1) && !there && first[i].state != State::DONE) return &first[i];
        }
        return nullptr;
    }

    bool failed() const { return answer_.problem[0]; }

    void name_problem(const char *problem) {
        std::strncpy(answer_.problem, problem, sizeof(answer_.problem) - 1);
    }

    void note(const char *problem, std::uint32_t thread, std::uint64_t code, int array) {
        name_problem(problem);
        answer_.code = code - base_;
        answer_.array = array;
        answer_.in_kernel = 1;
        name_thread(block_, thread, answer_.block, answer_.thread);
    }

    void report(const char *problem, const Thread &thread, const Thread *other,
                std::uint32_t waiting, std::uint32_t left) {
        note(problem, thread.index, thread.code, -1);
        answer_.waiting = waiting;
        answer_.left = left;
        answer_.bytes = other != nullptr;
        if (other) {
            answer_.other_code = other->state == State::DONE ? 0 : other->code - base_;
            name_thread(block_, other->index, answer_.other_block, answer_.other_thread);
        }
    }

    // Threads that wait together at two places: whether that is one line, Python knows.
    void note_together(const Thread &thread, const Thread &other, bool warp) {
        const std::uint64_t code = thread.code - base_, other_code = other.code - base_;
        for (unsigned i = 0; i < answer_.n_notes; ++i) {
            const EmulatorNote &note = answer_.notes[i];
            if (note.code == code && note.other_code == other_code) return;
        }
        if (answer_.n_notes == std::size(answer_.notes)) return;
        EmulatorNote &note = answer_.notes[answer_.n_notes++];
        note.code = code;
        note.other_code = other_code;
        note.warp = warp;
        name_thread(block_, thread.index, note.block, note.thread);
        name_thread(block_, other.index, note.block, note.other_thread);
    }

    Thread *warp_of(const Thread &thread) { return &threads_[thread.index / lanes * lanes]; }
    unsigned count_of(const Thread *first) const {
        return std::min<std::size_t>(lanes, threads_.data() + threads_.size() - first);
    }

    // Gives every lane of the mask its value once all are there, or have left the kernel.
    bool complete_exchange(const Thread &self) {
        Thread *first = warp_of(self);
        const unsigned count = count_of(first), mask = self.mask;
        std::uint64_t values[lanes] = {};
        unsigned votes = 0, there = 0;
        const Thread *gone = nullptr;
        for (unsigned lane = 0; lane < count; ++lane) {
            const Thread &thread = first[lane];
            values[lane] = thread.value;
            if (!(mask >> lane & 1)) continue;
            if (thread.state == State::DONE) {
                if (went_past(thread, self.code)) gone = &thread;
                continue;
            }
            if (thread.state != State::AT_EXCHANGE || thread.mask != mask) return false;
            votes |= unsigned(thread.vote) << lane;
            there |= 1u << lane;
        }
        if (gone) {
            report("lanes missing", self, gone, 0, 0);
            current_->fiber->leave();
        }
        std::uint32_t known[lanes] = {}, clock = 0;
        const Order *order = nullptr;
        bool orders = false;
        for (unsigned lane = 0; lane < count; ++lane) {
            Thread &thread = first[lane];
            if (!(mask >> lane & 1)) continue;
            for (unsigned i = 0; i < lanes; ++i) known[i] = std::max(known[i], thread.known[i]);
            order = united(order, thread.order);
            if (!(there >> lane & 1)) continue;
            orders |= thread.orders;
            const bool both = thread.orders && self.orders;
            if (thread.code != self.code && !both) note_together(self, thread, true);
            const unsigned source = thread.source % lanes;
            const bool lenient = thread.source & anywhere;
            if (mask >> source & 1 ? !(there >> source & 1) : !lenient) {
                current_ = &thread;
                fail(mask >> source & 1 ? "lane gone" : "lane outside mask", thread.code);
            }
            thread.value = mask >> source & 1 ? values[source] : undefined_value;
            thread.votes = votes;
            thread.state = State::READY;
            --exchanging_;
            if (&thread != current_ && !launch_.traced) ready_.push_back(thread.index);
        }
        if (!orders) return true;
        for (unsigned lane = 0; lane < count; ++lane) {
            if (mask >> lane & 1) clock = std::max(clock, known[lane]);
        }
        for (unsigned lane = 0; lane < count; ++lane) {
            if (!(there >> lane & 1)) continue;
            std::memcpy(first[lane].known, known, sizeof(known));
            first[lane].known[lane] = clock + 1;
            first[lane].synced = true;
            first[lane].order = order;
        }
        return true;
    }

    // Holds an access to bytes of a word against those before it.
    void touch(int number, std::uint64_t at, unsigned bytes, const Access &access) {
        Cell &cell = memory_.cell(number, at);
        const EmulatorArray &array = memory_.array(number);
        if (is_shared(array) && cell.block != block_ + 1) {
            cell.clear();
            cell.written = 0;
            cell.counter = 0;
            cell.block = block_ + 1;
        }
        const Thread &self = *current_;
        const unsigned lane = self.index % lanes, mine = 1u << lane;
        const std::uint8_t warp = self.index / lanes, kind = access.kind;
        const Entry now{block_, epoch_, self.known[lane], mine, std::uint32_t(access.code - base_),
                        warp, kind, std::uint8_t(bytes), std::uint8_t(access.scope)};
        bool merged = false;
        for (Entry *entry = cell.begin(); entry != cell.end();) {
            if (!(entry->bytes & bytes)) {
                ++entry;
                continue;
            }
            const bool mates = entry->warp == warp && entry->block == block_;
            if (conflict(*entry, now)) {
                if (const unsigned unordered = unordered_lanes(*entry, self)) {
                    const unsigned other = __builtin_ctz(unordered);
                    const bool reads = kind == LOAD && entry->kind == ATOMIC;
                    const bool read = kind == ATOMIC && entry->kind == LOAD && launch_.traced;
                    const bool counted = entry->kind == ATOMIC && was_last(cell);
                    const bool guess = (reads && guesses(now.code)) ||
                                       (kind == ATOMIC && entry->kind == LOAD && guesses(entry->code));
                    if (!reads && !read && !counted && !guess) race(number, access, *entry, other);
                    if (reads && !guess && !counted && self.doubt.array < 0) {
                        current_->doubt = {access, number, 0, other, *entry};
                    }
                }
                if (kind == STORE && !(entry->bytes & ~bytes)) {  // whoever is after this is after that
                    entry = cell.remove(entry);
                    continue;
                }
            } else if (entry->kind == kind && !(entry->bytes & ~bytes)) {
                if (mates && entry->epoch == epoch_ && entry->clock == now.clock &&
                    entry->bytes == bytes && entry->scope == now.scope) {
                    entry->lanes |= mine;
                    merged = true;
                } else if (entry->block == block_ && entry->epoch < epoch_) {
                    entry = cell.remove(entry);
                    continue;
                } else if (mates && entry->lanes & mine) {
                    entry->lanes &= ~mine;
                    if (!entry->lanes) {
                        entry = cell.remove(entry);
                        continue;
                    }
                }
            }
            ++entry;
        }
        if (kind == ATOMIC) cell.epoch = epoch_;
        if (kind == ATOMIC) cell.counter = block_ * std::uint32_t(threads_.size()) + self.index + 1;
        if (!merged) {
            if (cell.size() >= 8 && !fences_) forget_other_blocks(cell);
            cell.add(now);
        }
        // Said after the race that explains it, if there is one.
        const bool stores = kind == STORE || kind == VOLATILE_STORE;
        if (!stores && !array.initialised && (cell.written & bytes) != bytes) {
            fail_at("unwritten", number, access);
        }
        if (kind != LOAD && kind != VOLATILE_LOAD) cell.written |= bytes;
    }

    // Whether the thread itself, or another that it waited for at a barrier, had the last atomic so far:
    // then it found the results of the others, as whoever counts as the last one does.
    bool was_last(const Cell &cell) const {
        if (!cell.counter) return false;
        const std::uint32_t size = threads_.size(), last = cell.counter - 1;
        if (last / size != block_) return false;
        return last % size == current_->index || cell.epoch < epoch_;
    }

    // The thread's plain loads at this address turn out to have been a first guess.
    void confirm(int number, std::uint64_t offset, const Access &access) {
        Thread &self = *current_;
        if (self.doubt.array >= 0 && self.doubt.access.address == access.address) self.doubt.array = -1;
        for (std::uint64_t at = offset / 4 * 4; at < offset + access.bytes; at += 4) {
            Cell &cell = memory_.cell(number, at);
            for (Entry *entry = cell.begin(); entry != cell.end();) {
                const bool mine = entry->kind == LOAD && entry->warp == self.index / lanes &&
                                  entry->block == block_ && entry->epoch == epoch_ &&
                                  entry->clock == self.known[self.index % lanes];
                if (mine && !guesses(entry->code)) guesses_.push_back(entry->code);
                if (mine) entry->lanes &= ~(1u << self.index % lanes);
                entry = mine && !entry->lanes ? cell.remove(entry) : entry + 1;
            }
        }
    }

    // Whether loads at this place in the code are such: threads that find no need to go on are excused.
    bool guesses(std::uint32_t code) const {
        return std::find(guesses_.begin(), guesses_.end(), code) != guesses_.end();
    }

    void settle(Thread &self) {
        if (self.doubt.array < 0) return;
        const Doubt doubt = self.doubt;
        race(doubt.array, doubt.access, doubt.other, doubt.lane);
    }

    // Without fences, no block comes to know of another, and two of them stand for all.
    void forget_other_blocks(Cell &cell) {
        unsigned kept[5][16] = {};
        for (Entry *entry = cell.begin(); entry != cell.end();) {
            const bool extra = entry->block != block_ && ++kept[entry->kind][entry->bytes] > 2;
            entry = extra ? cell.remove(entry) : entry + 1;
        }
    }

    static bool conflict(const Entry &before, const Entry &now) {
        if (before.kind == STORE || now.kind == STORE) return true;
        if (before.kind == ATOMIC && now.kind == ATOMIC) {
            return before.block != now.block && (before.scope == BLOCK || now.scope == BLOCK);
        }
        const bool writes = before.kind == ATOMIC || before.kind == VOLATILE_STORE ||
                            now.kind == ATOMIC || now.kind == VOLATILE_STORE;
        return writes && (before.kind == LOAD || now.kind == LOAD);
    }

    // Lanes of an earlier access that is not certain to come first on any GPU.
    unsigned unordered_lanes(const Entry &entry, const Thread &self) {
        unsigned left = entry.lanes;
        if (entry.block == block_) {
            if (entry.epoch < epoch_) return 0;
            if (entry.warp == self.index / lanes) {
                left &= ~(1u << self.index % lanes);
                for (unsigned rest = left; rest; rest &= rest - 1) {
                    const unsigned lane = __builtin_ctz(rest);
                    if (entry.clock <= self.known[lane]) left &= ~(1u << lane);
                }
            }
        }
        if (!left || !self.order) return left;
        for (unsigned rest = left; rest; rest &= rest - 1) {
            const unsigned lane = __builtin_ctz(rest);
            std::vector<Seen> visited;
            for (const Seen &seen : self.order->seen) {
                if (!covers(seen, entry, lane, block_, visited)) continue;
                left &= ~(1u << lane);
                break;
            }
        }
        return left;
    }

    // Atomics, and volatile accesses to global memory, carry what fences have released.
    void synchronise(std::uint64_t address, Kind kind) {
        Thread &self = *current_;
        if (!fences_) return;
        const bool releases = self.order && !self.order->fenced.empty() && kind != VOLATILE_LOAD;
        const auto found = logs_.find(address);
        if (found == logs_.end() && !releases) return;
        Log &log = found == logs_.end() ? logs_[address] : found->second;
        const Order *after = exchanged(self.order, log, releases);
        if (kind != VOLATILE_STORE) self.order = after;
    }

    [[noreturn]] void race(int array, const Access &access, const Entry &other, unsigned lane) {
        answer_.other_code = other.code;
        name_thread(other.block, other.warp * lanes + lane, answer_.other_block, answer_.other_thread);
        fail_at("race", array, access);
    }

    void resume(Thread &thread) {
        if (thread.state == State::UNSTARTED) {
            if (!thread.fiber) thread.fiber = std::make_unique<Fiber>();
            thread.fiber->reset();
        }
        thread.state = State::READY;
        current_ = &thread;
        threadIdx = place(thread.index, blockDim);
        thread.fiber->enter();
    }

    void wait(State state, std::uint64_t code) {
        current_->state = state;
        current_->code = code;
        current_->fiber->leave();
    }

    void name_thread(std::uint32_t block, std::uint32_t thread, std::uint32_t *block_index,
                     std::uint32_t *thread_index) const {
        const dim3 in_grid = place(block, gridDim), in_block = place(thread, blockDim);
        std::memcpy(block_index, &in_grid, sizeof(dim3));
        std::memcpy(thread_index, &in_block, sizeof(dim3));
    }

    // Constants of the compiler's, and the indices of threads and blocks.
    bool in_library(const char *address) const {
        for (const dim3 *index : {&threadIdx, &blockIdx, &blockDim, &gridDim}) {
            if (address_of(address) - address_of(index) < sizeof(dim3)) return true;
        }
        Dl_info info;
        return dladdr(address, &info) && address_of(info.dli_fbase) == base_;
    }

    std::vector<std::uint32_t> thread_order() {
        if (!launch_.seed) return numbers(0, threads_.size());
        std::vector<std::uint32_t> warps = numbers(0, (threads_.size() + lanes - 1) / lanes), mixed;
        shuffle(warps);
        for (std::uint32_t warp : warps) {
            const std::uint32_t first = warp * lanes, left = threads_.size() - first;
            std::vector<std::uint32_t> inside = numbers(first, std::min(lanes, left));
            shuffle(inside);
            mixed.insert(mixed.end(), inside.begin(), inside.end());
        }
        return mixed;
    }

    std::uint64_t draw(std::uint64_t bound) {  // SplitMix64
        std::uint64_t x = random_ += 0x9E3779B97F4A7C15u;
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
        x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
        return (x ^ (x >> 31)) % bound;
    }

    void shuffle(std::vector<std::uint32_t> &items) {
        for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[draw(i)]);
    }

    const EmulatorLaunch &launch_;
    EmulatorAnswer &answer_;
    Memory memory_;
    void **arguments_;
    void (*entry_)(void **);
    std::uint64_t base_, random_;
    std::vector<Thread> threads_;
    std::deque<std::uint32_t> ready_, polling_;
    std::vector<std::uint32_t> guesses_;
    std::unordered_map<std::uint64_t, Log> logs_;
    Thread *current_ = nullptr;
    std::uint32_t block_ = 0, epoch_ = 0, step_ = 0;
    unsigned votes_ = 0;  // of the threads at a __syncthreads_count
    unsigned exchanging_ = 0;  // threads that wait for others of their warp
    bool fences_ = false;
};

}  // namespace emulator
