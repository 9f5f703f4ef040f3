// What the emulator knows of each word that a kernel may write: who wrote it last, who read it.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime.h"

namespace emulator {

// When an access happened. Barriers of the block and of the warp count up; two accesses are ordered
// if a barrier that both threads passed lies between them.
struct Moment {
    std::uint32_t thread = 0;  // of the whole launch, from 1; 0: nobody
    std::uint32_t block_epoch = 0;
    std::uint32_t warp_epoch = 0;
    std::uint32_t code = 0;
};

struct Word {
    Moment write;
    Moment reads[2];  // of different warps where there were any
    std::uint32_t block = ~0u;
    std::uint8_t written = 0;  // a bit for each byte
    std::uint8_t atomic = 0;   // the last write: 0 plain, 1 atomic, 2 atomics of several threads
    bool block_scope = false;  // an atomic that is one for its own block only
};

class Memory {
   public:
    Memory(const EmulatorLaunch &launch) : launch_(launch), words_(launch.n_arrays) {
        for (int i = 0; i < launch.n_arrays; ++i) {
            const EmulatorArray &array = launch.arrays[i];
            if (array.writable) words_[i].resize(array.bytes / 4 + 1);
        }
    }

    // Index of the array that holds an address, or -1.
    int find(const char *address) {
        if (inside(last_, address)) return last_;
        for (int i = 0; i < launch_.n_arrays; ++i) {
            if (inside(i, address)) return last_ = i;
        }
        return -1;
    }

    // Index of the array that begins or ends nearest to an address, or -1.
    int nearest(const char *address) const {
        int best = -1;
        for (int i = 0; i < launch_.n_arrays; ++i) {
            if (best < 0 || distance(i, address) < distance(best, address)) best = i;
        }
        return best;
    }

    const EmulatorArray &array(int i) const { return launch_.arrays[i]; }
    Word &word(int i, std::uint64_t offset) { return words_[i][offset / 4]; }

   private:
    std::int64_t distance(int i, const char *address) const {
        const char *begin = launch_.arrays[i].data, *end = begin + launch_.arrays[i].bytes;
        return begin > address ? begin - address : address - end;
    }
    bool inside(int i, const char *address) const {
        if (i >= launch_.n_arrays) return false;
        const EmulatorArray &array = launch_.arrays[i];
        return address >= array.data && address < array.data + array.bytes;
    }

    const EmulatorLaunch &launch_;
    std::vector<std::vector<Word>> words_;
    int last_ = 0;
};

}  // namespace emulator
