// The judge: holds each access of a thread against bounds, against what is written, and against the
// accesses before it that nothing orders with it; notes what is wrong and ends the launch.
#pragma once

#include <dlfcn.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "memory.h"
#include "order.h"
#include "runtime.h"
#include "thread.h"
// After all others, as it gives words of theirs another meaning.
#include "cuda_on_host.h"

namespace emulator {

class Judge {
   public:
    // The kernel's library begins at `base`.
    Judge(const EmulatorLaunch &launch, EmulatorAnswer &answer, const EmulatorArray *arrays, std::uint64_t base)
        : launch_(launch), answer_(answer), memory_(arrays, launch.n_arrays, base, launch.n_blocks < 32), base_(base) {}

    void fence(Scope scope) {
        Thread &self = *current_;
        Release release{block_, epoch_, std::uint8_t(self.index / lanes), scope == BLOCK, {}};
        std::memcpy(release.clocks, self.known, sizeof(release.clocks));
        self.order = fenced(self.order, release);
        ++self.known[self.index % lanes];
        self.synced = true;
        fences_ = true;
    }

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

   protected:
    // Index of the array that an access is in, -1 if it is the thread's own or the library's.
    int judge(const Access &access) {
        Thread &self = *current_;
        self.last = access.code;
        self.passed = 0;
        const std::uint64_t at = address_of(access.address);
        const int found = memory_.find(at);
        if (found < 0) {
            if (self.fiber->owns(access.address)) {
                if (access.address >= __builtin_frame_address(0)) return -1;
                fail_at("local out of bounds", -1, access);
            }
            if (access.kind == LOAD && !memory_.among_variables(at) && in_library(access.address)) return -1;
            fail_at("out of bounds", memory_.nearest(at), access);
        }
        const EmulatorArray &array = memory_.array(found);
        const std::uint64_t offset = at - array.address, end = offset + access.bytes;
        if (end > array.bytes) fail_at("out of bounds", found, access);
        if (at & (access.bytes - 1)) fail_at("misaligned", found, access);  // a power of two
        const bool loads = access.kind == LOAD || access.kind == VOLATILE_LOAD;
        if (!array.writable) {
            if (array.space == HOST) fail_at("host variable", found, access);
            if (!loads) fail_at("read only", found, access);
            const char *const unheld = array.space == ARGUMENT ? "unwritten" : "unfilled";
            if (!array.initialised) fail_at(unheld, found, access);
        }
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
        return found;
    }

    [[noreturn]] void fail_at(const char *problem, int array, const Access &access) {
        answer_.kind = plain(access.kind);
        answer_.bytes = access.bytes;
        answer_.offset = address_of(access.address) - (array < 0 ? 0 : memory_.array(array).address);
        fail(problem, access.code, array);
    }

    static Kind plain(Kind kind) {
        return kind == VOLATILE_LOAD ? LOAD : kind == VOLATILE_STORE ? STORE : kind == COMPARE ? ATOMIC : kind;
    }

    bool failed() const { return answer_.problem[0]; }

    void note(const char *problem, std::uint32_t thread, std::uint64_t code, int array) {
        name_problem(problem);
        answer_.code = code - base_;
        answer_.array = array;
        answer_.in_kernel = 1;
        name_thread(block_, thread, answer_.block, answer_.thread);
    }

    void name_thread(std::uint32_t block, std::uint32_t thread, std::uint32_t *block_index,
                     std::uint32_t *thread_index) const {
        const dim3 in_grid = place(block, gridDim), in_block = place(thread, blockDim);
        std::memcpy(block_index, &in_grid, sizeof(dim3));
        std::memcpy(thread_index, &in_block, sizeof(dim3));
    }

    // A doubt that no atomicCAS has cleared is a race.
    void settle(Thread &self) {
        if (self.doubt.array < 0) return;
        const Doubt doubt = self.doubt;
        race(doubt.array, doubt.access, doubt.other, doubt.lane);
    }

    // Says who wrote a byte, whose value depends on local variables without one.
    void name_writer(int number, std::int64_t byte) {
        Cell &cell = memory_.cell(number, byte);
        for (const Entry &entry : cell) {
            const bool writes = entry.kind != LOAD && entry.kind != VOLATILE_LOAD;
            if (!writes || !(entry.bytes >> byte % 4 & 1)) continue;
            block_ = entry.block;
            answer_.kind = plain(Kind(entry.kind));
            answer_.bytes = 4;
            answer_.offset = byte / 4 * 4;
            note("unwritten local", entry.warp * lanes + __builtin_ctz(entry.lanes), base_ + entry.code, number);
        }
    }

    const EmulatorLaunch &launch_;
    EmulatorAnswer &answer_;
    Memory memory_;
    std::uint64_t base_;
    std::vector<Thread> threads_;
    Thread *current_ = nullptr;
    std::uint32_t block_ = 0, epoch_ = 0;  // epoch: how often the block has passed a barrier

   private:

    static bool is_shared(const EmulatorArray &array) {
        return array.space == SHARED || array.space == DYNAMIC;
    }

    void name_problem(const char *problem) {
        std::strncpy(answer_.problem, problem, sizeof(answer_.problem) - 1);
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
            if (kind == VOLATILE_LOAD && entry->kind == VOLATILE_STORE && entry->block != block_) {
                follow(number, access, *entry);
            }
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

    // Two volatile accesses are no race, and nothing but a fence orders those at two addresses: whoever
    // goes on behind a flag, after a fence or barrier of its own, must not find what was stored
    // without a fence in front of that flag.
    void follow(int number, const Access &access, const Entry &store) {
        Thread &self = *current_;
        const unsigned unordered = unordered_lanes(store, self);
        if (!unordered) return;
        Flag &flag = self.flag;
        const Entry &other = flag.store;
        const std::uint32_t clock = self.known[self.index % lanes];
        if (flag.address && flag.address != access.address && other.block == store.block &&
            other.warp == store.warp && other.epoch == store.epoch && other.clock == store.clock &&
            other.lanes & unordered && (flag.epoch < epoch_ || flag.clock < clock)) {
            race(number, access, store, __builtin_ctz(other.lanes & unordered));
        }
        flag = {access.address, store, epoch_, clock};
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

    // Without fences, no block comes to know of another, and two of them stand for all.
    void forget_other_blocks(Cell &cell) {
        std::uint8_t kept[5][16] = {};
        for (Entry *entry = cell.begin(); entry != cell.end();) {
            const bool extra = entry->block != block_ && kept[entry->kind][entry->bytes] == 2;
            kept[entry->kind][entry->bytes] += entry->block != block_ && !extra;
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
        answer_.other_kind = plain(Kind(other.kind));
        name_thread(other.block, other.warp * lanes + lane, answer_.other_block, answer_.other_thread);
        fail_at("race", array, access);
    }

    // Constants of the compiler's, and the indices of threads and blocks.
    bool in_library(const char *address) const {
        for (const dim3 *index : {&threadIdx, &blockIdx, &blockDim, &gridDim}) {
            if (address_of(address) - address_of(index) < sizeof(dim3)) return true;
        }
        Dl_info info;
        return dladdr(address, &info) && address_of(info.dli_fbase) == base_;
    }

    std::vector<std::uint32_t> guesses_;
    std::unordered_map<std::uint64_t, Log> logs_;
    bool fences_ = false;
};

}  // namespace emulator
