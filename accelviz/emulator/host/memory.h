// The arrays of a launch, and for each of their words the earlier accesses.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "runtime.h"

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
// These tables are small enough for the processor's fastest cache.
struct Repeats {
    std::uint64_t moment = 0;  // of the loads, see `moment` in threads.h; 0: none
    std::uint32_t reader = 0;  // warp and clock, see `reader` in threads.h
    std::uint32_t lanes = 0;   // mask
};

// The words of an array: their cells, and repeated loads.
struct Words {
    Cell *cells = nullptr;
    Repeats *repeats = nullptr;
};

// The shared memory of a block that waits while another one runs.
struct SharedMemory {
    std::vector<char> bytes;
    std::vector<Words> words;
};

// The arrays of a launch: first its arguments, array i at slots_begin + (i << slot_bits); then the
// kernel's variables, which are in its library or in dynamic shared memory.
class Memory {
   public:
    // `library` is the address of the kernel's library. A launch of `few` blocks touches few cells:
    // small pages then save the time to clear memory. Cells exist until the process ends.
    Memory(const EmulatorArray *arrays, std::uint32_t count, std::uint64_t library, bool few)
        : arrays_(arrays, arrays + count), words_(count) {
        for (std::uint32_t i = 0; i < count; ++i) {
            EmulatorArray &array = arrays_[i];
            if (array.space == ARGUMENT) {
                n_slots_ = i + 1;  // arguments come first
            } else {
                if (array.space != DYNAMIC) array.address += library;
                variables_.push_back(i);
            }
            if (array.writable) words_[i] = new_words(array, few);
        }
        std::ranges::sort(variables_, {}, [&](int i) { return arrays_[i].address; });
        list_slots();
    }

    // Number of the array that contains an address, or -1.
    int find(std::uint64_t address) {
        // A difference of a lower address wraps around to a large number.
        const std::uint64_t slot = (address - slots_begin) >> slot_bits;
        if (slot < n_slots_) return holds(slot, address) ? slot : -1;
        for (const Range &range : latest_) {
            if (address - range.address < range.bytes) return range.number;
        }
        const int variable = before(address);
        if (variable < 0 || !holds(variable, address)) return -1;
        newest_ ^= 1;
        latest_[newest_] = range(variable);
        return variable;
    }

    // The bytes of an array, and its repeated loads, null if the kernel cannot write it.
    struct Range {
        std::uint64_t address = 0, bytes = 0;
        Repeats *repeats = nullptr;
        int number = -1;
    };
    // The range that contains an aligned load, if all that can be wrong with the load is in the
    // cells of its words; null otherwise, and if that takes a search.
    const Range *find_plain(std::uint64_t address, unsigned bytes) const {
        const auto contains = [&](const Range &range) {
            const std::uint64_t offset = address - range.address;
            return offset < range.bytes && range.bytes - offset >= bytes;
        };
        const std::uint64_t slot = (address - slots_begin) >> slot_bits;
        if (slot < n_slots_) return contains(slots_[slot]) ? &slots_[slot] : nullptr;
        for (const Range &range : latest_) {
            if (contains(range)) return range.repeats ? &range : nullptr;
        }
        return nullptr;
    }

    // Number of the array that an address out of bounds is closest to, or -1.
    int nearest(std::uint64_t address) const {
        const std::uint64_t slot = (address - slots_begin) >> slot_bits;
        if (slot < n_slots_) return slot;
        constexpr std::uint64_t far = 1 << 20;  // not close: a distance of this many bytes
        const int variable = before(address);
        if (variable >= 0 && address - arrays_[variable].address < arrays_[variable].bytes + far)
            return variable;
        for (int i : variables_) {
            if (arrays_[i].address > address && arrays_[i].address - address < far) return i;
        }
        return -1;
    }

    // Whether an address is between the first and the last of the kernel's variables, or within 64
    // bytes after the last. Loads elsewhere in the library are loads of constants, which are valid.
    bool among_variables(std::uint64_t address) const {
        std::uint64_t first = ~0ull, last = 0;
        for (int i : variables_) {
            if (arrays_[i].space == DYNAMIC) continue;
            first = std::min(first, arrays_[i].address);
            last = arrays_[i].address + arrays_[i].bytes + 64;
        }
        return address >= first && address < last;
    }

    // Exchanges shared memory, which is at the same addresses for all blocks, and its cells.
    void swap_shared(SharedMemory &other) {
        std::size_t at = 0, number = 0;
        for (int i : variables_) {
            const EmulatorArray &array = arrays_[i];
            if (array.space != SHARED && array.space != DYNAMIC) continue;
            if (number == other.words.size()) {
                other.words.push_back(new_words(array, true));
                other.bytes.resize(at + array.bytes);
            }
            auto *live = reinterpret_cast<char *>(array.address);
            std::swap_ranges(live, live + array.bytes, other.bytes.begin() + at);
            std::swap(words_[i], other.words[number++]);
            at += array.bytes;
        }
        for (Range &latest : latest_) latest = {};
    }

    // Numbers of the arguments that the kernel may write.
    std::vector<int> outputs() const {
        std::vector<int> numbers;
        for (std::uint64_t i = 0; i < n_slots_; ++i) {
            if (arrays_[i].space == ARGUMENT && arrays_[i].writable) numbers.push_back(int(i));
        }
        return numbers;
    }
    std::size_t words(int i) const { return arrays_[i].bytes / 4 + 1; }

