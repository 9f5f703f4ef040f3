// Codes of numbers: a byte each, equal for equal numbers. Of two other numbers about one pair in
// 256 has equal codes. The codes of a vector of columns are one word.
#pragma once

#include "attention/columns.cuh"

template <int columns>
struct CodeOf {
    using type = unsigned;
};
template <>
struct CodeOf<1> {
    using type = unsigned char;
};
template <>
struct CodeOf<2> {
    using type = unsigned short;
};
using Code = CodeOf<Config::vector>::type;

// Returns the codes of the lane's vector i.
DEVICE_INLINE Code code_of(const Columns &columns, int i) {
    unsigned codes = 0;
#pragma unroll
    for (int j = 0; j < Config::vector; ++j) {
        const float x = columns.x[i * Config::vector + j] + 0.0f;  // -0 becomes 0
        const unsigned hash = unsigned(__float_as_int(x)) * 0x9e3779b1u;
        codes |= hash >> 24 << 8 * j;
    }
    return Code(codes);
}

// Loads the codes of the lane's columns of a row; zeros beyond n_cols.
DEVICE_INLINE void load_codes(Code (&codes)[Config::lane_vectors],
                              const unsigned char *__restrict__ matrix, const Position &position,
                              int row) {
#pragma unroll
    for (int i = 0; i < Config::lane_vectors; ++i) {
        const Code *vector = reinterpret_cast<const Code *>(matrix + position.element(row, i));
        codes[i] = position.has(i) ? __ldg(vector) : Code(0);
    }
}

// Returns whether a column has the same code in both.
DEVICE_INLINE bool has_equal_code(Code a, Code b) {
    constexpr unsigned ONES = 0x01010101u >> 8 * (4 - Config::vector);
    const unsigned differences = unsigned(a) ^ unsigned(b);
    return ((differences - ONES) & ~differences & ONES << 7) != 0;
}

// The lane's vector v of the sources of row i (extrema.cuh), whose bits it holds.
DEVICE_INLINE Vector load_sources(const int *__restrict__ source, const Position &position, int i,
                                  int v) {
    return __ldg(position.vector(reinterpret_cast<const float *>(source), i, v));
}
