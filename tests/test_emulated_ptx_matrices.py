"""PTX's mma and ldmatrix in the emulator: NumPy's products, and the mistakes that they allow."""

import itertools

import numpy as np
import pytest

from accelviz import emulate
from accelviz.plans.fragments import Shape
from tests.compilers import needs_compiler
from tests.vocabulary import check_planted, compiles_for_a_gpu, kernel

pytestmark = needs_compiler

#: Types of elements: (bits in a register, range of the numbers, function that returns their bits).
ELEMENTS = {
    "f16": (16, (-9, 9), lambda x: x.astype("f2").view("u2")),
    "bf16": (16, (-9, 9), lambda x: x.astype("f4").view("u4") >> 16),
    "tf32": (32, (-9, 9), lambda x: x.astype("f4").view("u4")),
    "s8": (8, (-128, 128), lambda x: x & 255),
    "u8": (8, (0, 256), lambda x: x),
    "s4": (4, (-8, 8), lambda x: x & 15),
    "u4": (4, (0, 16), lambda x: x),
    "b1": (1, (0, 2), lambda x: x),
}
SHAPES = [
    f"m16n8k{k}.row.col.{c}.{a}.{a}.{c}"
    for a, c, depths in (
        ("f16", "f16", (8, 16)),
        ("f16", "f32", (8, 16)),
        ("bf16", "f32", (8, 16)),
        ("tf32", "f32", (4, 8)),
        ("s8", "s32", (16, 32)),
        ("u4", "s32", (32, 64)),
    )
    for k in depths
]
SHAPES += [
    "m16n8k32.row.col.s32.u8.s8.s32",
    "m16n8k64.row.col.s32.s4.u4.s32",
    "m8n8k16.row.col.s32.s8.u8.s32",
    "m8n8k32.row.col.s32.s4.s4.s32",
    "m16n8k128.row.col.s32.b1.b1.s32.and.popc",
    "m16n8k256.row.col.s32.b1.b1.s32.xor.popc",
    "m8n8k128.row.col.s32.b1.b1.s32.xor.popc",
]


def parsed(name):
    """Return (Shape, type of A, of B, of C, number of registers of A, B and C)."""
    size, _, _, c, a, b, *_ = name.split(".")
    m, k = size[1:].split("n8k")
    shape = Shape("", "", int(k), ELEMENTS[a][0], int(m))
    counts = [shape.registers(matrix) for matrix in "ABC"]
    counts[2] //= 2 if c == "f16" else 1
    return shape, a, b, c, counts


def product(name):
    """Return the source of a kernel that multiplies the registers in `as` and `bs`."""
    _, _, _, c, counts = parsed(name)
    number_of_operand = itertools.count()
    text = ", ".join(
        "{" + ", ".join(f"%{next(number_of_operand)}" for _ in range(count)) + "}"
        for count in (counts[2], *counts)
    )
    letter, number = ("f", "float") if c == "f32" else ("r", "unsigned")
    outputs = ", ".join(f'"={letter}"(d[{i}])' for i in range(counts[2]))
    arrays = (("r", "a"), ("r", "b"), (letter, "c"))
    inputs = ", ".join(
        f'"{constraint}"({array}s[threadIdx.x * {count} + {i}])'
        for (constraint, array), count in zip(arrays, counts, strict=True)
        for i in range(count)
    )
    body = f"""    {number} d[{counts[2]}];
    asm volatile("mma.sync.aligned.{name} {text};\\n" : {outputs} : {inputs});
    for (int i = 0; i < {counts[2]}; ++i) cs[threadIdx.x * {counts[2]} + i] = d[i];"""
    return kernel(body, f"const unsigned *as, const unsigned *bs, {number} *cs")


def registers(shape, matrix, bits, size, count):
    """Return a matrix's bits in the registers of a warp: uint32, shape (32, count)."""
    lane, register, part = np.moveaxis(shape.lanes(matrix), -1, 0)
    if matrix == "C" and size == 16:
        register, part = register // 2, register % 2
    words = np.zeros((32, count), np.uint32)
    np.bitwise_or.at(words, (lane, register), bits.astype(np.uint32) << (part * size).astype("u4"))
    return words


