// The machine: runs the threads of a block as fibers, has their accesses judged, and traces them.
//
// Threads switch only where CUDA lets one wait for another: at barriers and warp-wide exchanges, and
// now and then at atomics and volatile loads, so that a loop which waits for another thread gets
// what it waits for. A traced block switches at each access too, so that the lanes of a warp go
// through the kernel side by side. They also stop at each basic block, and among lanes that stand at
// different places the one with the lowest address goes first; lanes that leave a loop or skip a
// branch thus wait for the others where the paths meet again, as they do on a GPU.
#pragma once

#include <deque>
#include <memory>
#include <numeric>
#include <vector>

#include "meetings.h"
// After all others, as it gives words of theirs another meaning.
#include "cuda_on_host.h"

namespace emulator {

inline std::vector<std::uint32_t> numbers(std::uint32_t first, std::uint32_t count) {
    std::vector<std::uint32_t> found(count);
    std::iota(found.begin(), found.end(), first);
    return found;
}

class Machine : public Meetings {
   public:
    // `entry` calls the kernel, whose library begins at `base`.
    Machine(const EmulatorLaunch &launch, EmulatorAnswer &answer, const EmulatorArray *arrays,
            void **arguments, void (*entry)(void **), std::uint64_t base)
        : Meetings(launch, answer, arrays, base), arguments_(arguments), entry_(entry), random_(launch.seed) {
        blockDim = dim3(launch.block[0], launch.block[1], launch.block[2]);
        gridDim = dim3(launch.grid[0], launch.grid[1], launch.grid[2]);
        threads_.resize(blockDim.x * blockDim.y * blockDim.z);
        for (std::size_t i = 0; i < threads_.size(); ++i) threads_[i].index = i;
    }

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
        Warp &warp = this->warp(*current_);
        warp.left |= 1u << current_->index % lanes;
        Thread *first = warp_of(*current_);
        // The others may have waited for this one.
        for (unsigned rest = warp.waiting; rest; rest &= rest - 1) {
            if (complete_exchange(first[__builtin_ctz(rest)])) break;
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

    unsigned lane() const { return current_->index % lanes; }

   private:
    void run_block(std::uint32_t block) {
        block_ = block;
        blockIdx = place(block, gridDim);
        epoch_ = 0;
        step_ = 0;
        begin_block();
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
        if (at) {
            queue.erase(queue.begin() + at);
        } else {
            queue.pop_front();
        }
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
    std::deque<std::uint32_t> polling_;
};

}  // namespace emulator
