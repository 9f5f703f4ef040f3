// The machine: runs the threads of a block as fibers, has their accesses judged, and traces them.
//
// Threads switch only where CUDA lets one wait for another: at barriers and warp-wide exchanges, and
// now and then at atomics and volatile loads, so that a loop which waits for another thread gets
// what it waits for. A traced block switches at each access too, so that the lanes of a warp go
// through the kernel side by side. They also stop at each basic block, and among lanes that stand at
// different places the one with the lowest address goes first; lanes that leave a loop or skip a
// branch thus wait for the others where the paths meet again, as they do on a GPU.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <numeric>
#include <string>
#include <unordered_map>
#include <vector>

#include "judge.h"
// After all others, as it gives words of theirs another meaning.
#include "cuda_on_host.h"

namespace emulator {

inline std::vector<std::uint32_t> numbers(std::uint32_t first, std::uint32_t count) {
    std::vector<std::uint32_t> found(count);
    std::iota(found.begin(), found.end(), first);
    return found;
}

class Machine : public Judge {
   public:
    // `entry` calls the kernel, whose library begins at `base`.
    Machine(const EmulatorLaunch &launch, EmulatorAnswer &answer, const EmulatorArray *arrays,
            void **arguments, void (*entry)(void **), std::uint64_t base)
        : Judge(launch, answer, arrays, base), arguments_(arguments), entry_(entry), random_(launch.seed) {
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
        if (launch_.writer_of[0] >= 0) name_writer(launch_.writer_of[0], launch_.writer_of[1]);
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
        const int found = launch_.checked ? judge(access) : -1;
        if (found < 0 && (launch_.checked || access.kind < ATOMIC)) return;
        Thread &self = *current_;
        if (launch_.traced) {
            const std::uint16_t warp = self.index / lanes, bytes = access.bytes;
            const std::uint8_t lane = self.index % lanes, kind = plain(access.kind);
            const std::int16_t number = found;
            self.record = {block_, warp, lane, kind, 0, number, bytes, access.code - base_,
                           address_of(access.address) - memory_.array(found).address};
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
        self.polled = votes != nullptr;
        self.code = code;
        self.state = State::AT_EXCHANGE;
        ++exchanging_;
        if (!(mask >> (self.index % lanes) & 1)) fail("not in mask", code);
        if (!complete_exchange(self)) self.fiber->leave();
        if (votes) *votes = self.votes;
        return self.value;
    }

    unsigned lane() const { return current_->index % lanes; }

   private:
    void run_block(std::uint32_t block) {
        block_ = block;
        blockIdx = place(block, gridDim);
        epoch_ = 0;
        step_ = 0;
        exchanging_ = 0;
        groups_.clear();
        for (Thread &thread : threads_) {
            thread.state = State::UNSTARTED;
            if (!thread.known[thread.index % lanes] || thread.synced) {
                std::fill(thread.known, thread.known + lanes, 0);
                thread.known[thread.index % lanes] = 1;
                thread.synced = false;
            }
            thread.order = nullptr;
            thread.doubt.array = -1;
            thread.flag.address = nullptr;
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
            if (thread.code != first->code) note_together(*first, thread, false, false);
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
    void note_together(const Thread &thread, const Thread &other, bool warp, bool unlike) {
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
        note.unlike = unlike;
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
        if (self.source & anywhere) check_groups(first, there, mask);
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
            const bool unlike = thread.orders != self.orders || thread.polled != self.polled;
            if (thread.code != self.code && !both) note_together(self, thread, true, unlike);
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

    // Lanes may read a number without meaning from outside their mask if they do not use it. But lanes
    // of which none reads inside, from others that come to the same place with a mask of their own,
    // are meant to have one mask.
    void check_groups(Thread *first, unsigned there, unsigned mask) {
        if (there == ~0u) return;
        auto &masks = groups_[first->index + first[__builtin_ctz(there)].code * threads_.size()];
        Thread *outside = nullptr;
        bool inside = false;
        for (unsigned rest = there; rest; rest &= rest - 1) {
            const unsigned lane = __builtin_ctz(rest), source = first[lane].source % lanes;
            masks[lane] = mask;
            inside |= source != lane && mask >> source & 1;
            if (!(mask >> source & 1) && masks[source] && !(masks[source] >> lane & 1)) outside = &first[lane];
        }
        if (inside || !outside) return;
        current_ = outside;
        fail("lane outside mask", outside->code);
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

    void **arguments_;
    void (*entry_)(void **);
    std::uint64_t random_;
    std::deque<std::uint32_t> ready_, polling_;
    // By warp and place in the code: the masks with which lanes have come to a shuffle there.
    std::unordered_map<std::uint64_t, std::array<unsigned, lanes>> groups_;
    std::uint32_t step_ = 0;
    unsigned votes_ = 0;  // of the threads at a __syncthreads_count
    unsigned exchanging_ = 0;  // threads that wait for others of their warp
};

}  // namespace emulator