def multiplied(name, A, B, C):
    """Return D of one instruction for matrices of numbers."""
    shape, a, b, c, counts = parsed(name)
    size_of_c = 16 if c == "f16" else 32
    bits_of_c = C.astype({"f16": "f2", "f32": "f4", "s32": "i4"}[c])
    words = [
        registers(shape, "A", ELEMENTS[a][2](A), ELEMENTS[a][0], counts[0]),
        registers(shape, "B", ELEMENTS[b][2](B), ELEMENTS[b][0], counts[1]),
        registers(shape, "C", bits_of_c.view(f"u{size_of_c // 8}"), size_of_c, counts[2]),
    ]
    sums = words[2].view("f4" if c == "f32" else "u4")
    emulate(product(name), 1, 32, words[0], words[1], sums)
    lane, register, _ = np.moveaxis(shape.lanes("C"), -1, 0)
    if c == "f16":
        return sums.view("f2").reshape(32, -1)[lane, register]
    return sums.view("f4" if c == "f32" else "i4")[lane, register]


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", SHAPES)
def test_products_are_those_of_numpy(name):
    shape, a, b, _, _ = parsed(name)
    rng = np.random.default_rng(0)
    A = rng.integers(*ELEMENTS[a][1], (shape.m, shape.k))
    B = rng.integers(*ELEMENTS[b][1], (shape.k, 8))
    C = rng.integers(-99, 99, (shape.m, 8))
    terms = A[:, :, None] ^ B if "xor" in name else A[:, :, None] * B
    np.testing.assert_array_equal(multiplied(name, A, B, C), terms.sum(1) + C)


def test_sums_of_float16_are_rounded_to_nearest():
    rng = np.random.default_rng(0)
    A, B = np.zeros((16, 8), np.float16), np.zeros((8, 8), np.float16)
    A[:, 3] = rng.standard_normal(16) * 2.0 ** rng.integers(-14, 15, 16)
    A[0, 3] = 30000
    B[3] = rng.standard_normal(8) * [2.0**-9, 1, 1, 8, 2.0**-10, 4, 2, 1]
    with np.errstate(over="ignore", under="ignore"):
        expected = (A[:, 3:4].astype("f4") * B[3].astype("f4")).astype("f2")
    assert np.isinf(expected).any()
    assert (abs(expected[expected != 0]) < 2.0**-14).any()  # subnormal
    D = multiplied("m16n8k8.row.col.f16.f16.f16.f16", A, B, np.zeros((16, 8)))
    np.testing.assert_array_equal(D, expected)


DOUBLE = kernel(
    """    double d[2];
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%4, %5};"
        : "=d"(d[0]), "=d"(d[1])
        : "d"(A[threadIdx.x]), "d"(B[threadIdx.x % 4 * 8 + threadIdx.x / 4]), "d"(0.0), "d"(1.0));
    C[2 * threadIdx.x] = d[0];
    C[2 * threadIdx.x + 1] = d[1];""",
    "const double *A, const double *B, double *C",
)


def test_products_of_doubles():
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((8, 4)), rng.standard_normal((4, 8))
    C = emulate(DOUBLE, 1, 32, A, B, np.zeros((8, 8)))["C"]
    np.testing.assert_allclose(C, A @ B + np.arange(8) % 2, rtol=1e-12)


