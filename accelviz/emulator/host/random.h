// Jumps of the generator XORWOW (curand_kernel.h), whose step is linear in the bits of its state.
#pragma once

#include <array>
#include <cstdint>
#include <deque>

// Last, because its macros redefine C functions.
#include "cuda_on_host.h"

namespace emulator {

using XorwowBits = std::array<std::uint32_t, 5>;
using XorwowMatrix = std::array<XorwowBits, 160>;  // by column

inline XorwowBits product(const XorwowMatrix &matrix, const XorwowBits &bits) {
    XorwowBits sum{};
    for (unsigned column = 0; column < 160; ++column) {
        if (!(bits[column / 32] >> column % 32 & 1)) continue;
        for (unsigned word = 0; word < 5; ++word) sum[word] ^= matrix[column][word];
    }
    return sum;
}

static std::deque<XorwowMatrix> powers;  // of the matrix of a step, each the square of the last

// The matrix of 2^power steps.
inline const XorwowMatrix &xorwow_steps(unsigned power) {
    if (powers.empty()) {
        powers.emplace_back();
        for (unsigned column = 0; column < 160; ++column) {
            XorwowBits v{};
            v[column / 32] = 1u << column % 32;
            const std::uint32_t t = v[0] ^ v[0] >> 2;
            powers[0][column] = {v[1], v[2], v[3], v[4], v[4] ^ v[4] << 4 ^ t ^ t << 1};
        }
    }
    while (powers.size() <= power) {
        const XorwowMatrix &last = powers.back();
        XorwowMatrix square;
        for (unsigned column = 0; column < 160; ++column) square[column] = product(last, last[column]);
        powers.push_back(square);
    }
    return powers[power];
}

void skip_xorwow(std::uint32_t *v, std::uint64_t n, unsigned first) {
    XorwowBits bits{v[0], v[1], v[2], v[3], v[4]};
    for (unsigned power = first; n; n >>= 1, ++power) {
        if (n & 1) bits = product(xorwow_steps(power), bits);
    }
    for (unsigned word = 0; word < 5; ++word) v[word] = bits[word];
}

}  // namespace emulator
