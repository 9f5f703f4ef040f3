// nvcuda::wmma: products of tiles of matrices by the lanes of a warp.
//
// Element `e` of lane `l` is element 32 e + l of the tile in row-major order, an order of the
// emulator's own: CUDA leaves it open. A fragment of halves has 16 elements, some of them repeated.
// A fragment of 4 or 1 bits has one word: word l % 4 of row l / 4 of A, or of column l / 4 of B.
#pragma once

#include "cuda_bf16.h"
#include "cuda_fp16.h"

namespace nvcuda {
namespace wmma {

struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
namespace precision {
struct tf32;
}
enum layout_t { mem_row_major, mem_col_major };
namespace experimental {
namespace precision {
struct u4;
struct s4;
struct b1;
}  // namespace precision
enum bmmaBitOp { bmmaBitOpXOR = 1, bmmaBitOpAND = 2 };
enum bmmaAccumulateOp { bmmaAccumulateOpPOPC = 1 };
}  // namespace experimental

namespace details {

using emulator::is_one_of;
using experimental::precision::b1, experimental::precision::s4, experimental::precision::u4;

template <typename T>
constexpr bool is_packed = is_one_of<T, u4, s4, b1>;

template <int M, int N, int K, typename T, bool OPERAND>
constexpr bool is_tile() {
    if constexpr (M == 8 && N == 8 && (K == 32 || K == 128))
        return OPERAND ? is_packed<T> && (K == 128) == std::is_same_v<T, b1>
                       : std::is_same_v<T, int>;
    if constexpr (M == 16 && N == 16 && K == 8)
        return std::is_same_v<T, std::conditional_t<OPERAND, precision::tf32, float>>;
    if constexpr (M == 8 && N == 8 && K == 4) return std::is_same_v<T, double>;
    constexpr bool is_shape = K == 16 && M * N == 256 && (M == 8 || M == 16 || M == 32);
    if constexpr (OPERAND)
        return is_shape && is_one_of<T, half, __nv_bfloat16, signed char, unsigned char>;
    else
        return is_shape && is_one_of<T, half, float, int>;
}

EMULATOR_PURE double number_of(const half &x) { return x.number(); }
EMULATOR_PURE double number_of(const __nv_bfloat16 &x) { return x.number(); }
template <typename T>
EMULATOR_PURE double number_of(const T &x) {
    return double(x);
}

// Ends the launch unless all lanes have the address of lane 0, which CUDA wants aligned.
template <int ALIGNMENT = 32>
EMULATOR_PURE void check_matrix(const void *matrix, std::size_t row_bytes, void *code) {
    const auto address = reinterpret_cast<std::uint64_t>(matrix);
    if (emulator::exchange(~0u, address, 0, false, nullptr, code) != address)
        emulator::stop("fragment: has another address than lane 0 of its warp", code);
    if (address % ALIGNMENT)
        emulator::stop(ALIGNMENT == 32 ? "fragment: has an address that is no multiple of 32 bytes"
                                       : "fragment: has an address that is no multiple of 16 bytes",
                       code);
    if (row_bytes % 16)
        emulator::stop("fragment: has a leading dimension that is no multiple of 16 bytes", code);
}

// Calls `use` with the address of each element of a fragment in memory.
template <typename Fragment, typename T, typename Use>
EMULATOR_PURE void visit(const Fragment &fragment, T *matrix, unsigned stride, bool by_columns,
                         emulator::Kind kind, void *code, Use use) {
    check_matrix(matrix, sizeof(T) == 1 ? 16 : stride * sizeof(T), code);
    for (int i = 0; i < Fragment::num_elements; ++i) {
        const unsigned row = fragment.index(i) / Fragment::columns,
                       column = fragment.index(i) % Fragment::columns;
        T *element = matrix + (by_columns ? row + std::size_t(stride) * column
                                          : column + std::size_t(stride) * row);
        emulator::access(element, sizeof(T), kind, emulator::DEVICE, code);
        use(i, element);
    }
}

// c plus the sum of products, clamped to the range of int.
template <int K>
EMULATOR_PURE int saturated(int c, const double (&a)[K], const double (&b)[K]) {
    double sum = c;
    for (int k = 0; k < K; ++k) sum += a[k] * b[k];
    return int(sum < INT_MIN ? INT_MIN : sum > INT_MAX ? INT_MAX : sum);
}

}  // namespace details

template <typename Use, int M, int N, int K, typename T, typename Layout = void>
class fragment {
    static constexpr bool is_accumulator = std::is_same_v<Use, accumulator>;
    static_assert(details::is_tile<M, N, K, T, !is_accumulator>(),
                  "wmma fragments have the shapes 16x16x16, 32x8x16 and 8x32x16 with half, "
                  "__nv_bfloat16, signed char or unsigned char and accumulators of half, float or "
                  "int; 16x16x8 with precision::tf32 and float; 8x8x4 with double; 8x8x32 with "
                  "experimental::precision::u4 or s4 and 8x8x128 with b1, and int");
    static_assert(!details::is_packed<T> ||
                      std::is_same_v<Layout, std::conditional_t<std::is_same_v<Use, matrix_a>,
                                                                row_major, col_major>>,
                  "of 4 or 1 bits, A is row_major and B is col_major");
    static_assert(is_accumulator == std::is_void_v<Layout>,
                  "fragments of matrix_a and matrix_b have a layout, row_major or col_major, "
                  "accumulators have none");

