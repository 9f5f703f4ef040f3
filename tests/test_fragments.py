"""Fragments: the same table of lanes in Python and CUDA; products and TF32 as on a GPU."""

import numpy as np
import pytest

import accelviz
from accelviz.plans.arithmetic import DROPPED_BITS, TF32_UNIT, to_tf32
from accelviz.plans.fragments import SHAPES
from tests.compilers import ON_KERNELS

each_shape = pytest.mark.parametrize("name", SHAPES)

#: Element types with exact sums.
WHOLE = ("int8", "int4", "bit")


def truncated_tf32(x):
    """Drop the bits that TF32 lacks, as tensor cores do with unrounded float32."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return (bits >> DROPPED_BITS << DROPPED_BITS).view(np.float32)


def source(shape):
    number = "int" if shape.element in WHOLE else "float"
    a, b, c = (shape.registers(matrix) for matrix in "ABC")
    return f"""#include "fragments.cuh"
extern "C" __global__ void k(const unsigned *as, const unsigned *bs, {number} *cs, int *where) {{
    const int lane = threadIdx.x;
    unsigned a[{a}], b[{b}];
    {number} c[{c}];
    Element at;
    for (int r = 0; r < {a}; ++r) {{
        a[r] = as[lane * {a} + r];
        for (int part = 0; part < {shape.parts}; ++part) {{
            at = element_of_a(lane, r, part, {shape.parts});
            where[at.row * {shape.k} + at.column] = (lane * 8 + r) * 32 + part;
        }}
    }}
    where += {shape.m} * {shape.k};
    for (int r = 0; r < {b}; ++r) {{
        b[r] = bs[lane * {b} + r];
        for (int part = 0; part < {shape.parts}; ++part) {{
            at = element_of_b(lane, r, part, {shape.parts});
            where[at.row * 8 + at.column] = (lane * 8 + r) * 32 + part;
        }}
    }}
    where += 8 * {shape.k};
    for (int r = 0; r < {c}; ++r) {{
        at = element_of_c(lane, r);
        where[at.row * 8 + at.column] = (lane * 8 + r) * 32;
        c[r] = cs[lane * {c} + r];
    }}
    {shape.function}(c, a, b);
    {shape.function}(c, a, b);
    for (int r = 0; r < {c}; ++r) cs[lane * {c} + r] = c[r];
}}
"""


def elements(shape, size, rng):
    """Return random numbers of the shape's element type, and their bits."""
    x = rng.standard_normal(size).astype(np.float32)
    if shape.element == "TF32":
        return truncated_tf32(x), x.view(np.uint32)  # tensor cores ignore the lower bits
    if shape.element == "float16":
        half = x.astype(np.float16)
        half[0, 0] = 2.0**-20  # a subnormal number
        return half, half.view(np.uint16).astype(np.uint32)
    if shape.element == "bfloat16":
        bits = x.view(np.uint32) >> 16
        return (bits << 16).view(np.float32), bits
    if shape.element == "bit":
        bits = rng.integers(0, 2, size).astype(np.uint32)
        return bits, bits
    if shape.element == "int4":
        whole = rng.integers(-8, 8, size)
        return whole, (whole & 15).astype(np.uint32)
    whole = rng.integers(-128, 128, size).astype(np.int8)
    return whole, whole.view(np.uint8).astype(np.uint32)


def fragments(shape, matrix, bits):
    """Return a matrix's bits in the registers of a warp: uint32, shape (32, registers)."""
    lane, register, part = np.moveaxis(shape.lanes(matrix), -1, 0)
    size = 32 if matrix == "C" else shape.bits
    registers = np.zeros((32, shape.registers(matrix)), np.uint32)
    np.bitwise_or.at(registers, (lane, register), bits << (part * size).astype(np.uint32))
    return registers


def exponents(x):
    return np.where(x == 0, -1000, np.frexp(x)[1] - 1)


def summed(a, b, c):
    """Return C + A B as an H200 rounds it: terms truncated 25 bits below the largest exponent."""
    products = a[:, :, None] * b[None]
    of_products = np.where(products == 0, -1000, exponents(a)[:, :, None] + exponents(b)[None])
    top = np.maximum(of_products.max(axis=1), exponents(c))
    last = np.ldexp(1.0, top - 25)
    whole = np.trunc(products / last[:, None]).sum(axis=1) + np.trunc(c / last)
    unit = np.ldexp(last, np.maximum(exponents(whole) - 23, 0))
    return np.trunc(whole * last / unit) * unit


def capability():
    import cupy

    return int(cupy.cuda.Device().compute_capability)


