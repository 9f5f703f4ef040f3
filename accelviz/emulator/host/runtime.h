// The structures at the beginning of the memory that Python shares with the process of a launch.
// `_structures` in library.py parses these declarations.
#pragma once

#include <cstdint>
#include <cstring>

extern "C" {

enum EmulatorSpace : std::int32_t {
    ARGUMENT,
    SHARED,  // a static __shared__ variable, unwritten when a block begins
    DEVICE_VARIABLE,
    CONSTANT,
    DYNAMIC,  // dynamic shared memory
    HOST,     // a host variable, which no kernel may use
};

// An array or variable that the kernel can access. Argument i is in slot i (see below).
struct EmulatorArray {
    std::uint64_t address;  // for a variable, its offset in the library
    std::uint64_t bytes;
    std::uint64_t content;  // offset of its content in the shared memory, if any
    EmulatorSpace space;
    std::int32_t writable;
    std::int32_t initialised;    // whether it is written before the launch
    std::uint64_t filled_bytes;  // length in `content` of a variable's initial value
    std::int32_t restricted;  // whether it belongs to several parameters, one of them __restrict__
    std::int32_t itemsize;    // bytes of an element; 0 if unknown
};

struct EmulatorLaunch {
    std::uint32_t grid[3];
    std::uint32_t block[3];
    std::uint32_t cluster[3];  // blocks of a cluster
    std::uint32_t dynamic_shared_bytes;
    std::uint32_t n_arrays, n_arguments;
    std::int32_t traced;
    std::int32_t checked;                 // whether accesses are checked
    std::uint32_t first_block, n_blocks;  // blocks to run; none: only describe the kernel
    std::uint64_t seed;                   // 0: threads, warps and blocks in order
    std::uint64_t arrays;                 // offset of `n_arrays` EmulatorArray
    std::uint64_t arguments;              // offset of `n_arguments` offsets of the values
    std::uint64_t kernel[2];              // begin and end of its code, offsets in the library
    double seconds[2];                    // limits of processor time and wall-clock time
    std::int32_t compared;                // whether to compare runs, see compare.h
    std::int32_t same_values;  // whether threads may store the same value in one place
};

// Two threads that waited for each other at two instructions. Python determines their lines.
struct EmulatorNote {
    std::uint64_t code, other_code;
    std::uint32_t block[3];
    std::uint32_t thread[3];
    std::uint32_t other_thread[3];
    std::int32_t warp;    // whether it was a warp's exchange; else a block's barrier
    std::int32_t unlike;  // whether they are different warp-wide functions
};

// An output of which no thread has written `count` elements; the first of these is `first`.
struct EmulatorGap {
    std::int32_t array;
    std::uint64_t count, first;
};

// The result of a launch. problems.py converts it to a message.
struct EmulatorAnswer {
    char problem[32];    // a key of `_PROBLEMS` in problems.py; empty without a problem
    char text[4096];     // the loader's message, the kernel's description, or an assertion
    std::uint64_t code;  // offset in the library of the instruction after the wrong one
    std::uint64_t other_code;
    std::uint32_t block[3];
    std::uint32_t thread[3];
    std::uint32_t other_block[3];
    std::uint32_t other_thread[3];
    std::int32_t array;  // number of the accessed or nearest array, or -1
    std::int32_t bytes;
    std::int32_t kind;                 // of the access: 0 load, 1 store, 2 atomic
    std::int32_t finished;             // whether the process ended by itself
    std::int64_t offset;               // in the array; for array -1, the address
    std::uint32_t waiting, left;       // number of threads that wait, and that left the kernel
    std::uint64_t records, n_records;  // offset of the trace, at the end, and number of records
    std::uint32_t n_notes, in_kernel;
    std::int32_t other_kind;  // of the access that this one races with
    // The first store of a value that another thread has stored there, unordered.
    std::int32_t same_array;
    std::uint32_t n_same;  // number of such stores
    std::uint64_t same_code;
    std::uint32_t same_block, n_done;  // its block; number of blocks that have ended
    std::int32_t undefined;   // whether there was any undefined value, see compare.h
    std::uint32_t n_gaps, n_blocks;  // n_blocks of the launch
    std::uint32_t owner[3];  // the block to whose shared memory the access is, if it is another one
    std::uint32_t has_owner;
    std::uint32_t n_callers;     // calls that have led to `code`
    std::uint64_t callers[8];  // offsets in the library, as `code`; the innermost first
    std::uint32_t missing;  // number of arrivals at a cuda::barrier that are missing
    std::int32_t copied;  // whether asynchronous copies to the unwritten array are under way
    EmulatorGap gaps[8];
    EmulatorNote notes[16];
};

// An access of one lane in one step of a warp. Kind 3 is a wait of a warp at a barrier: `step` is
// the step in which its last lane arrived, `offset` the step in which the block continued.
struct EmulatorRecord {
    std::uint32_t block;
    std::uint16_t warp;
    std::uint8_t lane;
    std::uint8_t kind;
    std::uint32_t step;  // number of the step in the block; the lanes of a request share it
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

// Copies a text, truncated to the size of the target.
template <std::size_t N>
void copy_text(char (&to)[N], const char *text) {
    std::strncpy(to, text, N - 1);
}

// Each argument has a slot of 2^38 bytes, so that no wrong 32-bit index reaches another argument.
// 49 slots end below 0x1450 << 32, where Linux maps libraries if the stack size is unlimited.
constexpr std::uint64_t slots_begin = 1ull << 43, slot_bits = 38;

inline bool is_shared(const EmulatorArray &array) {
    return array.space == SHARED || array.space == DYNAMIC;
}

}  // namespace emulator
