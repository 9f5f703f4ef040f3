// Bits in 32-bit words, as accelviz/bits/tensor.py lays them out: plane after plane, in a plane
// line after line, in a line word after word. A line is a row of the left operand of a product or a
// column of the right one, so that both are read along the axis that is summed over.
#pragma once

#include "common.cuh"

constexpr int SIDE = 32;  // rows and columns of a tile that becomes words

struct Planes {
    int bits, lines, words;

    // Where a word is.
    DEVICE_INLINE long long at(int plane, int line, int word) const {
        return ((long long)plane * lines + line) * words + word;
    }
};

DEVICE_INLINE unsigned word_of(const uint4 &words, int i) {
    return i == 0 ? words.x : i == 1 ? words.y : i == 2 ? words.z : words.w;
}

// The bits of whole numbers, 32 x 32 of them, as words: along the columns, or along the rows. All
// threads of the block call together, after all have written their numbers.
template <class Number>
DEVICE_INLINE void write_planes(const Number (&numbers)[SIDE][SIDE + 1], unsigned *__restrict__ out,
                                const Planes &planes, int first_row, int first_column,
                                bool along_columns) {
    const int lane = int(threadIdx.x) % WARP_SIZE, warps = int(blockDim.x) / WARP_SIZE;
    const int first_line = along_columns ? first_row : first_column;
    const int word = (along_columns ? first_column : first_row) / SIDE;
    for (int i = int(threadIdx.x) / WARP_SIZE; i < SIDE; i += warps) {
        const auto number = along_columns ? numbers[i][lane] : numbers[lane][i];
        unsigned lane_word = 0;  // lane p keeps the word of plane p
        for (int plane = 0; plane < planes.bits; ++plane) {
            const unsigned votes = __ballot_sync(ALL_LANES, number >> plane & 1u);
            if (plane == lane) lane_word = votes;
        }
        if (lane < planes.bits && first_line + i < planes.lines && word < planes.words) {
            out[planes.at(lane, first_line + i, word)] = lane_word;
        }
    }
}

// Equation 2.2 of the thesis: the level of a value, in float32 operation by operation, so that the
// host comes to the same. Adds to `clipped` where the value is outside low ... low + 2^bits * step.
DEVICE_INLINE unsigned level_of(float value, float low, float step, int bits, int &clipped) {
    const float most = float((1u << bits) - 1), above = __fsub_rn(value, low);
    const float steps = step > 0 ? __fdiv_rn(above, step) : 0.0f;
    clipped += steps < 0 || steps > most + 1 || (!(step > 0) && above != 0);
    return unsigned(fminf(fmaxf(floorf(steps), 0.0f), most));
}
