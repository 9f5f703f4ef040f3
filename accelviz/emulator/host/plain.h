// Short paths of the checks for plain loads and stores of whole words, which most accesses take.
// They record an access if nothing can be wrong with it, and leave it to `access` otherwise.
#pragma once

#include "barriers.h"
// Last, because its macros redefine C functions.
#include "cuda_on_host.h"

namespace emulator {

// Records a plain load of a whole word of an argument if no entry can be a race with it.
inline bool record_quiet_load(Cell &cell, const EmulatorArray &array, const Thread &self,
                              std::uint64_t code) {
    if (cell.arriving || !(array.initialised || cell.written == 15)) return false;
    const std::uint8_t warp = self.warp;
    const std::uint32_t clock = self.known[lane_of(self)];
    if (!cell.size()) {
        cell.quiet = true;
        cell.readers = 0;
    } else {
        const Entry &latest = cell.latest();
        // Otherwise the block or a barrier has changed since the latest access.
        if (!cell.quiet || latest.kind != LOAD || latest.block != block || latest.epoch != epoch)
            return false;
    }
    if (cell.readers >> warp & 1) {
        for (Entry *entry = &cell.latest(); entry >= cell.begin(); --entry) {
            if (entry->warp != warp || entry->kind == STORE || entry->block != block) continue;
            const bool joins = entry->kind == LOAD && entry->clock == clock && entry->bytes == 15 &&
                               entry->epoch == epoch;
            if (joins) entry->lanes |= self.lane_bit;
            cell.move_to_end(entry);
            return joins;
        }
    }
    if (cell.size() > lanes) return false;  // `check_word` forgets entries of other blocks
    cell.readers |= 1u << warp;
    cell.add({block, epoch, clock, self.lane_bit, std::uint32_t(code - base), warp, LOAD, 15,
              DEVICE});
    return true;
}

// Records a plain load of aligned words outside of shared memory. Returns whether it did.
template <unsigned bytes>
bool record_load(Thread &self, std::uint64_t at, std::uint64_t code) {
    for (const dim3 *index : {&threadIdx, &blockIdx, &blockDim, &gridDim}) {
        if (at - address_of(index) < sizeof(dim3)) return bytes == 4;
    }
    if (bytes < 4) return false;
    const Memory::Range *const range = memory->find_argument(at, bytes);
    if (!range) return false;
    for (unsigned word = 0; word < bytes; word += 4) {
        const std::uint64_t offset = at - range->address + word;
        Repeats &repeats = range->repeats[offset / 4];
        if (repeats.tag != self.tag || repeats.warp != self.warp) {
            Cell &cell = memory->cell(range->number, offset);
            if (!record_quiet_load(cell, memory->array(range->number), self, code)) return false;
            repeats = {self.tag, 0, self.warp};
        }
        repeats.lanes |= self.lane_bit;
    }
    return true;
}

// Records a plain store of aligned words if nothing has accessed them: in shared memory in this
// phase, in an argument in this launch. Returns whether it did.
template <unsigned bytes>
bool record_store(Thread &self, std::uint64_t at, std::uint64_t code) {
    if (bytes < 4 || at & (bytes - 1) || watched) return false;
    const std::uint64_t offset = shared.offset(at);
    Cell *cells;
    if (offset != SharedWords::nowhere) {
        cells = shared.cells + offset / 4;
        for (unsigned i = 0; i < bytes / 4; ++i) {
            if (!shared.is_untouched(offset / 4 + i)) return false;
        }
        for (unsigned i = 0; i < bytes / 4; ++i) cells[i].begin_phase(block, epoch);
    } else {
        const Memory::Range *const range = memory->find_argument(at, bytes);
        if (!range || !range->cells) return false;
        cells = range->cells + (at - range->address) / 4;
        for (unsigned i = 0; i < bytes / 4; ++i) {
            if (cells[i].size()) return false;
        }
    }
    const std::uint32_t clock = self.known[lane_of(self)];
    const Entry store{block, epoch, clock, self.lane_bit, std::uint32_t(code - base),
                      std::uint8_t(self.warp), STORE, 15, DEVICE};
    for (unsigned i = 0; i < bytes / 4; ++i) {
        cells[i].add(store);
        cells[i].written = 15;
        cells[i].quiet = false;
    }
    return true;
}

template <unsigned bytes>
[[gnu::noinline]] void load_slowly(const void *address, std::uint64_t code) {
    if (plain && record_load<bytes>(*plain, address_of(address), code)) {
        plain->last = code;
        return;
    }
    access(address, bytes, LOAD, DEVICE, reinterpret_cast<void *>(code));
}

// The same for words of shared memory.
template <unsigned bytes>
[[gnu::noinline]] void load_shared(const void *address, std::uint64_t code, std::size_t word) {
    Thread &self = *plain;
    for (unsigned i = 0; i < bytes / 4; ++i, ++word) {
        Loads &loaded = self.loads[word];
        if (loaded.tag == self.tag) {
            loaded.lanes |= self.lane_bit;
        } else {
            if (!shared.prepare_load(word, self.warp))
                return access(address, bytes, LOAD, DEVICE, reinterpret_cast<void *>(code));
            loaded = {self.tag, self.lane_bit};
            self.first_loads[word] = {std::uint32_t(code - base), self.known[lane_of(self)]};
        }
    }
    self.last = code;
}

// Checks a plain load; here if its words are read-only, or its warp has loaded them in this phase.
template <unsigned bytes>
inline void load(const void *address, std::uint64_t code) {
    Thread *const self = plain;
    if (!self) return load_slowly<bytes>(address, code);
    const std::uint64_t at = address_of(address), offset = shared.offset(at);
    if (offset == SharedWords::nowhere) {
        const Memory::Range *const range = memory->find_argument(at, bytes);
        if (!range || range->repeats) return load_slowly<bytes>(address, code);
    } else {
        if (bytes < 4 || offset & (bytes - 1)) return load_slowly<bytes>(address, code);
        Loads *const loads = self->loads + offset / 4;
        for (unsigned i = 0; i < bytes / 4; ++i) {
            if (loads[i].tag != self->tag) return load_shared<bytes>(address, code, offset / 4);
        }
        for (unsigned i = 0; i < bytes / 4; ++i) loads[i].lanes |= self->lane_bit;
    }
    self->last = code;
}

// Checks a plain store.
template <unsigned bytes>
void store(const void *address, std::uint64_t code) {
    if (plain && record_store<bytes>(*plain, address_of(address), code)) {
        plain->last = code;
        return;
    }
    access(address, bytes, STORE, DEVICE, reinterpret_cast<void *>(code));
}

}  // namespace emulator
