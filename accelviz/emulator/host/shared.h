// The words of shared memory, for the short paths of the checks in plain.h.
//
// Between two barriers, most words are only loaded. Such loads are not entries of the word's cell
// but a mask of lanes in a table of their warp. The first other access moves them to the cell.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "cells.h"
// Last, because its macros redefine C functions.
#include "cuda_on_host.h"

namespace emulator {

// Plain loads of a whole word of shared memory by lanes of one warp at one clock, which are not in
// the word's cell. Each warp has a table of its own: the one in use fits the fastest cache.
struct Loads {
    std::uint32_t tag = 0;    // of the loading threads, see `Thread`
    std::uint32_t lanes = 0;  // mask
};

// The code and the clock of the first of them, as in `Entry`.
struct FirstLoad {
    std::uint32_t code, clock;
};

// Whether the accesses to a word are loads; `phase` is 0 outside of arrays.
struct Quiet {
    std::uint32_t phase = 0;  // the latest one in which all accesses were plain loads
    std::uint32_t warps = 0;  // mask of warps with `Loads` in that phase
};

// A phase is the time between two barriers of a block, numbered over the launch. No phase has this
// number, which marks a whole word of an array.
constexpr std::uint32_t no_phase = 1;

// The words of shared memory, for short paths of the checks: those of static arrays, with whatever
// the library has in between, and behind them those of dynamic shared memory.
struct SharedWords {
    // If the static arrays are further apart, their accesses take no short path.
    static constexpr std::uint64_t most_bytes = 4 << 20;
    static constexpr std::uint64_t nowhere = ~0ull;

    std::uint64_t begin = 0, static_bytes = 0, dynamic = 0, dynamic_bytes = 0;
    std::size_t count = 0;  // with 4 of no array at the end, for wide accesses
    Cell *cells = nullptr;
    Quiet *quiet = nullptr;
    Loads *loads = nullptr;  // `count` of each warp
    FirstLoad *first_loads = nullptr;
    std::uint32_t phase = no_phase, block = 0, epoch = 0;

    // Four times the number of the word at an address, or `nowhere`.
    std::uint64_t offset(std::uint64_t address) const {
        const std::uint64_t offset = address - begin, in_dynamic = address - dynamic;
        if (offset < static_bytes) return offset;
        return in_dynamic < dynamic_bytes ? static_bytes + in_dynamic : nowhere;
    }
    void begin_phase(std::uint32_t new_block, std::uint32_t new_epoch) {
        ++phase;
        block = new_block;
        epoch = new_epoch;
    }
    // Moves the loads of a word by a warp to its cell.
    void move(std::size_t word, std::uint32_t warp) {
        Cell &cell = cells[word];
        Loads &loaded = loads[warp * count + word];
        const FirstLoad &first = first_loads[warp * count + word];
        const Entry load{block,      epoch,              first.clock, loaded.lanes,
                         first.code, std::uint8_t(warp), LOAD,        15,
                         DEVICE};
        loaded.tag = 0;
        for (Entry &entry : cell) {
            const bool same = entry.warp == load.warp && entry.clock == load.clock &&
                              entry.epoch == epoch && entry.block == block &&
                              entry.kind == LOAD && entry.bytes == load.bytes;
            if (same) {
                entry.lanes |= load.lanes;
                return;
            }
        }
        cell.add(load);
    }
    // Moves all loads of a word to its cell, where later accesses can race with them.
    void collect(std::size_t word) {
        Quiet &state = quiet[word];
        if (state.phase != phase) return;
        for (unsigned left = state.warps; left; left &= left - 1)
            move(word, std::countr_zero(left));
        state = {no_phase, 0};
    }
    // Prepares a warp's first load of a word with its tag. Returns false if the load needs a check.
    bool prepare_load(std::size_t word, std::uint32_t warp) {
        Quiet &state = quiet[word];
        const bool is_new = state.phase == phase && !(state.warps >> warp & 1);
        if (!is_new && !look_at_cell(word, warp)) return false;
        state.warps |= 1u << warp;
        return true;
    }
    [[gnu::noinline]] bool look_at_cell(std::size_t word, std::uint32_t warp) {
        if (quiet[word].phase == phase) {
            move(word, warp);  // loads at an earlier clock
            return true;
        }
        Cell &cell = cells[word];
        if (!quiet[word].phase || cell.block != block + 1 || cell.epoch == epoch ||
            cell.written != 15 || cell.arriving)
            return false;
        cell.begin_phase(block, epoch);
        quiet[word] = {phase, 0};
        return true;
    }
    // Whether it is a whole word of an array without accesses in this phase.
    bool is_untouched(std::size_t word) const {
        const Cell &cell = cells[word];
        return quiet[word].phase && (cell.block != block + 1 || cell.epoch != epoch);
    }
};

static SharedWords shared;

}  // namespace emulator
