// The beginning of the memory that Python and the process of a launch share; `_structures` in
// library.py reads these declarations.
#pragma once

#include <cstdint>
#include <cstring>

extern "C" {

enum EmulatorSpace : std::int32_t {
    ARGUMENT,
    SHARED,  // a block's, unwritten when the block begins
    DEVICE_VARIABLE,
    CONSTANT,
    DYNAMIC,  // shared memory whose size is the launch's
    HOST,     // a variable that no kernel may use
};

// Memory that the kernel may touch. Argument i lies in slot i.
struct EmulatorArray {
    std::uint64_t address;  // of a variable: its offset in the library
    std::uint64_t bytes;
    std::uint64_t content;  // offset of its content in the common memory, if any
    EmulatorSpace space;
    std::int32_t writable;
    std::int32_t initialised;  // whether it is written before the launch
    std::uint64_t filled_bytes;  // of `content`, the initial value of a variable
};

struct EmulatorLaunch {
    std::uint32_t grid[3];
    std::uint32_t block[3];
    std::uint32_t dynamic_shared_bytes;
    std::uint32_t n_arrays, n_arguments;
    std::int32_t traced;
    std::int32_t checked;  // whether accesses are judged
    std::uint32_t first_block, n_blocks;  // linear numbers of the blocks to run
    std::uint64_t seed;                   // 0: threads, warps and blocks in order
    std::uint64_t arrays;                 // offset of `n_arrays` EmulatorArray
    std::uint64_t arguments;              // offset of `n_arguments` offsets of the values
    std::uint64_t kernel[2];              // where its code begins and ends in the library
    double seconds[2];                    // of processor time and of the wall clock, at most
    std::int64_t writer_of[2];            // an array, or -1, and a byte whose writer is asked for
};

// Two threads that met at two instructions. Python knows whether these are on one line.
struct EmulatorNote {
    std::uint64_t code, other_code;
    std::uint32_t block[3];
    std::uint32_t thread[3];
    std::uint32_t other_thread[3];
    std::int32_t warp;  // whether they met in a warp's exchange, not at a block's barrier
    std::int32_t unlike;  // whether the exchanges differ, on one line or not
};

// The outcome of a launch, from which Python makes a message.
struct EmulatorAnswer {
    char problem[32];  // empty: nothing
    char text[4096];   // the loader's message, the description, or an assertion
    std::uint64_t code;  // offset of the instruction after the one in question
    std::uint64_t other_code;
    std::uint32_t block[3];
    std::uint32_t thread[3];
    std::uint32_t other_block[3];
    std::uint32_t other_thread[3];
    std::int32_t array;  // that has the access or is nearest to it, or -1
    std::int32_t bytes;
    std::int32_t kind;    // of the access: 0 load, 1 store, 2 atomic
    std::int32_t finished;  // whether the process ended by itself
    std::int64_t offset;  // bytes from the array's beginning; without one, the address
    std::uint32_t waiting, left;  // threads that wait, and threads that have left the kernel
    std::uint64_t records, n_records;  // offset and length of the trace behind all else
    std::uint32_t n_notes, in_kernel;
    std::int32_t other_kind;  // of the access that this one races with
    EmulatorNote notes[16];
};

// One lane's access in one step of a warp. Kind 3 is a warp's wait at a barrier from `step`, when
// its last lane came, to step `offset`, when the block went on, without lane, array and bytes.
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

struct EmulatorRequest {
    EmulatorLaunch launch;
    EmulatorAnswer answer;
};
}

namespace emulator {

// Copies as much of a text as there is room for.
template <std::size_t N>
void put(char (&to)[N], const char *text) {
    std::strncpy(to, text, N - 1);
}

// Arguments lie so far apart that no wrong 32-bit index leads from one into another. 49 of them end
// below 0x1450 << 32, where Linux begins to put libraries if the stack's size is not limited.
constexpr std::uint64_t slots_begin = 1ull << 43, slot_bits = 38;

}  // namespace emulator
