// Bit matrices in 32-bit words, in the layout of accelviz/bits/tensor.py: planes, each of lines,
// each of words. A plane holds one bit of every element. A line is a row of a product's left
// operand or a column of its right operand, so that words run along the axis that is summed over.
#pragma once

#include "common.cuh"

constexpr int SIDE = 32;  // rows and columns of the tile that one call of write_planes packs

struct Planes {
    int bits, lines, words;

    // Returns the index of a word.
    DEVICE_INLINE long long at(int plane, int line, int word) const {
        return ((long long)plane * lines + line) * words + word;
    }
};

DEVICE_INLINE unsigned word_of(const uint4 &words, int i) {
    return i == 0 ? words.x : i == 1 ? words.y : i == 2 ? words.z : words.w;
}

DEVICE_INLINE int ones_of(const uint4 &words) {
    return __popc(words.x) + __popc(words.y) + __popc(words.z) + __popc(words.w);
}

// Writes a word of each plane of a line: the bits of the lanes' numbers. Zeros follow the last
// word.
DEVICE_INLINE void write_line(unsigned number, unsigned *__restrict__ out, const Planes &planes,
                              int line, int word, bool is_last) {
    const int lane = int(threadIdx.x) % WARP_SIZE;
    unsigned lane_word = 0;  // lane p holds the word of plane p
    for (int plane = 0; plane < planes.bits; ++plane) {
        const unsigned votes = __ballot_sync(ALL_LANES, number >> plane & 1u);
        if (plane == lane) lane_word = votes;
    }
    if (lane >= planes.bits || line >= planes.lines || word >= planes.words) return;
    unsigned *const to = &out[planes.at(lane, line, word)];
    *to = lane_word;
    for (int i = 1; is_last && word + i < planes.words; ++i) to[i] = 0;
}

// Packs the bits of 32 x 32 integers into words along the columns or along the rows. All threads of
// the block must call together, after a barrier that follows the writes of `numbers`.
template <class Number>
DEVICE_INLINE void write_planes(const Number (&numbers)[SIDE][SIDE + 1], unsigned *__restrict__ out,
                                const Planes &planes, int first_row, int first_column,
                                bool along_columns, bool is_last = false) {
    const int lane = int(threadIdx.x) % WARP_SIZE, warps = int(blockDim.x) / WARP_SIZE;
    const int first_line = along_columns ? first_row : first_column;
    const int word = (along_columns ? first_column : first_row) / SIDE;
    for (int i = int(threadIdx.x) / WARP_SIZE; i < SIDE; i += warps) {
        const auto number = along_columns ? numbers[i][lane] : numbers[lane][i];
        write_line(unsigned(number), out, planes, first_line + i, word, is_last);
    }
}

// Equation 2.2 of the thesis: the level of a value. Each float32 operation is rounded separately,
// as on the host, so that both return the same. Adds 1 to `clipped` if the value is outside low ...
// low + 2^bits * step.
DEVICE_INLINE unsigned level_of(float value, float low, float step, int bits, int &clipped) {
    const float max_level = float((1u << bits) - 1), above = __fsub_rn(value, low);
    const float steps = step > 0 ? __fdiv_rn(above, step) : 0.0f;
    clipped += steps < 0 || steps > max_level + 1 || (!(step > 0) && above != 0);
    return unsigned(fminf(fmaxf(floorf(steps), 0.0f), max_level));
}
