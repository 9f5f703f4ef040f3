"""nvcuda::wmma in the emulator: products of tiles, and the mistakes that they allow."""

import numpy as np
import pytest

from accelviz import emulate
from accelviz.errors import KernelError
from tests.compilers import needs_compiler
from tests.vocabulary import compiles_for_a_gpu

pytestmark = needs_compiler

CODE = """#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void k(const {S} *A, const {S} *B, const {C} *C, {C} *D) {{
    wmma::fragment<wmma::matrix_a, {M}, {N}, {K}, {T}, wmma::{a}_major> a;
    wmma::fragment<wmma::matrix_b, {M}, {N}, {K}, {T}, wmma::{b}_major> b;
    wmma::fragment<wmma::accumulator, {M}, {N}, {K}, {C}> c, d;
    wmma::fill_fragment(d, {C}(0));
    wmma::load_matrix_sync(a, A, {lda});
    wmma::load_matrix_sync(b, B, {ldb});
    wmma::load_matrix_sync(c, C, {ldc}, wmma::mem_{c}_major);
    for (int i = 0; i < c.num_elements; ++i) c.x[i] = {C}(2) * c.x[i];
    wmma::mma_sync(d, a, b, c);
    wmma::store_matrix_sync(D, d, {ldc}, wmma::mem_{c}_major);
}}
"""
#: (C++ type of elements, their NumPy type, C++ type of accumulators, their NumPy type).
TYPES = {
    "half": ("half", "f2", "float", "f4"),
    "half in half": ("half", "f2", "half", "f2"),
    "bfloat16": ("__nv_bfloat16", "u2", "float", "f4"),
    "int8": ("signed char", "i1", "int", "i4"),
    "uint8": ("unsigned char", "u1", "int", "i4"),
    "tf32": ("wmma::precision::tf32", "f4", "float", "f4"),
    "double": ("double", "f8", "double", "f8"),
}
WIDE = [(16, 16, 16), (32, 8, 16), (8, 32, 16)]
CASES = [(name, shape) for name in [*TYPES][:5] for shape in WIDE]
CASES += [("tf32", (16, 16, 8)), ("double", (8, 8, 4))]


def source(name, shape, layout="rcr", **changes):
    (M, N, K), (T, _, C, _) = shape, TYPES[name]
    a, b, c = ({"r": "row", "c": "col"}[letter] for letter in layout)
    sizes = {"lda": K if a == "row" else M, "ldb": N if b == "row" else K}
    fields = {"S": "float" if name == "tf32" else T, "T": T, "C": C, "M": M, "N": N, "K": K}
    fields |= {**sizes, "ldc": N if c == "row" else M, "a": a, "b": b, "c": c}
    return CODE.format(**{**fields, **changes})


@pytest.mark.sample(3)
@pytest.mark.parametrize("layout", ["rcr", "crc"])
@pytest.mark.parametrize(("name", "shape"), CASES)
def test_fragments_multiply_tiles(name, shape, layout):
    (M, N, K), (_, dtype, _, sums) = shape, TYPES[name]
    rng = np.random.default_rng(0)
    A, B, C = (rng.integers(0, 9, size) for size in [(M, K), (K, N), (M, N)])

    def stored(matrix, major, kind):
        matrix = np.ascontiguousarray(matrix if major == "r" else matrix.T)
        if name == "bfloat16" and kind == dtype:
            return (matrix.astype("f4").view("u4") >> 16).astype("u2")
        return matrix.astype(kind)

    D = np.zeros_like(stored(C, layout[2], sums))
    inputs = [stored(A, layout[0], dtype), stored(B, layout[1], dtype), stored(C, layout[2], sums)]
    emulate(source(name, shape, layout), 1, 32, *inputs, D)
    np.testing.assert_array_equal(D if layout[2] == "r" else D.T, A @ B + 2 * C)


@pytest.mark.parametrize(("name", "shape"), CASES[::3] + CASES[-2:])
def test_the_sources_are_cuda(name, shape, monkeypatch):
    assert compiles_for_a_gpu(source(name, shape), monkeypatch)


def changed(*pair, **changes):
    return source("half", (16, 16, 16), **changes).replace(*pair or ("", ""))


PACKED = """#include <mma.h>
using namespace nvcuda::wmma;
__global__ void k(const int *A, const int *B, const int *C, int *D) {{
    fragment<matrix_a, 8, 8, {K}, experimental::precision::{T}, row_major> a;
    fragment<matrix_b, 8, 8, {K}, experimental::precision::{T}, col_major> b;
    fragment<accumulator, 8, 8, {K}, int> d;
    load_matrix_sync(d, C, 8, mem_row_major);
    for (int k = 0; k < 2; ++k) {{
        load_matrix_sync(a, A + 4 * k, {stride});
        load_matrix_sync(b, B + 4 * k, {stride});
        {mma}(d, a, b, d{more});
    }}
    store_matrix_sync(D, d, 8, mem_row_major);
}}
"""


