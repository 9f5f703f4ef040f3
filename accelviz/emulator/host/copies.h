// Asynchronous copies. Their bytes are copied at once; until a wait that is ordered before it, a read
// or write of the destination and a write of the source are errors. A copy is in flight until its
// thread waits for it or, with a cuda::barrier, until the phase of the barrier ends. Then it has
// landed, which only threads know that wait for this phase, and those ordered after such a thread.
#pragma once

#include <memory>
#include <string>

#include "checks.h"
// Last, because its macros redefine C functions.
#include "cuda_on_host.h"

namespace emulator {

// Copies of one phase of a cuda::barrier that has ended: who has seen `length` releases of its log
// knows of it.
struct Landing {
    const Log *log;
    std::size_t length;
    std::uint32_t block, number;
    bool awaited;  // whether a thread has waited for the phase
    std::vector<Copy> copies;
};

// Bytes (a mask) of a word that are the destination, or else the source, of a copy that has landed.
struct Landed {
    const Landing *landing;
    std::uint32_t copy;  // its index in the landing
    unsigned bytes;
    bool arrives;
};

static std::vector<std::unique_ptr<Landing>> landings;
static std::unordered_map<const Cell *, std::vector<Landed>> landed;
// The threads of blocks that wait at a barrier of the grid or cluster.
static std::vector<const std::vector<Thread> *> waiting_threads;

// Calls `visit` with the offset and the mask of bytes of each word of a range in an array.
template <typename Visit>
void for_each_word(int number, std::uint64_t at, unsigned bytes, Visit visit) {
    if (number < 0 || !memory->array(number).writable) return;
    const std::uint64_t offset = at - memory->array(number).address, end = offset + bytes;
    for (std::uint64_t word = offset / 4 * 4; word < end; word += 4) {
        const std::uint64_t from = std::max(word, offset) - word,
                            to = std::min(end - word, std::uint64_t(4));
        visit(word, (1u << to) - (1u << from));
    }
}

// Calls `visit` with the cell and the mask of bytes of each word of a copy by the block that runs,
// and with whether they are of its destination.
template <typename Visit>
void for_each_cell(const Copy &copy, Visit visit) {
    owner = rank_of_block;
    for (const bool arrives : {true, false}) {
        const std::uint64_t address = arrives ? copy.to : copy.from;
        const int number = memory->find(address);
        for_each_word(number, address, arrives ? copy.bytes : copy.read,
                      [&](std::uint64_t at, unsigned mask) {
                          visit(cell_of(number, at), mask, arrives);
                      });
    }
}

// Whether a thread with this order knows that the copies of a landing are complete.
inline bool knows(const Order *order, const Landing &landing) {
    static const Order *latest_order = nullptr;
    static std::uint32_t latest_number = 0;
    static bool latest = false;
    if (!order) return false;
    if (order == latest_order && landing.number == latest_number) return latest;
    std::vector<Seen> visited;
    latest = std::ranges::any_of(order->seen, [&](const Seen &seen) {
        return includes(seen, {landing.log, landing.length}, visited);
    });
    latest_order = order;
    latest_number = landing.number;
    return latest;
}

// Forgets the landings of the block that runs for which `is_over` returns true.
template <typename IsOver>
void forget_landings(IsOver is_over) {
    std::erase_if(landings, [&](const std::unique_ptr<Landing> &landing) {
        if (landing->block != block || !is_over(*landing)) return false;
        for (const Copy &copy : landing->copies) {
            for_each_cell(copy, [&](Cell &cell, unsigned, bool) {
                const auto entries = landed.find(&cell);
                if (entries == landed.end()) return;
                std::erase_if(entries->second, [&](const Landed &entry) {
                    if (entry.landing != landing.get()) return false;
                    if (entry.arrives) cell.arriving &= ~entry.bytes;
                    else --cell.leaving;
                    return true;
                });
                if (entries->second.empty()) landed.erase(entries);
            });
        }
        return true;
    });
}

// Called at a barrier of the block, whose threads have `order` behind it.
inline void forget_known_landings(const Order *order) {
    if (landings.empty()) return;
    forget_landings([&](const Landing &landing) { return knows(order, landing); });
}

// Reports a race if nothing orders an access after the start of a copy by another thread. Before
// any thread has waited for a copy, it is the wait that is missing.
inline void check_start(int number, std::uint64_t at, const Access &access, const Copy &copy) {
    if (!awaited || (copy.block == block && copy.thread == current->index)) return;
    const unsigned mine = 1u << copy.thread % lanes;
    for (const Entry &entry : cell_of(number, at)) {
        if (entry.code + base != copy.code || entry.block != copy.block) continue;
        if (entry.warp != copy.thread / lanes || !conflict(entry, {.kind = std::uint8_t(access.kind)}))
            continue;
        if (entry.lanes & unordered_lanes(entry, *current) & mine)
            race(number, access, entry, copy.thread % lanes);
    }
}

[[noreturn]] inline void report_copy(int number, const Access &access, const Copy &copy,
                                     bool arrives) {
    answer->other_code = copy.code - base;
    name_thread(copy.block, copy.thread, answer->other_block, answer->other_thread);
    fail_at(arrives ? "copy arriving" : "copy leaving", number, access);
}

// Checks an access to bytes (a mask) of a word against copies that have landed. Returns the bytes
// at which copies in flight may arrive.
inline unsigned check_landed(int number, Cell &cell, unsigned bytes, const Access &access) {
    unsigned in_flight = cell.arriving & bytes;
    const auto entries = landed.find(&cell);
    if (entries == landed.end()) return in_flight;
    const bool writes = !is_load(access.kind);
    for (Landed &entry : entries->second) {
        if (!(entry.bytes & bytes) || !(entry.arrives || writes)) continue;
        if (!knows(current->order, *entry.landing))
            report_copy(number, access, entry.landing->copies[entry.copy], entry.arrives);
        if (!entry.arrives) continue;
        in_flight &= ~entry.bytes;
        if (!writes) continue;
        // Who reads these bytes has to be ordered after this write, which is after the copy.
        cell.arriving &= ~(entry.bytes & bytes);
        entry.bytes &= ~bytes;
    }
    std::erase_if(entries->second, [](const Landed &entry) { return !entry.bytes; });
    if (entries->second.empty()) landed.erase(entries);
    return in_flight;
}

void check_copies(int number, std::uint64_t at, unsigned bytes, const Access &access) {
    if (deferred) return;
    Cell &cell = cell_of(number, at);
    if (!(cell.arriving & bytes) && (is_load(access.kind) || !cell.leaving)) return;
    const bool arrives = check_landed(number, cell, bytes, access);
    if (!arrives && (is_load(access.kind) || !cell.leaving)) return;
    const std::uint64_t begin = address_of(access.address);
    const bool in_shared = is_shared(memory->array(number));
    const std::uint32_t of = members.empty() ? block : members[owner].number;
    const auto check = [&](const std::vector<Thread> &of_block) {
        for (const Thread &thread : of_block) {
            for (const Copy &copy : thread.copies) {
                const std::uint64_t start = arrives ? copy.to : copy.from;
                const bool apart = begin >= start + (arrives ? copy.bytes : copy.read) ||
                                   start >= begin + access.bytes;
                if (apart || (in_shared && copy.block != of)) continue;
                check_start(number, at, access, copy);
                if (deferred) return;
                report_copy(number, access, copy, arrives);
            }
        }
    };
    check(threads);
    for (const std::vector<Thread> *waiting : waiting_threads) check(*waiting);
}

bool is_copied(int number) {
    const auto arrives = [&](const Copy &copy) { return memory->find(copy.to) == number; };
    return std::ranges::any_of(threads, [&](const Thread &thread) {
        return std::ranges::any_of(thread.copies, arrives);
    }) || std::ranges::any_of(landings, [&](const std::unique_ptr<Landing> &landing) {
        return landing->block == block && !knows(current->order, *landing) &&
               std::ranges::any_of(landing->copies, arrives);
    });
}

void copy_async(void *to, const void *from, unsigned bytes, unsigned zeros, void *code,
                const void *barrier) {
    const unsigned read = bytes - zeros;
    if (zeros) {
        for (unsigned i = 0; i < read; ++i)
            access(static_cast<const char *>(from) + i, 1, LOAD, DEVICE, code);
    } else {
        access(from, bytes, LOAD, DEVICE, code);
    }
    access(to, bytes, STORE, DEVICE, code);
    std::memmove(to, from, read);
    std::memset(static_cast<char *>(to) + read, 0, zeros);
    if (!launch->checked) return;
    watched = true;
    const Copy copy{address_of(to),   address_of(from), bytes,   read,  current->group,
                    address_of(code), barrier,          false,   block, current->index};
    for_each_cell(copy, [](Cell &cell, unsigned mask, bool arrives) {
        if (arrives) cell.arriving |= mask;
        else ++cell.leaving;
    });
    current->copies.push_back(copy);
}

void check_async_copy(const void *to, std::size_t bytes, std::size_t zeros, void *code) {
    if ((bytes != 4 && bytes != 8 && bytes != 16) || zeros > bytes) {
        const std::string sizes =
            std::to_string(bytes) + (zeros ? " - " + std::to_string(zeros) : "");
        stop(("copy size: " + sizes).c_str(), code);
    }
    if (!launch->checked) return;
    const int number = memory->find(address_of(to));
    if (number < 0 || !is_shared(memory->array(number))) fail("not shared", address_of(code));
}

void commit_copies() {
    ++current->group;
}

// The accesses of a copy, which take place now, in the order of its thread.
inline void check_copy(const Copy &copy) {
    owner = rank_of_block;
    const auto check = [&](std::uint64_t address, unsigned bytes, Kind kind) {
        const int number = memory->find(address);
        const Access access{reinterpret_cast<const char *>(address), bytes, kind, DEVICE,
                            copy.code};
        for_each_word(number, address, bytes, [&](std::uint64_t at, unsigned mask) {
            check_word(number, at, mask, access);
        });
    };
    check(copy.from, copy.read, LOAD);
    check(copy.to, copy.bytes, STORE);
}

inline void unmark(const Copy &copy) {
    for_each_cell(copy, [](Cell &cell, unsigned mask, bool arrives) {
        if (arrives) cell.arriving &= ~mask;
        else --cell.leaving;
    });
}

void await_copies(unsigned unfinished) {
    std::erase_if(current->copies, [&](const Copy &copy) {
        const bool ends = !copy.barrier && copy.group + unfinished < current->group;
        awaited |= ends;
        if (ends) unmark(copy);
        if (ends) check_copy(copy);
        return ends;
    });
}

void arrive_with_copies(const void *barrier) {
    for (Copy &copy : current->copies) {
        if (copy.barrier != barrier || copy.arrived) continue;
        check_copy(copy);
        copy.arrived = true;
    }
}

void finish_copies(const void *barrier) {
    if (!watched) return;
    static std::uint32_t latest_number = 0;
    const Log *const log = log_of_barrier(barrier);
    auto landing = std::make_unique<Landing>();
    *landing = {log, log ? log->releases.size() : 0, block, ++latest_number, false, {}};
    for (Thread &thread : threads) {
        std::erase_if(thread.copies, [&](const Copy &copy) {
            const bool ends = copy.barrier == barrier && copy.arrived;
            if (ends && !log) unmark(copy);
            if (ends && log) landing->copies.push_back(copy);
            return ends;
        });
    }
    if (landing->copies.empty()) return;
    for (std::uint32_t i = 0; i < landing->copies.size(); ++i) {
        for_each_cell(landing->copies[i], [&](Cell &cell, unsigned mask, bool arrives) {
            landed[&cell].push_back({landing.get(), i, mask, arrives});
        });
    }
    landings.push_back(std::move(landing));
}

void await_landings(const Log *log, std::size_t length) {
    for (const std::unique_ptr<Landing> &landing : landings) {
        const bool waits = landing->log == log && landing->length <= length;
        landing->awaited |= waits;
        awaited |= waits;
    }
}

// Reports a copy for which its thread, which leaves the kernel, has not waited. Others may wait for
// a phase at which it has arrived.
inline void report_unfinished_copy(const Thread &self) {
    for (const Copy &copy : self.copies) {
        if (!copy.arrived) fail("copy unfinished", copy.code);
    }
}

// Called when all threads of the block have left: reports a copy for which no thread has waited.
inline void end_copies() {
    if (!watched) return;
    const Copy *unfinished = nullptr;
    for (const Thread &thread : threads) {
        if (!thread.copies.empty()) unfinished = &thread.copies[0];
    }
    for (const std::unique_ptr<Landing> &landing : landings) {
        if (landing->block == block && !landing->awaited) unfinished = &landing->copies[0];
    }
    if (unfinished) set_problem("copy unfinished", unfinished->thread, unfinished->code, -1);
    else forget_landings([](const Landing &) { return true; });
}

}  // namespace emulator
