// The judge: checks each access for bounds, for unwritten memory and for races with earlier
// accesses; notes a problem and ends the launch.
#pragma once

#include "threads.h"

namespace emulator {

[[noreturn]] inline void race(int array, const Access &access, const Entry &other, unsigned lane) {
    answer->other_code = other.code;
    answer->other_kind = plain(Kind(other.kind));
    name_thread(other.block, other.warp * lanes + lane, answer->other_block,
                answer->other_thread);
    fail_at("race", array, access);
}

// A doubt that no atomicCAS cleared is a race.
inline void settle(Thread &self) {
    if (self.doubt.array < 0) return;
    const Doubt doubt = self.doubt;
    race(doubt.array, doubt.access, doubt.other, doubt.lane);
}

// Whether a load at this code was once a first guess, so that threads without an atomicCAS are
// excused.
inline bool guesses(std::uint32_t code) {
    return std::ranges::find(guessed, code) != guessed.end();
}

// Whether this thread, or one that it waited for at a barrier, did the last atomic so far and thus
// counts as the last one, which sees the others' results.
inline bool was_last(const Cell &cell) {
    if (!cell.counter) return false;
    const std::uint32_t size = threads.size(), last = cell.counter - 1;
    if (last / size != block) return false;
    return last % size == current->index || cell.epoch < epoch;
}

inline bool conflict(const Entry &before, const Entry &now) {
    if (before.kind == STORE || now.kind == STORE) return true;
    if (before.kind == ATOMIC && now.kind == ATOMIC) {
        return before.block != now.block && (before.scope == BLOCK || now.scope == BLOCK);
    }
    const bool writes = before.kind == ATOMIC || before.kind == VOLATILE_STORE ||
                        now.kind == ATOMIC || now.kind == VOLATILE_STORE;
    return writes && (before.kind == LOAD || now.kind == LOAD);
}

// Lanes of an earlier access that nothing orders before this thread.
inline unsigned unordered_lanes(const Entry &entry, const Thread &self) {
    unsigned left = entry.lanes;
    if (entry.block == block) {
        if (entry.epoch < epoch) return 0;
        if (entry.warp == self.index / lanes) {
            left &= ~(1u << lane_of(self));
            for (unsigned lane : Lanes{left}) {
                if (entry.clock <= self.known[lane]) left &= ~(1u << lane);
            }
        }
    }
    if (!left || !self.order) return left;
    for (unsigned lane : Lanes{left}) {
        std::vector<Seen> visited;
        const auto knows = [&](const Seen &seen) {
            return covers(seen, entry, lane, block, visited);
        };
        if (std::ranges::any_of(self.order->seen, knows)) left &= ~(1u << lane);
    }
    return left;
}

// Without fences no block knows of another, and two entries stand for all.
inline void forget_other_blocks(Cell &cell) {
    std::uint8_t counts[5][16] = {};
    for (Entry *entry = cell.begin(); entry != cell.end();) {
        const bool extra = entry->block != block && counts[entry->kind][entry->bytes] == 2;
        counts[entry->kind][entry->bytes] += entry->block != block && !extra;
        entry = extra ? cell.remove(entry) : entry + 1;
    }
}

// An atomicCAS follows: the thread's plain loads of this address were first guesses.
inline void confirm(int number, std::uint64_t offset, const Access &access) {
    Thread &self = *current;
    if (self.doubt.array >= 0 && self.doubt.access.address == access.address)
        self.doubt.array = -1;
    for (std::uint64_t at = offset / 4 * 4; at < offset + access.bytes; at += 4) {
        Cell &cell = memory->cell(number, at);
        for (Entry *entry = cell.begin(); entry != cell.end();) {
            const bool mine = entry->kind == LOAD && entry->warp == self.index / lanes &&
                              entry->block == block && entry->epoch == epoch &&
                              entry->clock == self.known[lane_of(self)];
            if (mine && !guesses(entry->code)) guessed.push_back(entry->code);
            if (mine) entry->lanes &= ~(1u << lane_of(self));
            entry = mine && !entry->lanes ? cell.remove(entry) : entry + 1;
        }
    }
}

// Volatile accesses do not race, but only a fence orders those at two addresses: a thread that
// waited for a flag must not read what was stored before the flag without a fence in between.
inline void follow(int number, const Access &access, const Entry &store) {
    Thread &self = *current;
    const unsigned unordered = unordered_lanes(store, self);
    if (!unordered) return;
    Flag &flag = self.flag;
    const Entry &other = flag.store;
    const std::uint32_t clock = self.known[lane_of(self)];
    if (flag.address && flag.address != access.address && other.block == store.block &&
        other.warp == store.warp && other.epoch == store.epoch && other.clock == store.clock &&
        other.lanes & unordered && (flag.epoch < epoch || flag.clock < clock)) {
        race(number, access, store, __builtin_ctz(other.lanes & unordered));
    }
    flag = {access.address, store, epoch, clock};
}

// Checks an access to bytes of a word against the earlier ones.
inline void touch(int number, std::uint64_t at, unsigned bytes, const Access &access) {
    Cell &cell = memory->cell(number, at);
    const EmulatorArray &array = memory->array(number);
    if (is_shared(array) && cell.block != block + 1) {
        cell.clear();
        cell.written = 0;
        cell.counter = 0;
        cell.block = block + 1;
    }
    const Thread &self = *current;
    const unsigned lane = lane_of(self), mine = 1u << lane;
    const std::uint8_t warp = self.index / lanes, kind = access.kind;
    const Entry now{block, epoch, self.known[lane], mine, std::uint32_t(access.code - base),
                    warp, kind, std::uint8_t(bytes), std::uint8_t(access.scope)};
    bool merged = false;
    for (Entry *entry = cell.begin(); entry != cell.end();) {
        if (!(entry->bytes & bytes)) {
            ++entry;
            continue;
        }
        const bool mates = entry->warp == warp && entry->block == block;
        if (kind == VOLATILE_LOAD && entry->kind == VOLATILE_STORE && entry->block != block) {
            follow(number, access, *entry);
        }
        if (conflict(*entry, now)) {
            if (const unsigned unordered = unordered_lanes(*entry, self)) {
                const unsigned other = __builtin_ctz(unordered);
                const bool reads = kind == LOAD && entry->kind == ATOMIC;
                const bool read = kind == ATOMIC && entry->kind == LOAD && launch->traced;
                const bool counted = entry->kind == ATOMIC && was_last(cell);
                const bool guess =
                    (reads && guesses(now.code)) ||
                    (kind == ATOMIC && entry->kind == LOAD && guesses(entry->code));
                if (!reads && !read && !counted && !guess) race(number, access, *entry, other);
                if (reads && !guess && !counted && self.doubt.array < 0) {
                    current->doubt = {access, number, 0, other, *entry};
                }
            }
            if (kind == STORE && !(entry->bytes & ~bytes)) {  // ordered, so this one stands for it
                entry = cell.remove(entry);
                continue;
            }
        } else if (entry->kind == kind && !(entry->bytes & ~bytes)) {
            if (mates && entry->epoch == epoch && entry->clock == now.clock &&
                entry->bytes == bytes && entry->scope == now.scope) {
                entry->lanes |= mine;
                merged = true;
            } else if (entry->block == block && entry->epoch < epoch) {
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
    if (kind == ATOMIC) {
        cell.epoch = epoch;
        cell.counter = block * std::uint32_t(threads.size()) + self.index + 1;
    }
    if (!merged) {
        if (cell.size() >= 8 && !fences) forget_other_blocks(cell);
        cell.add(now);
    }
    // A race that explains it is reported first.
    const bool reads = loads(access.kind) || kind == ATOMIC;
    if (reads && !array.initialised && (cell.written & bytes) != bytes) {
        fail_at("unwritten", number, access);
    }
    if (!loads(access.kind)) cell.written |= bytes;
}

// Atomics, and volatile accesses to global memory, carry what fences have released.
inline void synchronise(std::uint64_t address, Kind kind) {
    Thread &self = *current;
    const bool releases = self.order && !self.order->fenced.empty() && kind != VOLATILE_LOAD;
    if (!fences || (!releases && !logs.contains(address))) return;
    const Order *after = exchanged(self.order, logs[address], releases);
    if (kind != VOLATILE_STORE) self.order = after;
}

// Whether an address is an index of threads or blocks, or a constant of the compiler.
inline bool in_library(const char *address) {
    for (const dim3 *index : {&threadIdx, &blockIdx, &blockDim, &gridDim}) {
        if (address_of(address) - address_of(index) < sizeof(dim3)) return true;
    }
    Dl_info info;
    return dladdr(address, &info) && address_of(info.dli_fbase) == base;
}

// Returns the index of the access's array, -1 for the thread's or the library's own memory.
inline int judge(const Access &access) {
    Thread &self = *current;
    self.last = access.code;
    self.passed = 0;
    const std::uint64_t at = address_of(access.address);
    const int number = memory->find(at);
    if (number < 0) {
        if (self.fiber->owns(access.address)) {
            if (access.address >= __builtin_frame_address(0)) return -1;
            fail_at("local out of bounds", -1, access);
        }
        if (access.kind == LOAD && !memory->among_variables(at) && in_library(access.address))
            return -1;
        fail_at("out of bounds", memory->nearest(at), access);
    }
    const EmulatorArray &array = memory->array(number);
    const std::uint64_t offset = at - array.address, end = offset + access.bytes;
    if (end > array.bytes) fail_at("out of bounds", number, access);
    if (at & (access.bytes - 1)) fail_at("misaligned", number, access);  // a power of two
    if (!array.writable) {
        if (array.space == HOST) fail_at("host variable", number, access);
        if (!loads(access.kind)) fail_at("read only", number, access);
        const char *const unheld = array.space == ARGUMENT ? "unwritten" : "unfilled";
        if (!array.initialised) fail_at(unheld, number, access);
    } else {
        Access seen = access;
        if (seen.kind == COMPARE) {
            seen.kind = ATOMIC;
            confirm(number, offset, access);
        } else if (self.doubt.array >= 0 && ++self.doubt.age > 16) {
            settle(self);
        }
        // Threads may wait for each other by volatile accesses to global memory.
        if (is_shared(array)) seen.kind = plain(seen.kind);
        for (std::uint64_t word = offset / 4 * 4; word < end; word += 4) {
            const std::uint64_t from = std::max(word, offset) - word,
                                to = std::min(end - word, std::uint64_t(4));
            touch(number, word, (1u << to) - (1u << from), seen);
        }
        if (seen.kind > STORE) synchronise(at, seen.kind);
    }
    return number;
}

// Notes who wrote a byte whose value depends on unwritten local variables.
inline void name_writer(int number, std::int64_t byte) {
    Cell &cell = memory->cell(number, byte);
    for (const Entry &entry : cell) {
        if (loads(Kind(entry.kind)) || !(entry.bytes >> byte % 4 & 1)) continue;
        block = entry.block;
        answer->kind = plain(Kind(entry.kind));
        answer->bytes = 4;
        answer->offset = byte / 4 * 4;
        note("unwritten local", entry.warp * lanes + __builtin_ctz(entry.lanes),
             base + entry.code, number);
    }
}

void fence(Scope scope) {
    Thread &self = *current;
    Release release{block, epoch, std::uint8_t(self.index / lanes), scope == BLOCK, {}};
    std::ranges::copy(self.known, release.clocks);
    self.order = fenced(self.order, release);
    ++self.known[lane_of(self)];
    self.synced = true;
    fences = true;
}

}  // namespace emulator
