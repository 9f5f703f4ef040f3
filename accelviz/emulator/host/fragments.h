// Tensor cores: sums of products as they make them, and the fragments of PTX's `mma` and `ldmatrix`,
// which kernels/fragments.cuh describes.
//
// Included by cuda_on_host.h.
#pragma once

namespace emulator {
namespace fragments {

// Infinities are unchanged; the lower 13 bits of a NaN become zero.
EMULATOR_PURE unsigned rounded_to_tf32(float x) {
    const unsigned bits = __float_as_uint(x);
    const bool finite = (bits & 0x7f800000u) != 0x7f800000u;
    return (bits + (finite ? 0x1000u : 0u)) & 0xffffe000u;
}

// The exponent of a number other than zero.
EMULATOR_PURE int exponent(double x) {
    return int(bits<std::uint64_t>(x) >> 52 & 0x7ff) - 1023;
}
EMULATOR_PURE double power_of_two(int exponent) {
    return bits<double>(std::uint64_t(exponent + 1023) << 52);
}

// c + a . b, bit for bit as on an H200 (docs/tensor-cores.md). Products are exact. All terms,
// including c, are truncated two bits below the last bit of a float32 with the largest exponent of
// any term; the exponent of a product is the sum of its factors'. The sum is truncated to float32.
template <int N>
EMULATOR_PURE float total(float c, const double (&a)[N], const double (&b)[N]) {
    constexpr int high = 23 + 2, none = -10000;
    int top = c != 0 ? exponent(c) : none;
    double plain = c;
    for (int k = 0; k < N; ++k) {
        plain += a[k] * b[k];
        if (a[k] != 0 && b[k] != 0) top = max(top, exponent(a[k]) + exponent(b[k]));
    }
    if (top == none || !__builtin_isfinite(plain)) return float(plain);
    const double scale = power_of_two(high - top);
    long long sum = (long long)(c * scale);
    for (int k = 0; k < N; ++k) sum += (long long)(a[k] * b[k] * scale);
    const double exact = double(sum) * power_of_two(top - high);
    const float near = float(exact);
    return __builtin_fabs(near) > __builtin_fabs(exact) ? __builtin_nextafterf(near, 0) : near;
}
template <int N>
EMULATOR_PURE int total(int c, const double (&a)[N], const double (&b)[N]) {
    unsigned sum = unsigned(c);
    for (int k = 0; k < N; ++k) sum += unsigned(int(a[k] * b[k]));
    return int(sum);
}
template <int N>
EMULATOR_PURE double total(double c, const double (&a)[N], const double (&b)[N]) {
    for (int k = 0; k < N; ++k) c = __builtin_fma(a[k], b[k], c);
    return c;
}

// The value of a float16, and the bits of the float16 that is nearest to a number, ties to even.
EMULATOR_PURE float float16_value(unsigned bits) {
    // The biases of the exponents differ by 112. Infinity and NaN have all exponent bits set.
    const unsigned magnitude = (bits & 0x7fffu) << 13;
    const float wide = (bits & 0x7c00u) == 0x7c00u ? __uint_as_float(magnitude | 0x7f800000u)
                                                   : __uint_as_float(magnitude) * 0x1p112f;
    return bits & 0x8000u ? -wide : wide;
}
EMULATOR_PURE unsigned float16_bits(float x) {
    const unsigned size = __float_as_uint(x) & 0x7fffffffu, sign = __float_as_uint(x) >> 16 & 0x8000u;
    if (size > 0x7f800000u) return 0x7fffu;
    if (size >= 0x47800000u) return sign | 0x7c00u;  // 2^16
    if (size < 0x38800000u)                          // 2^-14
        return sign | unsigned(__builtin_nearbyintf(__uint_as_float(size) * 0x1p24f));
    return sign | (size + 0xfffu + (size >> 13 & 1u) - (112u << 23)) >> 13;
}

enum Number { DOUBLE, TF32, HALF, BFLOAT, INT8, UINT8, INT4, UINT4, BIT_AND, BIT_XOR };
constexpr int parts[] = {1, 1, 2, 2, 4, 4, 8, 8, 32, 32};  // elements in a register

template <Number T>
EMULATOR_PURE double value(unsigned bits, int part) {
    switch (T) {
        case TF32: return __uint_as_float(bits & 0xffffe000u);
        case HALF: return float16_value(bits >> 16 * part);
        case BFLOAT: return __uint_as_float(bits >> 16 * part << 16);
        case INT8: return std::int8_t(bits >> 8 * part);
        case UINT8: return std::uint8_t(bits >> 8 * part);
        case INT4: return int(bits << (28 - 4 * part)) >> 28;
        case UINT4: return bits >> 4 * part & 15;
        default: return bits >> part & 1;
    }
}
template <Number T>
EMULATOR_PURE double value(double number, int) {
    return number;
}

// c plus the dot product of a row of A and a column of B, given by their registers.
template <Number A, Number B, typename C, typename Word, int N>
EMULATOR_PURE C summed(C c, const Word (&row)[N], const Word (&column)[N]) {
    if constexpr (A >= BIT_AND) {
        for (int r = 0; r < N; ++r)
            c += __popc(A == BIT_AND ? row[r] & column[r] : row[r] ^ column[r]);
        return c;
    } else {
        double a[N * parts[A]], b[N * parts[B]];
        for (int k = 0; k < N * parts[A]; ++k) {
            a[k] = value<A>(row[k / parts[A]], k % parts[A]);
            b[k] = value<B>(column[k / parts[B]], k % parts[B]);
        }
        return total(c, a, b);
    }
}

// The object of lane 0, which all lanes of the warp use; those of another call have another type.
template <typename T>
EMULATOR_PURE T &of_first_lane(T &object, void *code) {
    const auto call = reinterpret_cast<std::uint64_t>(code);
    if (exchange(~0u, call, 0, false, nullptr, code) != call)
        stop("fragment: is that of another call than lane 0's", code);
    const auto address = reinterpret_cast<std::uint64_t>(&object);
    return *reinterpret_cast<T *>(exchange(~0u, address, 0, false, nullptr, code));
}

// The registers of a lane that hold its elements of the matrices A and B.
template <typename Word, int A, int B>
struct Registers {
    Word a[A], b[B];
};

// C += A B for the matrices of which each lane gives its registers.
template <Number TA, Number TB, typename C, typename Word, int N, int A, int B>
EMULATOR_PURE void multiply(C (&c)[N], const Word (&a)[A], const Word (&b)[B], void *code) {
    constexpr int halves = A / B;  // number of groups of 8 rows of A
    static_assert(A == halves * B && N == 2 * halves, "registers of one shape");
    Registers<Word, A, B> local[32], (&registers)[32] = of_first_lane(local, code);
    const int lane = int(emulator::lane());
    for (int r = 0; r < A; ++r) registers[lane].a[r] = a[r];
    for (int r = 0; r < B; ++r) registers[lane].b[r] = b[r];
    exchange(~0u, 0, -1, false, nullptr, code);
    for (int i = 0; i < N; ++i) {  // the element of C at row lane / 4 + 8 (i / 2)
        const int at_column = 2 * (lane % 4) + i % 2;
        Word row[4 * B], column[4 * B];
        // Registers of A and of B with the same number hold the same range of k.
        for (int r = 0; r < B; ++r) {
            for (int quarter = 0; quarter < 4; ++quarter) {
                row[4 * r + quarter] = registers[lane / 4 * 4 + quarter].a[halves * r + i / 2];
                column[4 * r + quarter] = registers[at_column * 4 + quarter].b[r];
            }
        }
        c[i] = summed<TA, TB>(c[i], row, column);
    }
    exchange(~0u, 0, -1, false, nullptr, code);
}

// Loads N matrices of 8 rows of 16 bytes. `row` of lane i is the address of row i % 8 of matrix
// i / 8. A lane receives word lane % 4 of row lane / 4 of each matrix, or of its transpose.
template <bool TRANSPOSED, int N>
EMULATOR_PURE void load_matrices(unsigned (&words)[N], const void *row, void *code) {
    struct Rows {
        unsigned short x[32][8];
    } local, &rows = of_first_lane(local, code);
    const unsigned lane = emulator::lane();
    if (lane < 8 * N) {
        access(row, 16, LOAD, DEVICE, code);
        __builtin_memcpy(rows.x[lane], row, 16);
    }
    exchange(~0u, 0, -1, false, nullptr, code);
    for (unsigned i = 0; i < N; ++i) {
        const unsigned short *x = &rows.x[8 * i + lane / 4][lane % 4 * 2];
        const unsigned first = 8 * i + lane % 4 * 2;
        words[i] = TRANSPOSED ? rows.x[first][lane / 4] | rows.x[first + 1][lane / 4] << 16
                              : x[0] | unsigned(x[1]) << 16;
    }
    exchange(~0u, 0, -1, false, nullptr, code);
}

// Stores N matrices, of which each lane has the words that `load_matrices` gives it.
template <bool TRANSPOSED, int N>
EMULATOR_PURE void store_matrices(const unsigned (&words)[N], void *row, void *code) {
    struct Rows {
        unsigned short x[32][8];
    } local, &rows = of_first_lane(local, code);
    const unsigned lane = emulator::lane();
    for (unsigned i = 0; i < 2 * N; ++i) {
        const unsigned at = lane / 4, other = lane % 4 * 2 + i % 2;
        const unsigned first = i / 2 * 8;
        (TRANSPOSED ? rows.x[first + other][at] : rows.x[first + at][other]) =
            words[i / 2] >> i % 2 * 16;
    }
    exchange(~0u, 0, -1, false, nullptr, code);
    if (lane < 8 * N) {
        access(row, 16, STORE, DEVICE, code);
        __builtin_memcpy(row, rows.x[lane], 16);
    }
    exchange(~0u, 0, -1, false, nullptr, code);
}

}  // namespace fragments

namespace ptx {

template <fragments::Number A, fragments::Number B, typename C, typename Word, int N, int NA, int NB>
EMULATOR_INSTRUCTION void mma(C (&c)[N], const Word (&a)[NA], const Word (&b)[NB]) {
    fragments::multiply<A, B>(c, a, b, EMULATOR_HERE);
}
// The same with pairs of float16 in `c`.
template <fragments::Number A, fragments::Number B, int N, int NA, int NB>
EMULATOR_INSTRUCTION void mma(unsigned (&c)[N], const unsigned (&a)[NA], const unsigned (&b)[NB]) {
    float sums[2 * N];
    for (int i = 0; i < 2 * N; ++i) sums[i] = fragments::float16_value(c[i / 2] >> i % 2 * 16);
    fragments::multiply<A, B>(sums, a, b, EMULATOR_HERE);
    for (int i = 0; i < N; ++i)
        c[i] = fragments::float16_bits(sums[2 * i]) | fragments::float16_bits(sums[2 * i + 1]) << 16;
}
template <bool TRANSPOSED, int N>
EMULATOR_INSTRUCTION void ldmatrix(unsigned (&words)[N], const char *row) {
    fragments::load_matrices<TRANSPOSED>(words, row, EMULATOR_HERE);
}
template <bool TRANSPOSED, int N>
EMULATOR_INSTRUCTION void stmatrix(const unsigned (&words)[N], char *row) {
    fragments::store_matrices<TRANSPOSED>(words, row, EMULATOR_HERE);
}

}  // namespace ptx
}  // namespace emulator