    // Replaces all cells by new ones.
    void forget_accesses() {
        for (std::size_t i = 0; i < arrays_.size(); ++i) {
            if (words_[i].cells) words_[i] = new_words(arrays_[i], false);
        }
        list_slots();
        for (Range &latest : latest_) latest = {};
    }
    // Writes a byte for each word of the outputs: masks of its written (1 to 8) and accessed bytes.
    void list_accesses(std::uint8_t *masks) {
        for (int i : outputs()) {
            for (std::size_t word = 0; word < words(i); ++word) {
                Cell &cell = words_[i].cells[word];
                unsigned accessed = cell.written | cell.read_only;
                for (const Entry &entry : cell) accessed |= entry.bytes;
                if (accessed) masks[word] = std::uint8_t(cell.written | accessed << 4);
            }
            masks += words(i);
        }
    }
    // Copies the written bytes of the outputs to the memory that processes share.
    void store(const std::uint8_t *masks, char *common) const {
        for (int i : outputs()) {
            const auto *from = reinterpret_cast<const char *>(arrays_[i].address);
            char *to = common + arrays_[i].content;
            for (std::size_t word = 0; word < words(i); ++word) {
                const unsigned written = masks[word] & 15;
                if (written == 15) std::memcpy(to + 4 * word, from + 4 * word, 4);
                else for (unsigned byte = 0; byte < 4; ++byte) {
                    if (written >> byte & 1) to[4 * word + byte] = from[4 * word + byte];
                }
            }
            masks += words(i);
        }
    }
    // Marks bytes of the outputs as written that another process has written.
    void mark_written(const std::uint8_t *masks) {
        for (int i : outputs()) {
            for (std::size_t word = 0; word < words(i); ++word) {
                if (masks[word] & 15) words_[i].cells[word].written |= masks[word] & 15;
            }
            masks += words(i);
        }
    }
    // Returns the elements of an output of which no byte is written: structures have padding.
    EmulatorGap gap(int i) const {
        EmulatorGap gap{.array = i, .count = 0, .first = 0};
        const std::uint64_t itemsize = arrays_[i].itemsize;
        for (std::uint64_t at = 0; at < arrays_[i].bytes; at += itemsize) {
            bool written = false;
            for (std::uint64_t byte = at; byte < at + itemsize; ++byte)
                written |= words_[i].cells[byte / 4].written >> byte % 4 & 1;
            if (!written && !gap.count++) gap.first = at / itemsize;
        }
        return gap;
    }
    // Whether the kernel has written a __device__ variable.
    bool wrote_variables() const {
        for (int i : variables_) {
            if (arrays_[i].space != DEVICE_VARIABLE || !words_[i].cells) continue;
            for (std::size_t word = 0; word < words(i); ++word) {
                if (words_[i].cells[word].written) return true;
            }
        }
        return false;
    }

    const EmulatorArray &array(int i) const { return arrays_[i]; }
    // The cell of a word, with all its loads.
    Cell &cell(int i, std::uint64_t offset) {
        Cell &cell = words_[i].cells[offset / 4];
        Repeats &repeats = words_[i].repeats[offset / 4];
        if (repeats.moment) cell.latest().lanes |= repeats.lanes;
        repeats = {};
        return cell;
    }

   private:
    Range range(int i) const {
        return {arrays_[i].address, arrays_[i].bytes, words_[i].repeats, i};
    }
    void list_slots() {
        slots_.assign(n_slots_, {});
        for (std::uint64_t i = 0; i < n_slots_; ++i) {
            if (arrays_[i].writable || arrays_[i].initialised) slots_[i] = range(int(i));
        }
    }
    // Memory of zeros is a valid array of cells without entries, and of no repeated loads.
    static Words new_words(const EmulatorArray &array, bool few) {
        const std::size_t count = array.bytes / 4 + 1;
        return {static_cast<Cell *>(zeros(count * sizeof(Cell), few)),
                static_cast<Repeats *>(zeros(count * sizeof(Repeats), few))};
    }
    static void *zeros(std::size_t bytes, bool few) {
        void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) std::abort();
#ifdef MADV_HUGEPAGE
        if (bytes >= 1 << 22 && !few) madvise(memory, bytes, MADV_HUGEPAGE);
#endif
        return memory;
    }
    bool holds(std::size_t i, std::uint64_t address) const {
        return address - arrays_[i].address < arrays_[i].bytes;
    }
    // The last variable that begins at or before an address, or -1.
    int before(std::uint64_t address) const {
        int last = -1;
        for (int i : variables_) {
            if (arrays_[i].address > address) break;
            last = i;
        }
        return last;
    }

    std::vector<EmulatorArray> arrays_;
    std::vector<Words> words_;
    std::vector<int> variables_;  // numbers of the variables, by address
    std::uint64_t n_slots_ = 0;
    std::vector<Range> slots_;  // of the arguments; without bytes if a load can read unwritten ones
    // The results of the last two searches: a product reads two tiles in turn.
    Range latest_[2] = {};
    int newest_ = 0;
};

}  // namespace emulator