   public:
    static constexpr int rows = std::is_same_v<Use, matrix_b> ? K : M,
                         columns = std::is_same_v<Use, matrix_a> ? K : N;
    static constexpr int num_elements = details::is_packed<T>                      ? 1
                                        : std::is_same_v<T, half> && !is_accumulator ? 16
                                                                                     : rows * columns / 32;
    static constexpr bool by_columns = std::is_same_v<Layout, col_major>;
    using element_type = T;
    using storage_element_type =
        std::conditional_t<std::is_same_v<T, precision::tf32>, float,
                           std::conditional_t<details::is_packed<T>, unsigned, T>>;

    storage_element_type x[num_elements];

    // The number in the tile, in row-major order, of an element of this lane.
    EMULATOR_PURE static unsigned index(int element) {
        return (emulator::lane() + 32 * element) % (rows * columns);
    }
};

EMULATOR_PURE float __float_to_tf32(float x) {
    return __uint_as_float(emulator::fragments::rounded_to_tf32(x));
}

template <typename Use, int M, int N, int K, typename T, typename Layout, typename V>
EMULATOR_INSTRUCTION void fill_fragment(fragment<Use, M, N, K, T, Layout> &f, V value) {
    const typename fragment<Use, M, N, K, T, Layout>::storage_element_type stored = value;
    for (auto &element : f.x) __builtin_memcpy(static_cast<void *>(&element), &stored, sizeof(stored));
}
template <typename Use, int M, int N, int K, typename T, typename Layout, typename S>
EMULATOR_INSTRUCTION void load_matrix_sync(fragment<Use, M, N, K, T, Layout> &f, const S *matrix,
                                           unsigned stride) {
    static_assert(!std::is_void_v<Layout>, "the load of an accumulator has a fourth argument, "
                                           "wmma::mem_row_major or wmma::mem_col_major");
    if constexpr (details::is_packed<T>) {  // `stride` is in numbers of 4 or 1 bits
        const std::size_t words = stride / (K / 4);
        details::check_matrix<16>(matrix, 4 * words, EMULATOR_HERE);
        const unsigned lane = emulator::lane();
        const auto *from = reinterpret_cast<const unsigned *>(matrix) + lane / 4 * words + lane % 4;
        emulator::access(from, 4, emulator::LOAD, emulator::DEVICE, EMULATOR_HERE);
        __builtin_memcpy(static_cast<void *>(f.x), from, 4);
    } else {
        static_assert(std::is_same_v<S, std::remove_reference_t<decltype(f.x[0])>>,
                      "the fragment and the matrix have elements of different types");
        details::visit(f, matrix, stride, f.by_columns, emulator::LOAD, EMULATOR_HERE,
                       [&](int i, const S *from) EMULATOR_UNINSTRUMENTED {
                           __builtin_memcpy(static_cast<void *>(&f.x[i]), from, sizeof(S));
                       });
    }
}
template <int M, int N, int K, typename T>
EMULATOR_INSTRUCTION void load_matrix_sync(fragment<accumulator, M, N, K, T> &f, const T *matrix,
                                           unsigned stride, layout_t layout) {
    details::visit(f, matrix, stride, layout == mem_col_major, emulator::LOAD, EMULATOR_HERE,
                   [&](int i, const T *from) EMULATOR_UNINSTRUMENTED {
                       __builtin_memcpy(static_cast<void *>(&f.x[i]), from, sizeof(T));
                   });
}
template <int M, int N, int K, typename T>
EMULATOR_INSTRUCTION void store_matrix_sync(T *matrix, const fragment<accumulator, M, N, K, T> &f,
                                            unsigned stride, layout_t layout) {
    details::visit(f, matrix, stride, layout == mem_col_major, emulator::STORE, EMULATOR_HERE,
                   [&](int i, T *to) EMULATOR_UNINSTRUMENTED {
                       __builtin_memcpy(static_cast<void *>(to), &f.x[i], sizeof(T));
                   });
}

namespace details {

// d = c + a b for numbers of 4 or 1 bits.
template <emulator::fragments::Number TYPE, int K, typename A, typename B>
EMULATOR_PURE void multiply_packed(fragment<accumulator, 8, 8, K, int> &d, const A &a, const B &b,
                                   const fragment<accumulator, 8, 8, K, int> &c, void *code) {
    struct {
        unsigned a[8][4], b[8][4];
    } local, &tiles = emulator::fragments::of_first_lane(local, code);
    const unsigned lane = emulator::lane();
    tiles.a[lane / 4][lane % 4] = a.x[0];
    tiles.b[lane / 4][lane % 4] = b.x[0];
    emulator::exchange(~0u, 0, -1, false, nullptr, code);
    for (int i = 0; i < d.num_elements; ++i) {
        const auto &row = tiles.a[d.index(i) / 8], &column = tiles.b[d.index(i) % 8];
        d.x[i] = emulator::fragments::summed<TYPE, TYPE>(c.x[i], row, column);
    }
    emulator::exchange(~0u, 0, -1, false, nullptr, code);
}

}  // namespace details

EMULATOR_INSTRUCTION void bmma_sync(
    fragment<accumulator, 8, 8, 128, int> &d,
    const fragment<matrix_a, 8, 8, 128, details::b1, row_major> &a,
    const fragment<matrix_b, 8, 8, 128, details::b1, col_major> &b,
    const fragment<accumulator, 8, 8, 128, int> &c,
    experimental::bmmaBitOp operation = experimental::bmmaBitOpXOR,
    experimental::bmmaAccumulateOp = experimental::bmmaAccumulateOpPOPC) {
    if (operation == experimental::bmmaBitOpAND)
        details::multiply_packed<emulator::fragments::BIT_AND>(d, a, b, c, EMULATOR_HERE);
    else
        details::multiply_packed<emulator::fragments::BIT_XOR>(d, a, b, c, EMULATOR_HERE);
}
template <typename T, typename LayoutA, typename LayoutB>
EMULATOR_INSTRUCTION void mma_sync(fragment<accumulator, 8, 8, 32, int> &d,
                                   const fragment<matrix_a, 8, 8, 32, T, LayoutA> &a,
                                   const fragment<matrix_b, 8, 8, 32, T, LayoutB> &b,
                                   const fragment<accumulator, 8, 8, 32, int> &c, bool = false) {
    constexpr bool is_signed = std::is_same_v<T, details::s4>;
    using emulator::fragments::INT4, emulator::fragments::UINT4;
    details::multiply_packed<is_signed ? INT4 : UINT4>(d, a, b, c, EMULATOR_HERE);
}

template <int M, int N, int K, typename T, typename LayoutA, typename LayoutB, typename C, typename D>
EMULATOR_INSTRUCTION void mma_sync(fragment<accumulator, M, N, K, D> &d,
                                   const fragment<matrix_a, M, N, K, T, LayoutA> &a,
                                   const fragment<matrix_b, M, N, K, T, LayoutB> &b,
                                   const fragment<accumulator, M, N, K, C> &c,
                                   bool saturates = false) {
    static_assert(emulator::is_one_of<T, signed char, unsigned char> == std::is_same_v<D, int> &&
                      std::is_same_v<C, int> == std::is_same_v<D, int> &&
                      (std::is_same_v<T, half> || !emulator::is_one_of<half, C, D>),
                  "products of half are added to half or float, of char to int, others to float");
    using Sum = std::conditional_t<std::is_same_v<D, half>, float, D>;
    struct {
        double a[M][K], b[N][K];
    } local, &tiles = emulator::fragments::of_first_lane(local, EMULATOR_HERE);
    constexpr unsigned mask = std::is_same_v<T, precision::tf32> ? 0xffffe000u : ~0u;
    const auto operand = [&](const auto &x) EMULATOR_UNINSTRUMENTED {
        const double number = details::number_of(x);
        return mask == ~0u ? number : __uint_as_float(__float_as_uint(float(number)) & mask);
    };
    for (int i = 0; i < a.num_elements; ++i)
        tiles.a[a.index(i) / K][a.index(i) % K] = operand(a.x[i]);
    for (int i = 0; i < b.num_elements; ++i)
        tiles.b[b.index(i) % N][b.index(i) / N] = operand(b.x[i]);
    emulator::exchange(~0u, 0, -1, false, nullptr, EMULATOR_HERE);
    for (int i = 0; i < d.num_elements; ++i) {
        const auto &row = tiles.a[d.index(i) / N], &column = tiles.b[d.index(i) % N];
        const Sum start(details::number_of(c.x[i]));
        D sum = emulator::fragments::total(start, row, column);
        if constexpr (std::is_same_v<D, int>)
            if (saturates) sum = details::saturated(start, row, column);
        __builtin_memcpy(static_cast<void *>(&d.x[i]), &sum, sizeof(D));
    }
    emulator::exchange(~0u, 0, -1, false, nullptr, EMULATOR_HERE);
}

}  // namespace wmma
}  // namespace nvcuda
