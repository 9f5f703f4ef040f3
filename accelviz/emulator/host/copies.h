// Asynchronous copies. Their bytes are copied at once; from the start of a copy to the wait of its
// thread, a read or write of the destination and a write of the source are errors.
#pragma once

#include <string>

#include "checks.h"
// Last, because its macros redefine C functions.
#include "cuda_on_host.h"

namespace emulator {

// Calls `visit` with the cell and the mask of bytes of each word of a range in an array.
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

// Reports a race if nothing orders an access after the start of a copy by another thread. Before
// any thread has waited for a copy, it is the wait that is missing.
inline void check_start(int number, std::uint64_t at, const Access &access, const Copy &copy,
                        const Thread &other) {
    if (!awaited || &other == current) return;
    const unsigned mine = 1u << lane_of(other);
    for (const Entry &entry : memory->cell(number, at)) {
        if (entry.code + base != copy.code || entry.block != block) continue;
        if (entry.warp != other.index / lanes || !conflict(entry, {.kind = std::uint8_t(access.kind)}))
            continue;
        if (entry.lanes & unordered_lanes(entry, *current) & mine)
            race(number, access, entry, lane_of(other));
    }
}

void check_copies(int number, std::uint64_t at, unsigned bytes, const Access &access) {
    const Cell &cell = memory->cell(number, at);
    const bool arrives = cell.arriving & bytes;
    if (!arrives && (is_load(access.kind) || !cell.leaving)) return;
    const std::uint64_t begin = address_of(access.address);
    for (const Thread &thread : threads) {
        for (const Copy &copy : thread.copies) {
            const std::uint64_t start = arrives ? copy.to : copy.from;
            if (begin >= start + (arrives ? copy.bytes : copy.read) ||
                start >= begin + access.bytes)
                continue;
            check_start(number, at, access, copy, thread);
            answer->other_code = copy.code - base;
            name_thread(block, thread.index, answer->other_block, answer->other_thread);
            fail_at(arrives ? "copy arriving" : "copy leaving", number, access);
        }
    }
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
    const Copy copy{address_of(to), address_of(from), bytes,   read,
                    current->group, address_of(code), barrier, false};
    const int number = memory->find(copy.to), source = memory->find(copy.from);
    for_each_word(number, copy.to, bytes, [&](std::uint64_t at, unsigned mask) {
        memory->cell(number, at).arriving |= mask;
    });
    for_each_word(source, copy.from, read,
                  [&](std::uint64_t at, unsigned) { ++memory->cell(source, at).leaving; });
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
    const int number = memory->find(copy.to), source = memory->find(copy.from);
    for_each_word(number, copy.to, copy.bytes, [&](std::uint64_t at, unsigned mask) {
        memory->cell(number, at).arriving &= ~mask;
    });
    for_each_word(source, copy.from, copy.read,
                  [&](std::uint64_t at, unsigned) { --memory->cell(source, at).leaving; });
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
    for (Thread &thread : threads) {
        std::erase_if(thread.copies, [&](const Copy &copy) {
            const bool ends = copy.barrier == barrier && copy.arrived;
            awaited |= ends;
            if (ends) unmark(copy);
            return ends;
        });
    }
}

// Reports a copy for which its thread, which leaves the kernel, has not waited. Others may wait for
// a phase at which it has arrived.
inline void report_unfinished_copy(const Thread &self) {
    for (const Copy &copy : self.copies) {
        if (!copy.arrived) fail("copy unfinished", copy.code);
    }
}

}  // namespace emulator
