// Checks of each access: bounds, unwritten memory, races. A problem ends the launch.
#pragma once

#include "divergence.h"

namespace emulator {

// Writes the thread and the code of an earlier access to the answer.
inline void name_other(const Entry &other, unsigned lane) {
    answer->other_code = other.code;
    answer->other_kind = base_kind(Kind(other.kind));
    name_thread(other.block, other.warp * lanes + lane, answer->other_block,
                answer->other_thread);
}

inline void race(int array, const Access &access, const Entry &other, unsigned lane) {
    if (deferred) return;
    name_other(other, lane);
    const std::uint32_t thread = other.warp * lanes + lane;
    if (other.block == block && defer("race", array, access, base + other.code, thread)) return;
    fail_at("race", array, access);
}

// Reports a possible race (see Doubt) that no atomicCAS has confirmed as harmless.
inline void report_doubt(Thread &self) {
    if (self.doubt.array < 0) return;
    const Doubt doubt = self.doubt;
    self.doubt.array = -1;
    race(doubt.array, doubt.access, doubt.other, doubt.lane);
}

// Reads the words that the current thread's next store will change.
inline void read_rewritten() {
    for (Rewrite &rewrite : current->rewrites) {
        const std::uint64_t address = memory->array(rewrite.array).address + rewrite.at;
        std::memcpy(rewrite.before, reinterpret_cast<const char *>(address), 4);
    }
}

// Compares the values that the current thread's last store has replaced with the new ones. Called
// before its next instruction that accesses memory, each basic block, and each switch of threads.
[[gnu::noinline]] inline void settle_rewrites() {
    std::vector<Rewrite> &rewrites = current->rewrites;
    if (rewrites.empty()) return;
    for (const Rewrite &rewrite : rewrites) {
        const std::uint64_t address = memory->array(rewrite.array).address + rewrite.at;
        const auto *word = reinterpret_cast<const char *>(address);
        for (unsigned i = 0; i < 4; ++i) {
            if (rewrite.bytes >> i & 1 && word[i] != rewrite.before[i])
                race(rewrite.array, rewrite.access, rewrite.other, rewrite.lane);
        }
    }
    if (!answer->n_same++) {
        answer->same_array = rewrites[0].array;
        answer->same_code = rewrites[0].access.code - base;
        answer->same_block = block;
    }
    rewrites.clear();
}

// Whether an atomicCAS followed a load at this code in any thread: the load of the first guess in a
// compare-and-swap loop.
inline bool is_first_guess(std::uint32_t code) {
    return std::ranges::find(first_guesses, code) != first_guesses.end();
}

// Whether this thread, or one that it waited for at a barrier, executed the word's latest atomic:
// as the last thread of a counter it may read the results of all others.
inline bool was_last(const Cell &cell) {
    if (!cell.last_atomic) return false;
    const std::uint32_t size = threads.size(), last = cell.last_atomic - 1;
    if (last / size != block) return false;
    return last % size == current->index || cell.atomic_epoch < epoch;
}

// Whether two accesses are a race if they are unordered.
inline bool conflict(const Entry &before, const Entry &now) {
    if (before.kind == STORE || now.kind == STORE) return true;
    if (before.kind >= ATOMIC && now.kind >= ATOMIC) {
        const bool writes = before.kind != VOLATILE_LOAD || now.kind != VOLATILE_LOAD;
        const bool in_block = before.scope == BLOCK || now.scope == BLOCK;
        return writes && before.block != now.block && in_block;
    }
    const bool writes = before.kind == ATOMIC || before.kind == VOLATILE_STORE ||
                        now.kind == ATOMIC || now.kind == VOLATILE_STORE;
    return writes && (before.kind == LOAD || now.kind == LOAD);
}

// Returns the lanes of an earlier access that is not ordered before this thread's next access.
inline unsigned unordered_lanes(const Entry &entry, const Thread &self) {
    if (is_past(entry)) return 0;
    unsigned unordered = entry.lanes;
    if (entry.block == block) {
        if (entry.epoch < epoch) return 0;
        if (entry.warp == self.index / lanes) {
            unordered &= ~(1u << lane_of(self));
            for (unsigned lane : Lanes{unordered}) {
                if (entry.clock <= self.known[lane]) unordered &= ~(1u << lane);
            }
        }
    }
    if (!unordered || !self.order) return unordered;
    for (unsigned lane : Lanes{unordered}) {
        std::vector<Seen> visited;
        const auto is_ordered = [&](const Seen &seen) {
            return covers(seen, entry, lane, block, visited);
        };
        if (std::ranges::any_of(self.order->seen, is_ordered)) unordered &= ~(1u << lane);
    }
    return unordered;
}

// Returns the lanes of a warp of this block that have stored these bytes (a mask) and `self` has not
// seen do so. All that do so at once store the same value, so each reads what it has stored itself.
inline unsigned own_values(Cell &cell, std::uint8_t warp, unsigned bytes, const Thread &self) {
    unsigned storing = 0;
    for (const Entry &entry : cell) {
        const bool same = entry.kind == STORE && entry.bytes == bytes && entry.warp == warp;
        if (!same || entry.block != block || entry.epoch != epoch) continue;
        const unsigned mine = self.warp == warp ? self.lane_bit & entry.lanes : 0;
        storing |= unordered_lanes(entry, self) | mine;
    }
    return storing;
}

// Bounds the number of entries: without fences, accesses of two blocks are never ordered, so two
// entries of other blocks suffice to find a race.
inline void forget_other_blocks(Cell &cell) {
    std::uint8_t counts[5][16] = {};
    for (Entry *entry = cell.begin(); entry != cell.end();) {
        const bool extra = entry->block != block && counts[entry->kind][entry->bytes] == 2;
        counts[entry->kind][entry->bytes] += entry->block != block && !extra;
        entry = extra ? cell.remove(entry) : entry + 1;
    }
}

// Checks that no byte of a word is both read by __ldg and written during the launch. Called before
// `check_word`, which may replace the entry of the other access.
inline void check_read_only(int number, std::uint64_t at, unsigned bytes, const Access &access) {
    Cell &cell = memory->cell(number, at);
    const bool reads = access.kind == READ_ONLY_LOAD;
    if (!(bytes & (reads ? cell.written : is_load(access.kind) ? 0 : cell.read_only))) {
        if (reads) cell.read_only |= bytes;
        watched |= reads;
        return;
    }
    for (const Entry &entry : cell) {
        if (!(entry.bytes & bytes) || is_load(Kind(entry.kind)) == reads) continue;
        name_other(entry, __builtin_ctz(entry.lanes));
        break;
    }
    fail_at(reads ? "read-only load" : "read-only memory", number, access);
}

// Called at an atomicCAS: this thread's plain loads of the address were first guesses, no races.
inline void excuse_first_guesses(int number, std::uint64_t offset, const Access &access) {
    Thread &self = *current;
    if (self.doubt.array >= 0 && self.doubt.access.address == access.address)
        self.doubt.array = -1;
    for (std::uint64_t at = offset / 4 * 4; at < offset + access.bytes; at += 4) {
        Cell &cell = cell_of(number, at);
        for (Entry *entry = cell.begin(); entry != cell.end();) {
            const bool mine = entry->kind == LOAD && entry->warp == self.index / lanes &&
                              entry->block == block && entry->epoch == epoch &&
                              entry->clock == self.known[lane_of(self)];
            if (mine && !is_first_guess(entry->code)) first_guesses.push_back(entry->code);
            if (mine) entry->lanes &= ~(1u << lane_of(self));
            entry = mine && !entry->lanes ? cell.remove(entry) : entry + 1;
        }
    }
}

// Called before other threads run between a load and the atomicCAS that it is the first guess of.
inline void expect_compare(const Access &access) {
    const std::uint64_t at = address_of(access.address);
    const int number = memory->find(at);
    if (number < 0 || !memory->array(number).writable) return;
    const std::uint64_t offset = at - memory->array(number).address;
    if (offset + access.bytes > memory->array(number).bytes) return;
    excuse_first_guesses(number, offset, access);
}

// Checks a volatile load of another block's store. Volatile accesses do not race, but without a
// fence in between, data that was stored before a flag need not be visible after the flag: between
// the stores, or, if there is one or a barrier (the flag's store is later), between the loads.
inline void check_flag(int number, const Access &access, const Entry &store) {
    Thread &self = *current;
    const unsigned unordered = unordered_lanes(store, self);
    if (!unordered) return;
    Flag &flag = self.flag;
    const Entry &other = flag.store;
    const std::uint32_t clock = self.known[lane_of(self)];
    const bool together = other.epoch == store.epoch && other.clock == store.clock;
    const bool later = other.epoch == store.epoch ? other.clock > store.clock
                                                  : other.epoch > store.epoch;
    if (flag.address && flag.address != access.address && other.block == store.block &&
        other.warp == store.warp && other.lanes & unordered &&
        (later || (together && (flag.epoch < epoch || flag.clock < clock)))) {
        race(number, access, store, __builtin_ctz(other.lanes & unordered));
    }
    flag = {access.address, store, epoch, clock};
}

// Checks that the bytes (a mask) of a word are in no asynchronous copy that the access disturbs.
void check_copies(int number, std::uint64_t at, unsigned bytes, const Access &access);
// Whether asynchronous copies to an array are under way, as far as the current thread knows.
bool is_copied(int number);
// Called at a wait for a phase of a cuda::barrier, with its log at the end of the phase.
void await_landings(const Log *log, std::size_t length);

// Checks an access to bytes (a mask) of the word at offset `at` for races, and records it.
inline void check_word(int number, std::uint64_t at, unsigned bytes, const Access &access) {
    if (deferred) return;
    Cell &cell = cell_of(number, at);
    const EmulatorArray &array = memory->array(number);
    const std::uint32_t of = members.empty() ? block : members[owner].number;
    // In a cluster, a block's own barriers do not order the accesses of others.
    if (is_shared(array) && (members.empty() || cell.block != of + 1)) cell.begin_phase(of, epoch);
    const Thread &self = *current;
    const unsigned lane = lane_of(self), mine = 1u << lane;
    const std::uint8_t warp = self.index / lanes, kind = access.kind;
    const Entry now{block, epoch, self.known[lane], mine, std::uint32_t(access.code - base),
                    warp, kind, std::uint8_t(bytes), std::uint8_t(access.scope)};
    bool merged = false, quiet = kind == LOAD && bytes == 15;
    for (Entry *entry = cell.begin(); entry != cell.end();) {
        if (is_past(*entry)) {
            entry = cell.remove(entry);
            continue;
        }
        if (!(entry->bytes & bytes)) {
            ++entry;
            continue;
        }
        const bool mates = entry->warp == warp && entry->block == block;
        if (kind == VOLATILE_LOAD && entry->kind == VOLATILE_STORE && entry->block != block) {
            check_flag(number, access, *entry);
        }
        if (conflict(*entry, now)) {
            quiet &= entry->kind == STORE && entry->block == block && entry->epoch < epoch;
            if (const unsigned unordered = unordered_lanes(*entry, self)) {
                const unsigned other = __builtin_ctz(unordered);
                const bool is_remote = owner != rank_of_block;
                if (kind == STORE && entry->kind == STORE && launch->same_values && !is_remote) {
                    plain = nullptr;
                    current->rewrites.push_back(
                        {access, at, entry->bytes & bytes, number, other, *entry, {}});
                    merged = mates && entry->epoch == epoch && entry->clock == now.clock &&
                             entry->bytes == bytes;
                    if (merged) entry->lanes |= mine;
                    ++entry;
                    continue;
                }
                if (launch->same_values && !is_remote && entry->block == block) {
                    const bool reads_own = kind == LOAD && entry->kind == STORE &&
                                           own_values(cell, warp, entry->bytes, self) & mine;
                    const bool is_read = kind == STORE && entry->kind == LOAD;
                    if (reads_own ||
                        (is_read && !(unordered & ~own_values(cell, entry->warp, bytes, self)))) {
                        ++entry;
                        continue;
                    }
                }
                const bool load_after_atomic = kind == LOAD && entry->kind == ATOMIC;
                const bool atomic_after_load = kind == ATOMIC && entry->kind == LOAD;
                const bool counted = entry->kind == ATOMIC && was_last(cell);
                const bool guess = (load_after_atomic && is_first_guess(now.code)) ||
                                   (atomic_after_load && is_first_guess(entry->code));
                const bool tolerated = load_after_atomic || (atomic_after_load && launch->traced);
                if (!tolerated && !counted && !guess) race(number, access, *entry, other);
                if (load_after_atomic && !guess && !counted && self.doubt.array < 0) {
                    plain = nullptr;
                    current->doubt = {number, access, 0, other, *entry};
                }
            }
            if (kind == STORE && !(entry->bytes & ~bytes)) {  // the store replaces the entry
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
        cell.atomic_epoch = epoch;
        cell.last_atomic = block * std::uint32_t(threads.size()) + self.index + 1;
    }
    if (!merged) {
        if (cell.size() >= 8 && !fences) forget_other_blocks(cell);
        cell.add(now);
    }
    cell.quiet = quiet;
    if (quiet) {
        cell.readers = 0;
        for (const Entry &entry : cell)
            cell.readers |= unsigned(entry.kind == LOAD && entry.block == block) << entry.warp;
    }
    // After the checks for races, since a race can be the cause of a read of unwritten memory.
    const bool reads = is_load(access.kind) || kind == ATOMIC;
    if (reads && !array.initialised && (cell.written & bytes) != bytes) {
        answer->copied = watched && is_copied(number);
        if (!defer("unwritten", number, access, 0, 0)) fail_at("unwritten", number, access);
    }
    if (!is_load(access.kind)) cell.written |= bytes;
    if (quiet) memory->mark_quiet(number, at);
}

// Atomics and volatile accesses at an address transfer the order that fences have released.
inline void synchronise(std::uint64_t address, Kind kind) {
    Thread &self = *current;
    const bool releases = self.order && !self.order->fenced.empty() && kind != VOLATILE_LOAD;
    if (!fences || (!releases && !logs.contains(address))) return;
    // A counter behind a fence: without another fence, the last block reads what all have written.
    const bool acquires = releases && kind == COUNT;
    const Order *after = after_atomic(self.order, logs[address], releases, acquires);
    if (kind != VOLATILE_STORE) self.order = after;
}

// Whether an address is in threadIdx, blockIdx, blockDim or gridDim, or in the kernel's library.
inline bool in_library(const char *address) {
    for (const dim3 *index : {&threadIdx, &blockIdx, &blockDim, &gridDim}) {
        if (address_of(address) - address_of(index) < sizeof(dim3)) return true;
    }
    Dl_info info;
    return dladdr(address, &info) && address_of(info.dli_fbase) == base;
}

// The key of `logs` for an address. Blocks have their shared memory at the same addresses.
inline std::uint64_t log_key(const EmulatorArray &array, std::uint64_t address) {
    const std::uint64_t of = members.empty() ? block : members[owner].number;
    return is_shared(array) ? address ^ (of + 1) * 0x9e3779b97f4a7c15 : address;
}

// Checks an access. Returns the number of its array; -1 for local memory, library constants and the
// shared memory of another block.
inline int check_access(Access access) {
    Thread &self = *current;
    if (!self.rewrites.empty() && self.rewrites[0].access.code != access.code) settle_rewrites();
    self.last = access.code;
    owner = rank_of_block;
    const int remote = find_remote(access);
    const std::uint64_t at = address_of(access.address);
    const int number = remote < 0 ? memory->find(at) : remote;
    if (remote >= 0) check_remote(number, access);
    if (number < 0) {
        if (self.fiber->owns(access.address)) {
            if (access.address >= __builtin_frame_address(0)) return -1;
            fail_at("local out of bounds", -1, access);
        }
        if (base_kind(access.kind) == LOAD && !memory->among_variables(at) && in_library(access.address))
            return -1;
        fail_at("out of bounds", memory->nearest(at), access);
    }
    const EmulatorArray &array = memory->array(number);
    const std::uint64_t offset = at - array.address, end = offset + access.bytes;
    if (end > array.bytes) fail_at("out of bounds", number, access);
    if (at & (access.bytes - 1)) fail_at("misaligned", number, access);  // a power of two
    if (!array.writable) {
        if (array.space == HOST) fail_at("host variable", number, access);
        if (!is_load(access.kind)) fail_at("read only", number, access);
        const char *const problem = array.space == ARGUMENT ? "unwritten" : "unfilled";
        if (!array.initialised && end > array.filled_bytes) fail_at(problem, number, access);
    } else {
        if (array.restricted && !is_load(access.kind)) fail_at("restrict", number, access);
        Access checked = access;
        if (checked.kind == COMPARE) {
            checked.kind = ATOMIC;
            excuse_first_guesses(number, offset, access);
        } else if (self.doubt.array >= 0 && ++self.doubt.age > 16) {
            report_doubt(self);
        }
        if (access.kind == READ_ONLY_LOAD) checked.kind = LOAD;
        if (access.kind == ARRIVE || access.kind == POLL || access.kind == COUNT)
            checked.kind = ATOMIC;
        // In shared memory only a store after a fence sets a flag; others are warp-synchronous code.
        const bool releases = self.order && !self.order->fenced.empty();
        if (is_shared(array) && access.kind == VOLATILE_STORE && !releases) checked.kind = STORE;
        if (access.kind == ATOMIC_LOAD) checked.kind = VOLATILE_LOAD;
        if (access.kind == ATOMIC_STORE) checked.kind = VOLATILE_STORE;
        for (std::uint64_t word = offset / 4 * 4; word < end; word += 4) {
            const std::uint64_t from = std::max(word, offset) - word,
                                to = std::min(end - word, std::uint64_t(4));
            const unsigned bytes = (1u << to) - (1u << from);
            if (watched || access.kind == READ_ONLY_LOAD) {
                check_copies(number, word, bytes, access);
                if (!is_shared(array)) check_read_only(number, word, bytes, access);
            }
            check_word(number, word, bytes, checked);
        }
        if (checked.kind > STORE && !is_shared(array)) need_order();
        const Kind order = access.kind == ARRIVE ? VOLATILE_STORE
                           : access.kind == COUNT ? COUNT
                                                  : checked.kind;
        if (order > STORE && access.kind != POLL) synchronise(log_key(array, at), order);
    }
    answer->has_owner = 0;
    return remote < 0 ? number : -1;
}

void fence(Scope scope) {
    if (scope != BLOCK) need_order();
    Thread &self = *current;
    Release release{block, epoch, std::uint8_t(self.index / lanes), scope == BLOCK, {}};
    std::ranges::copy(self.known, release.clocks);
    self.order = after_fence(self.order, release);
    ++self.known[lane_of(self)];
    self.tag = new_tag();
    self.synced = true;
    fences = true;
}

void acquire() { current->order = acquired(current->order); }

inline Log *log_of_barrier(const void *barrier) {
    const int number = launch->checked ? memory->find(address_of(barrier)) : -1;
    return number < 0 ? nullptr : &logs[log_key(memory->array(number), address_of(barrier))];
}

void await_phase(const void *barrier, std::uint32_t phase) {
    Log *log = phase ? log_of_barrier(barrier) : nullptr;
    if (!log) return;
    auto *after = current->order ? new Order(*current->order) : new Order;
    add_seen(after->seen, {log, log->phases[phase]});
    current->order = after;
    await_landings(log, log->phases[phase]);
}

}  // namespace emulator
