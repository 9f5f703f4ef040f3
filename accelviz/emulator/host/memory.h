// The arrays of a launch, and for each of their words the earlier accesses.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "cells.h"
#include "runtime.h"
#include "shared.h"

namespace emulator {

// Maps memory that processes share: of a file where a sandbox refuses memory of none.
inline void *map_shared(std::size_t bytes) {
    constexpr int access = PROT_READ | PROT_WRITE;
    void *memory = mmap(nullptr, bytes, access, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    std::FILE *file = memory == MAP_FAILED ? std::tmpfile() : nullptr;
    if (!file) return memory;
    if (!ftruncate(fileno(file), off_t(bytes)))
        memory = mmap(nullptr, bytes, access, MAP_SHARED, fileno(file), 0);
    std::fclose(file);
    return memory;
}

// The words of an array: their cells, and repeated loads; in shared memory, the number of the first
// one in the tables that all shared arrays have in common.
struct Words {
    Cell *cells = nullptr;
    Repeats *repeats = nullptr;
    std::int64_t first_shared = -1;
};

// The shared memory of a block that waits while another one runs.
struct SharedMemory {
    char *window = nullptr;  // of a block of a cluster, see clusters.h; else its bytes:
    std::vector<char> bytes;
    std::vector<Cell *> cells;
};

// The arrays of a launch: first its arguments, array i at slots_begin + (i << slot_bits); then the
// kernel's variables, which are in its library or in dynamic shared memory.
class Memory {
   public:
    // `library` is the address of the kernel's library. A launch of `few` blocks touches few cells:
    // small pages then save the time to clear memory. Cells exist until the process ends.
    Memory(const EmulatorArray *arrays, std::uint32_t count, std::uint64_t library, bool few,
           std::size_t n_warps)
        : arrays_(arrays, arrays + count), words_(count) {
        for (std::uint32_t i = 0; i < count; ++i) {
            EmulatorArray &array = arrays_[i];
            if (array.space == ARGUMENT) {
                n_slots_ = i + 1;  // arguments come first
            } else {
                if (array.space != DYNAMIC) array.address += library;
                variables_.push_back(i);
            }
        }
        std::ranges::sort(variables_, {}, [&](int i) { return arrays_[i].address; });
        list_shared(n_warps);
        for (std::uint32_t i = 0; i < count; ++i) {
            if (arrays_[i].writable && !words_[i].cells) words_[i] = new_words(arrays_[i], few);
        }
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

    // The bytes of an array, and its repeated loads, null if the kernel cannot write it; its cells,
    // null if no store is allowed.
    struct Range {
        std::uint64_t address = 0, bytes = 0;
        Repeats *repeats = nullptr;
        Cell *cells = nullptr;
        int number = -1;
    };
    // The argument that contains an aligned access, if all that can be wrong with the access is in
    // the cells of its words; null otherwise.
    const Range *find_argument(std::uint64_t address, unsigned bytes) const {
        const std::uint64_t slot = (address - slots_begin) >> slot_bits;
        if (slot >= n_slots_) return nullptr;
        const Range &range = slots_[slot];
        const std::uint64_t offset = address - range.address;
        const bool inside = offset < range.bytes && range.bytes - offset >= bytes;
        return inside && !(offset & (bytes - 1)) ? &range : nullptr;
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
        std::size_t number = 0;
        for (int i : variables_) {
            const EmulatorArray &array = arrays_[i];
            if (!is_shared(array)) continue;
            const std::uint64_t at = offset_of_shared(i);
            if (!other.window)
                other.bytes.resize(std::max<std::size_t>(other.bytes.size(), at + array.bytes));
            auto *live = reinterpret_cast<char *>(array.address);
            char *const stored = (other.window ? other.window : other.bytes.data()) + at;
            std::swap_ranges(live, live + array.bytes, stored);
            if (words_[i].first_shared < 0) swap_cells(words_[i].cells, words(i), other, number++);
        }
        swap_cells(shared.cells, shared.count, other, number);
        for (Words &words : words_) {
            if (words.first_shared >= 0) words.cells = shared.cells + words.first_shared;
        }
        for (Range &latest : latest_) latest = {};
    }

    // Offset of an array in the shared memory of a block that waits.
    std::uint64_t offset_of_shared(int number) const {
        std::uint64_t at = 0;
        for (int i : variables_) {
            if (i == number) break;
            if (is_shared(arrays_[i])) at += (arrays_[i].bytes + 15) / 16 * 16;
        }
        return at;
    }
    // Number of the array at such an offset, or of the last one before it; -1 if there is none.
    int find_shared(std::uint64_t offset) const {
        int last = -1;
        for (int i : variables_) {
            if (is_shared(arrays_[i]) && offset >= offset_of_shared(i)) last = i;
        }
        return last;
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
            if (words_[i].repeats) words_[i] = new_words(arrays_[i], false);
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
        const Words &words = words_[i];
        Cell &cell = words.cells[offset / 4];
        if (words.first_shared >= 0) shared.collect(words.first_shared + offset / 4);
        if (!words.repeats) return cell;
        Repeats &repeats = words.repeats[offset / 4];
        if (repeats.tag) cell.latest().lanes |= repeats.lanes;
        repeats = {};
        return cell;
    }
    // Accesses to a word of shared memory in this phase were plain loads of the whole word.
    void mark_quiet(int i, std::uint64_t offset) {
        if (words_[i].first_shared < 0) return;
        shared.quiet[words_[i].first_shared + offset / 4] = {shared.phase, 0};
    }

   private:
    Range range(int i) const {
        const EmulatorArray &array = arrays_[i];
        Cell *const cells = array.restricted ? nullptr : words_[i].cells;
        return {array.address, array.bytes, words_[i].repeats, cells, i};
    }
    // Fills `shared`: numbers the words of shared arrays.
    void list_shared(std::size_t n_warps) {
        std::uint64_t begin = ~0ull, end = 0;
        for (int i : variables_) {
            if (arrays_[i].space == DYNAMIC) {
                shared.dynamic = arrays_[i].address;
                shared.dynamic_bytes = arrays_[i].bytes / 4 * 4;
            } else if (arrays_[i].space == SHARED) {
                begin = std::min(begin, arrays_[i].address / 16 * 16);
                end = std::max(end, (arrays_[i].address + arrays_[i].bytes + 15) / 16 * 16);
            }
        }
        if (end > begin && end - begin <= SharedWords::most_bytes) {
            shared.begin = begin;
            shared.static_bytes = end - begin;
        }
        shared.count = (shared.static_bytes + shared.dynamic_bytes) / 4 + 4;
        shared.cells = zeros<Cell>(shared.count, true);
        shared.quiet = zeros<Quiet>(shared.count, true);
        shared.loads = zeros<Loads>(shared.count * n_warps, true);
        shared.first_loads = zeros<FirstLoad>(shared.count * n_warps, true);
        for (int i : variables_) {
            const std::uint64_t offset = shared.offset(arrays_[i].address);
            if (!is_shared(arrays_[i]) || offset == SharedWords::nowhere) continue;
            words_[i].first_shared = std::int64_t(offset / 4);
            words_[i].cells = shared.cells + offset / 4;
            for (std::uint64_t word = 0; word < arrays_[i].bytes / 4; ++word)
                shared.quiet[offset / 4 + word].phase = no_phase;
        }
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
        auto *const repeats = is_shared(array) ? nullptr : zeros<Repeats>(count, few);
        return {zeros<Cell>(count, few), repeats};
    }
    // Exchanges cells with the ones of this number of a block that waits.
    static void swap_cells(Cell *&cells, std::size_t count, SharedMemory &other, std::size_t i) {
        if (i == other.cells.size()) other.cells.push_back(zeros<Cell>(count, true));
        std::swap(cells, other.cells[i]);
    }
    template <typename T>
    static T *zeros(std::size_t count, bool few) {
        const std::size_t bytes = count * sizeof(T);
        void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) std::abort();
#ifdef MADV_HUGEPAGE
        if (bytes >= 1 << 22 && !few) madvise(memory, bytes, MADV_HUGEPAGE);
#endif
        return static_cast<T *>(memory);
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
    // The results of the last two searches.
    Range latest_[2] = {};
    int newest_ = 0;
};

}  // namespace emulator