#: A product of tiles as in published kernels: X is 16 x 16, W is 16 x 8.
TILES = r"""#include <cuda_fp16.h>
#define LOAD_X4(r0, r1, r2, r3, from)                                                    \
    asm volatile("ldmatrix.sync.aligned.x4.m8n8.shared.b16 {%0, %1, %2, %3}, [%4];\n"    \
                 : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(from))
__device__ void load_transposed(unsigned (&r)[2], const half *from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared::cta.b16 {%0, %1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"((unsigned)__cvta_generic_to_shared(from)));
}
extern "C" __global__ void k(const half *X, const half *W, float *Y) {
    __shared__ half x[16][16], w[16][8];
    const int t = threadIdx.x;
    for (int i = t; i < 256; i += 32) x[i / 16][i % 16] = X[i];
    for (int i = t; i < 128; i += 32) w[i / 8][i % 8] = W[i];
    __syncwarp();
    unsigned a[4], b[2], one[1];
    const unsigned from = static_cast<unsigned>(__cvta_generic_to_shared(&x[t % 16][t / 16 * 8]));
    LOAD_X4(a[0], a[1], a[2], a[3], from);
    load_transposed(b, &w[t % 16][0]);
    float y[4] = {};
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
        : "+f"(y[0]), "+f"(y[1]), "+f"(y[2]), "+f"(y[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    for (int i = 0; i < 4; ++i) Y[(t / 4 + i / 2 * 8) * 8 + t % 4 * 2 + i % 2] = y[i];
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1+16];"
                 : "=r"(one[0]) : "r"(from));
    Y[128 + t] = __low2float(*(half2 *)one);
    __shared__ half stored[2][8][8];
    const unsigned to = __cvta_generic_to_shared(stored[t / 8 % 2][t % 8]);
    asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::
                     "r"(to), "r"(a[0]), "r"(a[1]));
    asm volatile("stmatrix.sync.aligned.x1.trans.m8n8.shared::cta.b16 [%0], {%1};" ::
                     "r"(to), "r"(a[0]));
    __syncwarp();
    for (int i = t; i < 128; i += 32) Y[160 + i] = stored[i / 64][i / 8 % 8][i % 8];
}
"""


def launch(code=TILES, seed=0):
    rng = np.random.default_rng(0)
    X, W = (rng.integers(-8, 8, shape).astype(np.float16) for shape in ((16, 16), (16, 8)))
    return X, W, emulate(code, 1, 32, X, W, np.zeros(288, np.float32), seed=seed)["Y"]


@pytest.mark.parametrize("seed", [0, 1])
def test_tiles_are_loaded_and_multiplied(seed):
    X, W, Y = launch(seed=seed)
    np.testing.assert_array_equal(Y[:128].reshape(16, 8), X.astype("f4") @ W.astype("f4"))
    np.testing.assert_array_equal(Y[128:160].reshape(8, 4), X[:8, 8::2])
    np.testing.assert_array_equal(Y[160:].reshape(2, 8, 8), [X[:8, :8].T, X[8:, :8]])


#: (text, its replacement, part of the message).
MISTAKES = [
    ("__syncwarp();", "", "a race"),
    ("&w[t % 16][0]", "&w[t % 16][4]", "aligned"),
    ("&w[t % 16][0]", "&w[t % 16 + 1][0]", "out of bounds"),
    ("i < 256", "i < 255", "which nothing has written"),
    ("float y[4]", "if (t < 16) load_transposed(b, w[t]);\n    float y[4]", "at different places"),
    ("{%8, %9}, ", "{%8}, ", "has lists of 4, 4, 2, 4 registers for D, A, B and C"),
    ("x2.trans", "x4.trans", "has a list of 4 registers and an address"),
    ("t % 8]);", "t % 8 + t / 8]);", "out of bounds"),
    ("m8n8.x2.shared", "m8n8.x4.shared", "has a list of 4 registers and an address"),
    ("float y[4] = {};", "float y[4]; if (t) y[0] = y[1] = y[2] = y[3] = 0;", "y (line 20)"),
]


@pytest.mark.sample(3)
@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_found(mistake):
    check_planted(TILES, mistake, launch)


@pytest.mark.parametrize("code", [TILES, DOUBLE, *map(product, SHAPES)])
def test_the_sources_are_cuda(code, monkeypatch):
    assert compiles_for_a_gpu(code, monkeypatch)
