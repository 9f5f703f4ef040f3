// Meetings: where the threads of a block, or the lanes of a warp, wait for each other; what they
// bring and learn there, and who has not come.
#pragma once

#include <algorithm>
#include <array>
#include <deque>
#include <unordered_map>
#include <vector>

#include "judge.h"
// After all others, as it gives words of theirs another meaning.
#include "cuda_on_host.h"

namespace emulator {

class Meetings : public Judge {
   public:
    using Judge::Judge;

    std::vector<EmulatorRecord> trace;

    void sync_threads(std::uint64_t code) {
        settle(*current_);
        current_->arrived = step_;
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
        warp(self).waiting |= 1u << self.index % lanes;
        if (!(mask >> (self.index % lanes) & 1)) fail("not in mask", code);
        if (!complete_exchange(self)) self.fiber->leave();
        if (votes) *votes = self.votes;
        return self.value;
    }

   protected:
    void wait(State state, std::uint64_t code) {
        current_->state = state;
        current_->code = code;
        current_->fiber->leave();
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
        if (launch_.traced) record_waits();
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

    // Gives every lane of the mask its value once all are there, or have left the kernel.
    bool complete_exchange(const Thread &self) {
        Thread *first = warp_of(self);
        Warp &warp = this->warp(self);
        const unsigned mask = self.mask, present = mask & ~0u >> (lanes - count_of(first));
        if (present & ~(warp.waiting | warp.left)) return false;
        std::uint64_t values[lanes];
        unsigned votes = 0, there = 0;
        bool orders = false;
        const Thread *gone = nullptr;
        for (unsigned rest = present; rest; rest &= rest - 1) {
            const unsigned lane = __builtin_ctz(rest);
            const Thread &thread = first[lane];
            values[lane] = thread.value;
            if (thread.state == State::DONE) {
                if (went_past(thread, self.code)) gone = &thread;
                continue;
            }
            if (thread.mask != mask) return false;
            votes |= unsigned(thread.vote) << lane;
            there |= 1u << lane;
            orders |= thread.orders;
        }
        if (gone) {
            report("lanes missing", self, gone, 0, 0);
            current_->fiber->leave();
        }
        if (self.source & anywhere) check_groups(first, there, mask);
        for (unsigned rest = there; rest; rest &= rest - 1) {
            Thread &thread = first[__builtin_ctz(rest)];
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
            if (&thread != current_ && !launch_.traced) ready_.push_back(thread.index);
        }
        warp.waiting &= ~there;
        if (orders) share_order(first, present, there);
        return true;
    }

    // Lets the lanes that are there know what any lane knew.
    static void share_order(Thread *first, unsigned present, unsigned there) {
        std::uint32_t known[lanes] = {}, clock = 0;
        const Order *order = nullptr;
        for (unsigned rest = present; rest; rest &= rest - 1) {
            const Thread &thread = first[__builtin_ctz(rest)];
            for (unsigned i = 0; i < lanes; ++i) known[i] = std::max(known[i], thread.known[i]);
            order = united(order, thread.order);
        }
        for (unsigned rest = present; rest; rest &= rest - 1) {
            clock = std::max(clock, known[__builtin_ctz(rest)]);
        }
        for (unsigned rest = there; rest; rest &= rest - 1) {
            Thread &thread = first[__builtin_ctz(rest)];
            std::memcpy(thread.known, known, sizeof(known));
            thread.known[thread.index % lanes] = clock + 1;
            thread.synced = true;
            thread.order = order;
        }
    }

    // Lanes that wait for others at an exchange, and those that have left the kernel.
    struct Warp {
        unsigned waiting = 0, left = 0;
    };
    Warp &warp(const Thread &thread) { return warps_[thread.index / lanes]; }
    Thread *warp_of(const Thread &thread) { return &threads_[thread.index / lanes * lanes]; }
    unsigned count_of(const Thread *first) const {
        return std::min<std::size_t>(lanes, threads_.data() + threads_.size() - first);
    }

    void begin_block() {
        warps_.assign((threads_.size() + lanes - 1) / lanes, {});
        groups_.clear();
    }

    std::uint32_t step_ = 0;  // of the block that is traced
    std::deque<std::uint32_t> ready_;

   private:
    std::vector<Warp> warps_;

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

    void record_waits() {
        for (std::size_t first = 0; first < threads_.size(); first += lanes) {
            const Thread *last = nullptr;
            for (unsigned lane = 0; lane < count_of(&threads_[first]); ++lane) {
                const Thread &thread = threads_[first + lane];
                if (thread.state != State::AT_BARRIER) continue;
                if (!last || thread.arrived >= last->arrived) last = &thread;
            }
            if (!last) continue;
            const std::uint16_t warp = first / lanes;
            trace.push_back({block_, warp, 0, 3, last->arrived, -1, 0, last->code - base_, step_});
        }
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

    // By warp and place in the code: the masks with which lanes have come to a shuffle there.
    std::unordered_map<std::uint64_t, std::array<unsigned, lanes>> groups_;
    unsigned votes_ = 0;  // of the threads at a __syncthreads_count
};

}  // namespace emulator
