// The earlier accesses to a word of memory.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace emulator {

// Accesses of one kind by lanes of a warp to the same bytes of a word, at one clock of the lanes.
struct Entry {
    std::uint32_t block;
    std::uint32_t epoch;  // number of barriers that the block had passed
    std::uint32_t clock;  // of the lanes; it advances at each fence and __syncwarp
    std::uint32_t lanes;  // mask
    std::uint32_t code;   // offset in the library of the instruction after the access
    std::uint8_t warp;
    std::uint8_t kind;   // a Kind of cuda_on_host.h
    std::uint8_t bytes;  // mask
    std::uint8_t scope;  // a Scope of cuda_on_host.h; only that of an atomic matters
};

// The state of a word of four bytes, with the accesses that a later access could race with.
class Cell {
   public:
    // For shared memory, 1 + the block and the epoch of the latest access; 0: none.
    std::uint32_t block = 0, epoch = 0;
    std::uint8_t written = 0;  // mask of written bytes
    std::uint8_t read_only = 0;  // mask of bytes that __ldg has read
    std::uint8_t arriving = 0;   // mask of bytes to which an asynchronous copy is under way
    // Whether the latest access loaded the whole word, and all entries were loads or stores that a
    // barrier orders before it.
    bool quiet = false;
    std::uint32_t readers = 0;  // if quiet, mask of the warps that loaded in the latest epoch
    // Thread of the latest atomic, numbered from 1 over the launch (0: none), and its epoch.
    std::uint32_t last_atomic = 0, atomic_epoch = 0;
    std::uint16_t leaving = 0;  // number of asynchronous copies that are under way from here

    // In shared memory, forgets what earlier blocks did, and the entries before a barrier.
    void begin_phase(std::uint32_t new_block, std::uint32_t new_epoch) {
        if (block == new_block + 1 && epoch == new_epoch) return;
        clear();
        if (block != new_block + 1) written = last_atomic = 0;
        block = new_block + 1;
        epoch = new_epoch;
    }
    Entry *begin() { return capacity_ ? heap_ : first_; }
    Entry *end() { return begin() + count_; }
    void clear() { count_ = 0; }
    Entry &latest() { return end()[-1]; }
    // Makes an entry the latest one.
    void move_to_end(Entry *entry) { std::swap(*entry, latest()); }
    // Moves the last entry to the place of the removed one and returns its address.
    Entry *remove(Entry *entry) {
        *entry = begin()[--count_];
        return entry;
    }
    void add(const Entry &entry) {
        const std::uint16_t room = capacity_ ? capacity_ : 2;
        if (count_ == room) {
            auto *more = static_cast<Entry *>(std::malloc(2 * room * sizeof(Entry)));
            if (!more) std::abort();
            std::memcpy(more, begin(), count_ * sizeof(Entry));
            if (capacity_) std::free(heap_);
            heap_ = more;
            capacity_ = 2 * room;
        }
        begin()[count_++] = entry;
    }
    std::uint16_t size() const { return count_; }

   private:
    std::uint16_t count_ = 0, capacity_ = 0;  // capacity 0: up to two entries in `first_`
    Entry *heap_ = nullptr;
    Entry first_[2];
};

// Loads of a word by lanes of one warp at one clock, which are not yet in the cell's latest entry.
struct Repeats {
    std::uint32_t tag = 0;    // of the loading threads, see `Thread`; 0: none
    std::uint32_t lanes = 0;  // mask
    std::uint32_t warp = 0;
};

}  // namespace emulator
