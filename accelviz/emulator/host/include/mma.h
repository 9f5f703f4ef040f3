// nvcuda::wmma: products of tiles of matrices by the lanes of a warp.
//
// Element `e` of lane `l` is element 32 e + l of the tile in row-major order, an order of the
// emulator's own: CUDA leaves it open. A fragment of halves has 16 elements, some of them repeated.
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

namespace details {

using emulator::is_one_of;

template <int M, int N, int K, typename T, bool OPERAND>
constexpr bool is_tile() {
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
EMULATOR_PURE void check_matrix(const void *matrix, std::size_t row_bytes, void *code) {
    const auto address = reinterpret_cast<std::uint64_t>(matrix);
    if (emulator::exchange(~0u, address, 0, false, nullptr, code) != address)
        emulator::stop("fragment: has another address than lane 0 of its warp", code);
    if (address % 32) emulator::stop("fragment: has an address that is no multiple of 32 bytes", code);
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
                  "int; 16x16x8 with precision::tf32 and float; 8x8x4 with double");
    static_assert(is_accumulator == std::is_void_v<Layout>,
                  "fragments of matrix_a and matrix_b have a layout, row_major or col_major, "
                  "accumulators have none");

   public:
    static constexpr int rows = std::is_same_v<Use, matrix_b> ? K : M,
                         columns = std::is_same_v<Use, matrix_a> ? K : N;
    static constexpr int num_elements =
        std::is_same_v<T, half> && !is_accumulator ? 16 : rows * columns / 32;
    static constexpr bool by_columns = std::is_same_v<Layout, col_major>;
    using element_type = T;
    using storage_element_type =
        std::conditional_t<std::is_same_v<T, precision::tf32>, float, T>;

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
    static_assert(std::is_same_v<S, std::remove_reference_t<decltype(f.x[0])>>,
                  "the fragment and the matrix have elements of different types");
    details::visit(f, matrix, stride, f.by_columns, emulator::LOAD, EMULATOR_HERE,
                   [&](int i, const S *from) EMULATOR_UNINSTRUMENTED {
                       __builtin_memcpy(static_cast<void *>(&f.x[i]), from, sizeof(S));
                   });
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