@pytest.mark.parametrize(
    ("kind", "mma", "more", "product"),
    [
        ("u4", "mma_sync", "", np.multiply),
        ("s4", "mma_sync", "", np.multiply),
        ("b1", "bmma_sync", ", experimental::bmmaBitOpAND", np.bitwise_and),
        ("b1", "bmma_sync", "", np.bitwise_xor),
    ],
)
def test_fragments_of_4_bits_and_of_1_bit(kind, mma, more, product, monkeypatch):
    bits = int(kind[1])
    K = 128 // bits
    least = -8 if kind == "s4" else 0
    rng = np.random.default_rng(bits)
    A, B = rng.integers(least, least + (1 << bits), (2, 8, 2 * K))
    C = rng.integers(-99, 99, (8, 8)).astype(np.int32)

    def packed(matrix):
        numbers = (matrix % (1 << bits)).astype(np.uint64).reshape(8, -1, 32 // bits)
        words = (numbers << np.arange(0, 32, bits, dtype=np.uint64)).sum(axis=2)
        return words.astype(np.uint32).view(np.int32)

    code = PACKED.format(K=K, T=kind, stride=2 * K, mma=mma, more=more)
    D = emulate(code, 1, 32, packed(A), packed(B), C, np.zeros_like(C))["D"]
    np.testing.assert_array_equal(D, C + product(A[:, None], B[None]).sum(axis=2))
    assert compiles_for_a_gpu(code, monkeypatch)


#: A kernel with a mistake, and a part of the message.
MISTAKES = {
    "leading dimension": (changed(lda=17), "no multiple of 16 bytes"),
    "out of bounds": (changed(lda=24), "reads A["),
    "address": (changed("a, A,", "a, A + 8,"), "no multiple of 32 bytes"),
    "lanes": (changed("a, A,", "a, A + 16 * (threadIdx.x / 16),"), "another address than lane 0"),
    "branch": (changed("wmma::mma", "if (threadIdx.x < 16) wmma::mma"), "at different places"),
    "unwritten": (changed("wmma::load_matrix_sync(a,", "if (0) wmma::load_matrix_sync(a,"), " a ("),
    "shape": (changed(M=8), "wmma fragments have the shapes"),
    "types": (changed("const half *A", "const float *A"), "elements of different types"),
    "shape of bits": (changed(T="wmma::experimental::precision::b1"), "8x8x128 with b1"),
    "layout of bits": (
        "#include <mma.h>\nusing namespace nvcuda::wmma;\n"
        "__global__ void k(half*, half*, float*, float*) "
        "{ fragment<matrix_a, 8, 8, 128, experimental::precision::b1, col_major> a; }",
        "A is row_major and B is col_major",
    ),
    "no header": ("__global__ void k() { nvcuda::wmma::f(); }", "#include <mma.h>"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_with_fragments_are_found(name):
    code, expected = MISTAKES[name]
    A, B = (np.ones((16, 16), np.float16) for _ in "AB")
    arguments = () if "()" in code.split("{")[0] else (A, B, *np.ones((2, 16, 16), np.float32))
    with pytest.raises(KernelError) as caught:
        emulate(code, 1, 32, *arguments)
    assert expected in str(caught.value)
    assert len(str(caught.value)) < 1920


def test_warps_that_store_different_tiles_in_one_place_race():
    code = changed("{C}(2) *", "").replace("c.x[i] = float(2) *", "c.x[i] = threadIdx.x / 32 +")
    matrices = *np.ones((2, 16, 16), np.float16), *np.ones((2, 16, 16), np.float32)
    with pytest.raises(KernelError, match="a race: thread"):
        emulate(code, 1, 64, *matrices)
    with pytest.warns(UserWarning, match="store the same value in D"):
        emulate(changed(), 1, 64, *matrices)


def test_a_fragment_that_nothing_has_filled_is_an_error_of_the_kernels_line():
    code = """#include <mma.h>
using namespace nvcuda;
__global__ void k(float *C) {
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
    wmma::store_matrix_sync(C, c, 16, wmma::mem_row_major);
}"""
    with pytest.raises(KernelError, match=r"k, kernel.cu:5: .* writes C\[.* c \(line 4\)"):
        emulate(code, 1, 32, np.zeros((16, 16), np.float32))
