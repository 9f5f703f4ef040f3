// What the Python side and the runtime agree on. Plain C, read through ctypes.
#pragma once

#include <cstdint>

extern "C" {

// An array that the kernel may touch.
struct EmulatorArray {
    char *data;
    std::uint64_t bytes;
    std::int32_t shared;       // one a block, with no content when a block begins
    std::int32_t writable;     // shared ones are
    std::int32_t initialised;  // whether all of it was written before the launch
};

struct EmulatorLaunch {
    std::uint32_t grid[3];
    std::uint32_t block[3];
    std::uint32_t dynamic_shared_bytes;
    std::int32_t n_arrays;
    EmulatorArray *arrays;
    void **arguments;
    void *dynamic_shared;
    std::uint64_t seed;         // 0: threads, warps and blocks in order
    std::uint32_t first_block;  // linear numbers of the blocks to run: first, and how many
    std::uint32_t n_blocks;
    std::int32_t traced;
    std::int32_t checked;  // whether accesses that report themselves are looked at
};

// What went wrong; Python makes a sentence of it.
struct EmulatorError {
    const char *problem;  // null: nothing
    std::uint64_t code;   // offset of the instruction in the library
    std::uint64_t other_code;
    std::uint32_t block[3];
    std::uint32_t thread[3];
    std::uint32_t other_block[3];
    std::uint32_t other_thread[3];
    std::int32_t array;  // the array it is in or nearest to, -1 if there is none
    std::int32_t bytes;
    std::int32_t kind;    // of the access: 0 load, 1 store, 2 atomic
    std::int64_t offset;  // in bytes from the array's beginning
    std::uint32_t waiting, left;  // threads that wait, and that have left the kernel
};

// One lane's part in one step of a warp.
struct EmulatorRecord {
    std::uint32_t block;
    std::uint16_t warp;
    std::uint8_t lane;
    std::uint8_t kind;
    std::uint32_t step;  // steps of the block, counted through; lanes of one request share it
    std::int16_t array;
    std::uint16_t bytes;
    std::uint64_t code;
    std::uint64_t offset;
};

#define EMULATOR_API __attribute__((visibility("default")))
EMULATOR_API void emulator_run(const EmulatorLaunch *launch, EmulatorError *error);
EMULATOR_API std::uint64_t emulator_trace(const EmulatorRecord **records);
// Where the kernel's static shared memory lies; both null where it has none.
EMULATOR_API void emulator_static_shared(char **begin, char **end);
}