@pytest.mark.sample(3)
@ON_KERNELS
@each_shape
def test_a_warp_multiplies_what_the_table_says(name, device):
    """All elements differ, so that exchanged elements are detected."""
    shape = SHAPES[name]
    rng = np.random.default_rng(shape.k)
    a, a_bits = elements(shape, (shape.m, shape.k), rng)
    b, b_bits = elements(shape, (shape.k, 8), rng)
    c = rng.standard_normal((shape.m, 8)).astype(np.float32)
    c = (1000 * c).astype(np.int32) if shape.element in WHOLE else c
    registers = fragments(shape, "C", c.view(np.uint32)).view(c.dtype)
    where = np.full((shape.m + 8) * shape.k + 8 * shape.m, -1, np.int32)
    accelviz.emulate(
        source(shape),
        *(1, 32, fragments(shape, "A", a_bits), fragments(shape, "B", b_bits), registers, where),
        device=device,
    )
    got = registers[tuple(np.moveaxis(shape.lanes("C")[..., :2], -1, 0))]
    a, b, expected = (matrix.astype(np.float64) for matrix in (a, b, c))
    for _ in range(2):
        expected = a @ b + expected if shape.element in WHOLE else summed(a, b, expected)
    if device == "emulator" or capability() == 90:
        assert np.array_equal(got, expected)
    else:  # other tensor cores keep other bits
        bound = 2 * np.abs(a) @ np.abs(b) + np.abs(c)
        assert (abs(got - expected) <= 2**-21 * bound).all()
    held = np.concatenate([shape.lanes(matrix).reshape(-1, 3) for matrix in "ABC"])
    assert np.array_equal(where, held @ [256, 32, 1])


#: Cases for rounding: ties of both parities, the largest number, subnormal numbers.
BITS = [0, 0x00001000, 0x00000FFF, 0x3F801000, 0x3F803000, 0x3F800FFF, 0x3F801001, 0x3FFFF000]
BITS += [0x7F7FFFFF, 0x7F7FEFFF, 0x7F800000, 0x7FC00000, 0x7F800001, 1, 0x007FFFFF, 0x00800000]


@ON_KERNELS
def test_tf32_is_rounded_bit_for_bit(device):
    rng = np.random.default_rng(0)
    bits = np.array([*BITS, *rng.integers(0, 1 << 31, 1024 - len(BITS))], np.uint32)
    x = np.concatenate([bits, bits | 1 << 31]).astype(np.uint32).view(np.float32)
    out = np.zeros(x.size, np.uint32)
    code = """#include "fragments.cuh"
    extern "C" __global__ void k(const float *x, unsigned *out) {
        const int i = blockIdx.x * blockDim.x + threadIdx.x;
        out[i] = to_tf32(x[i]);
    }"""
    accelviz.emulate(code, x.size // 32, 32, x, out, device=device)
    assert np.array_equal(to_tf32(x).view(np.uint32), out)


@ON_KERNELS
def test_a_number_is_split_into_two_of_tf32(device):
    """`high` is the nearest TF32, ties to even; high + low is the number, to 2^-22."""
    rng = np.random.default_rng(1)
    bits = np.array([*BITS[3:8], *rng.integers(0x20000000, 0x60000000, 1019)], np.uint32)
    x = np.concatenate([bits, bits | 1 << 31]).astype(np.uint32).view(np.float32)
    high, low = np.zeros((2, x.size), np.uint32)
    code = """#include "fragments.cuh"
    extern "C" __global__ void k(const float *x, unsigned *high, unsigned *low) {
        const int i = blockIdx.x * blockDim.x + threadIdx.x;
        split_to_even(x[i], high[i], low[i]);
    }"""
    accelviz.emulate(code, x.size // 32, 32, x, high, low, device=device)
    high, low = (truncated_tf32(part.view(np.float32)).astype(float) for part in (high, low))
    assert (abs(high + low - x) <= 2.0**-22 * abs(x)).all()
    if device == "emulator" or capability() >= 90:
        last = np.ldexp(1.0, np.frexp(x)[1] - 11)
        assert np.array_equal(high, np.rint(x / last) * last)


def test_tf32_has_half_a_unit_of_error():
    x = np.random.default_rng(1).standard_normal(10_000).astype(np.float32)
    error = abs(to_tf32(x).astype(np.float64) - x) / abs(x)
    assert 0.9 * TF32_UNIT < error.max() <= TF32_UNIT
    lost = abs(truncated_tf32(x).astype(np.float64) - x) / abs(x)
    assert 1.8 * TF32_UNIT < lost.max() <= 2 * TF32_UNIT
    assert not (to_tf32(x).view(np.uint32) & 0x1FFF).any()
