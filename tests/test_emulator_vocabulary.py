"""CUDA functions in the emulator have CUDA's results; other names do not compile."""

import math
import operator
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from accelviz import emulate
from accelviz.errors import KernelError
from tests.compilers import needs_compiler
from tests.vocabulary import (
    ROUND,
    compiles_for_a_gpu,
    kernel,
    rounded,
    run,
    run_on_gpu,
    signed,
    table,
    toolkit_options,
    words,
)

pytestmark = needs_compiler

U32, U64 = (1 << 32) - 1, (1 << 64) - 1


def u24(x):
    return x & 0xFFFFFF


def i24(x):
    return signed(u24(x), 24)


def dp4a(a, b, c, narrow):
    return c + sum(narrow(a >> k & 255) * narrow(b >> k & 255) for k in (0, 8, 16, 24))


def byte_perm(a, b, c):
    both = b << 32 | a
    return sum((both >> 8 * (c >> 4 * k & 7) & 255) << 8 * k for k in range(4))


#: Expressions of words a, b, c, and of 64-bit l = a:b and m = b:c.
INTEGERS = {
    "__popc(a)": lambda a, b, c, w, v: a.bit_count(),
    "__popcll(l)": lambda a, b, c, w, v: w.bit_count(),
    "__brev(a)": lambda a, b, c, w, v: int(f"{a:032b}"[::-1], 2),
    "__brevll(l)": lambda a, b, c, w, v: int(f"{w:064b}"[::-1], 2),
    "__clz(a)": lambda a, b, c, w, v: 32 - a.bit_length(),
    "__clzll(l)": lambda a, b, c, w, v: 64 - w.bit_length(),
    "__ffs(a)": lambda a, b, c, w, v: (a & -a).bit_length(),
    "__ffsll(l)": lambda a, b, c, w, v: (w & -w).bit_length(),
    "__mul24(a, b)": lambda a, b, c, w, v: signed(i24(a) * i24(b)),
    "__umul24(a, b)": lambda a, b, c, w, v: u24(a) * u24(b) & U32,
    "__mulhi(a, b)": lambda a, b, c, w, v: signed(a) * signed(b) >> 32,
    "__umulhi(a, b)": lambda a, b, c, w, v: a * b >> 32,
    "__mul64hi(l, m)": lambda a, b, c, w, v: signed(w, 64) * signed(v, 64) >> 64,
    "__umul64hi(l, m)": lambda a, b, c, w, v: w * v >> 64,
    "__sad(a, b, c)": lambda a, b, c, w, v: abs(signed(a) - signed(b)) + c & U32,
    "__usad(a, b, c)": lambda a, b, c, w, v: abs(a - b) + c & U32,
    "__hadd(a, b)": lambda a, b, c, w, v: signed(a) + signed(b) >> 1,
    "__rhadd(a, b)": lambda a, b, c, w, v: signed(a) + signed(b) + 1 >> 1,
    "__uhadd(a, b)": lambda a, b, c, w, v: a + b >> 1,
    "__urhadd(a, b)": lambda a, b, c, w, v: a + b + 1 >> 1,
    "__byte_perm(a, b, c)": lambda a, b, c, w, v: byte_perm(a, b, c),
    "__funnelshift_l(b, a, c)": lambda a, b, c, w, v: w << (c & 31) >> 32 & U32,
    "__funnelshift_lc(b, a, c)": lambda a, b, c, w, v: w << min(c, 32) >> 32 & U32,
    "__funnelshift_r(b, a, c)": lambda a, b, c, w, v: w >> (c & 31) & U32,
    "__funnelshift_rc(b, a, c)": lambda a, b, c, w, v: w >> min(c, 32) & U32,
    "__dp4a(a, b, c)": lambda a, b, c, w, v: dp4a(a, b, c, int) & U32,
    "__dp4a((int)a, (int)b, (int)c)": lambda a, b, c, w, v: signed(
        dp4a(a, b, c, lambda x: signed(x, 8))
    ),
    "__double2hiint(__hiloint2double(a, b))": lambda a, b, c, w, v: signed(a),
    "__double2loint(__hiloint2double(a, b))": lambda a, b, c, w, v: signed(b),
    "__double_as_longlong(__longlong_as_double(l))": lambda a, b, c, w, v: w,
    "__float_as_uint(__uint_as_float(a))": lambda a, b, c, w, v: a,
    "__float_as_int(__int_as_float(a))": lambda a, b, c, w, v: signed(a),
    "min((int)a, (int)b)": lambda a, b, c, w, v: min(signed(a), signed(b)),
    "max((int)a, b)": lambda a, b, c, w, v: max(a, b),
    "min(a, (int)b)": lambda a, b, c, w, v: min(a, b),
    "max((long long)l, (long long)m)": lambda a, b, c, w, v: max(signed(w, 64), signed(v, 64)),
    "min(l, (long long)m)": lambda a, b, c, w, v: min(w, v),
    "min((short)a, (short)b)": lambda a, b, c, w, v: min(signed(a, 16), signed(b, 16)),
    "umax(a, b)": lambda a, b, c, w, v: max(a, b),
    "llmin(l, m)": lambda a, b, c, w, v: min(signed(w, 64), signed(v, 64)),
    "ullmax(l, m)": lambda a, b, c, w, v: max(w, v),
}
INTEGER_CODE = table(
    INTEGERS, {"a": "unsigned", "b": "unsigned", "c": "unsigned"}, "long long"
).replace(
    "    out[i",
    "    const unsigned long long l = (unsigned long long)a << 32 | b,\n"
    "                             m = (unsigned long long)b << 32 | c;\n    out[i",
    1,
)
INTEGER_INPUT = {name: words(96, seed) for seed, name in enumerate("abc")}


def integers(run):
    out = np.zeros((96, len(INTEGERS)), np.int64)
    return run(INTEGER_CODE, warps=3, **INTEGER_INPUT, out=out)["out"]


def test_integer_functions():
    for row, a, b, c in zip(
        integers(run), *(x.tolist() for x in INTEGER_INPUT.values()), strict=True
    ):
        for got, (expression, expected) in zip(row.tolist(), INTEGERS.items(), strict=True):
            want = expected(a, b, c, a << 32 | b, b << 32 | c)
            assert got & U64 == want & U64, (expression, hex(a), hex(b), hex(c))


def parts(word, bits, is_signed):
    """Return the two halfwords or four bytes of a word, the lowest first."""
    fields = [word >> at & ((1 << bits) - 1) for at in range(0, 32, bits)]
    return [signed(field, bits) for field in fields] if is_signed else fields


def average(x, y):
    """Return the average, rounded away from zero."""
    return (x + y) // 2 + ((x + y) % 2 and x + y > 0)


#: SIMD functions of parts x and y, without the number of parts: whether the parts are signed, and
#: whether the result saturates.
SIMD = {
    "abs(a": (True, False, lambda x, y: abs(x)),
    "absss(a": (True, True, lambda x, y: abs(x)),
    "neg(a": (True, False, lambda x, y: -x),
    "negss(a": (True, True, lambda x, y: -x),
    "add(a, b": (False, False, lambda x, y: x + y),
    "addss(a, b": (True, True, lambda x, y: x + y),
    "addus(a, b": (False, True, lambda x, y: x + y),
    "sub(a, b": (False, False, lambda x, y: x - y),
    "subss(a, b": (True, True, lambda x, y: x - y),
    "subus(a, b": (False, True, lambda x, y: x - y),
    "absdiffs(a, b": (True, False, lambda x, y: abs(x - y)),
    "absdiffu(a, b": (False, False, lambda x, y: abs(x - y)),
    "avgs(a, b": (True, False, average),
    "avgu(a, b": (False, False, lambda x, y: (x + y + 1) // 2),
    "haddu(a, b": (False, False, lambda x, y: (x + y) // 2),
    "maxs(a, b": (True, False, max),
    "maxu(a, b": (False, False, max),
    "mins(a, b": (True, False, min),
    "minu(a, b": (False, False, min),
}
for sign in ("s", "u"):
    for name, compare in {
        "ge": operator.ge,
        "gt": operator.gt,
        "le": operator.le,
        "lt": operator.lt,
    }.items():
        SIMD[f"cmp{name}{sign}(a, b"] = sign == "s", False, lambda x, y, f=compare: -f(x, y)
        SIMD[f"set{name}{sign}(a, b"] = sign == "s", False, compare
for name, compare in {"eq": operator.eq, "ne": operator.ne}.items():
    SIMD[f"cmp{name}(a, b"] = False, False, lambda x, y, f=compare: -f(x, y)
    SIMD[f"set{name}(a, b"] = False, False, compare
SIMD_CALLS = [f"__v{name.replace('(', f'{n}(')})" for name in SIMD for n in (2, 4)]
SIMD_CALLS += [f"__vsad{sign}{n}(a, b)" for sign in "su" for n in (2, 4)]
SIMD_CODE = table(SIMD_CALLS, {"a": "unsigned", "b": "unsigned"}, "unsigned")


def simd(run):
    # Words of all kinds, of bytes that are equal, and of bytes at the ends of their range.
    random = np.random.default_rng(9)
    ends = random.choice([0, 1, 127, 128, 255], (2, 64, 4)).astype(np.uint8).view(np.uint32)
    a = np.append(words(64, 1), ends[0].ravel())
    b = np.append(np.where(np.arange(64) % 8, words(64, 2), words(64, 1)), ends[1].ravel())
    out = np.zeros((128, len(SIMD_CALLS)), np.uint32)
    return run(SIMD_CODE, warps=4, as_=a, bs=b.astype(np.uint32), out=out)["out"], a, b


def test_simd_functions_work_on_the_parts_of_a_word():
    for row, a, b in zip(*(values.tolist() for values in simd(run)), strict=True):
        results = iter(row)
        for name, (is_signed, saturates, function) in SIMD.items():
            for bits in (16, 8):
                low, high = (
                    (-(1 << bits - 1), (1 << bits - 1) - 1) if is_signed else (0, (1 << bits) - 1)
                )
                word = 0
                pairs = zip(parts(a, bits, is_signed), parts(b, bits, is_signed), strict=True)
                for i, (x, y) in enumerate(pairs):
                    value = int(function(x, y))
                    value = min(max(value, low), high) if saturates else value
                    word |= (value & ((1 << bits) - 1)) << i * bits
                assert next(results) == word, (name, bits, hex(a), hex(b))
        for is_signed in (True, False):
            for bits in (16, 8):
                pairs = zip(parts(a, bits, is_signed), parts(b, bits, is_signed), strict=True)
                assert next(results) == sum(abs(x - y) for x, y in pairs), (bits, hex(a), hex(b))


COMPLEX_CODE = """#include <cuComplex.h>
extern "C" __global__ void k(const cuComplex *A, const cuComplex *B, cuDoubleComplex *C) {
    const int i = threadIdx.x;
    const cuComplex a = A[i], b = make_cuComplex(cuCrealf(B[i]), cuCimagf(B[i]));
    const cuDoubleComplex c = cuComplexFloatToDouble(a), d = cuComplexFloatToDouble(b);
    C[6 * i] = cuCadd(cuCmul(c, d), cuComplexFloatToDouble(cuCsubf(a, cuConjf(b))));
    C[6 * i + 1] = cuCdiv(c, d);
    C[6 * i + 2] = make_cuDoubleComplex(cuCabs(c), cuCabsf(b));
    C[6 * i + 3] = cuCfma(c, d, c);
    C[6 * i + 4] = cuComplexFloatToDouble(cuCdivf(a, b));
    C[6 * i + 5] = cuComplexFloatToDouble(cuComplexDoubleToFloat(c));
}
"""


def test_complex_numbers():
    random = np.random.default_rng(4)
    A, B = (random.normal(size=(2, 32)) + 1j * random.normal(size=(2, 32))).astype(np.complex64)
    views = (values.view(np.float32).copy() for values in (A, B))
    C = np.zeros(32 * 12)
    emulate(COMPLEX_CODE, 1, 32, *views, C)
    c, d = A.astype(complex), B.astype(complex)
    sums = [c * d + (c - d.conj()), c / d, abs(c) + 1j * abs(d), c * d + c, c / d, c]
    np.testing.assert_allclose(C.view(complex).reshape(32, 6), np.stack(sums, 1), rtol=3e-6)


def test_norms_of_arrays_load_each_element():
    code = kernel("    Y[0] = normf(n, X), Y[1] = rnormf(n, X);", "const float *X, float *Y, int n")
    X, Y = np.array([2, 3, 6], np.float32), np.zeros(2, np.float32)
    assert emulate(code, 1, 1, X, Y, 3)["Y"].tolist() == [7, np.float32(1 / 7)]
    with pytest.raises(KernelError, match=r"reads X\[3\]"):
        emulate(code, 1, 1, X, Y, 4)


NAN = math.nan
WHOLE = "0 1e9 2147483520 2147483648 4294967040 4294967296 9.2233715e18 9.223372e18"
NUMBERS = f"{WHOLE} 1.8446743e19 1.8446744e19 1e30 inf 0.5 1.5 2.5 0.49999997 3.7".split()
NUMBERS = np.array([*map(float, NUMBERS), *(-float(x) for x in NUMBERS[:-3]), NAN], np.float32)
INTEGER_TYPES = {"int": (-(1 << 31), (1 << 31) - 1), "uint": (0, U32)}
INTEGER_TYPES |= {"ll": (-(1 << 63), (1 << 63) - 1), "ull": (0, U64)}
TO_INTEGERS = [
    f"__{of}2{to}_{mode}({x})"
    for of, x in (("float", "x"), ("double", "y"))
    for to in INTEGER_TYPES
    for mode in ROUND
]
TO_INTEGER_CODE = table(TO_INTEGERS, {"x": "float", "y": "double"}, "long long")


def to_integers(run):
    assert len(NUMBERS) == 32
    out = np.zeros((32, len(TO_INTEGERS)), np.int64)
    return run(TO_INTEGER_CODE, xs=NUMBERS, ys=NUMBERS.astype(np.float64), out=out)["out"]


def test_conversions_to_integers_saturate_and_make_something_certain_of_nan():
    def expected(x, of, to, mode):
        least, most = INTEGER_TYPES[to]
        if math.isnan(x):  # PTX, cvt: 0 where both have 32 bits
            wide = of == "double" or "ll" in to
            return (1 << (63 if "ll" in to else 31)) * wide
        if math.isinf(x):
            return most if x > 0 else least
        return min(max(ROUND[mode](Fraction(x)), least), most)

    for row, x in zip(to_integers(run), NUMBERS.tolist(), strict=True):
        for got, expression in zip(row.tolist(), TO_INTEGERS, strict=True):
            of, to, mode = expression[2:-3].replace("2", "_").split("_")
            bits = 63 if "ll" in to else 31
            assert (got - expected(x, of, to, mode)) % (2 << bits) == 0, (expression, x)


def root(x):
    """Return a fraction that is rounded like the square root."""
    scaled = x.numerator * x.denominator << 400
    whole = math.isqrt(scaled)
    return Fraction(2 * whole + (whole * whole != scaled), x.denominator << 201)


#: Expressions of fractions x, y, z; the dicts below add the prefix of each type's functions.
ARITHMETIC = {
    "add_{}(x, y)": lambda x, y, z, w: x + y,
    "sub_{}(x, y)": lambda x, y, z, w: x - y,
    "mul_{}(x, y)": lambda x, y, z, w: x * y,
    "div_{}(x, y)": lambda x, y, z, w: x / y,
    "rcp_{}(x)": lambda x, y, z, w: 1 / x,
    "sqrt_{}(fabs(x))": lambda x, y, z, w: root(abs(x)),
}
FLOATS = {f"__f{name}": exact for name, exact in ARITHMETIC.items()} | {
    "__fmaf_{}(x, y, z)": lambda x, y, z, w: x * y + z,
    "__int2float_{}((int)l)": lambda x, y, z, w: Fraction(signed(w)),
    "__uint2float_{}((unsigned)l)": lambda x, y, z, w: Fraction(w & U32),
    "__ll2float_{}((long long)l)": lambda x, y, z, w: Fraction(signed(w, 64)),
    "__ull2float_{}(l)": lambda x, y, z, w: Fraction(w),
    "__double2float_{}((double)x * y)": lambda x, y, z, w: x * y,
}
DOUBLES = {f"__d{name}": exact for name, exact in ARITHMETIC.items()} | {
    "__fma_{}(x, y, z)": lambda x, y, z, w: x * y + z,
    "__ll2double_{}((long long)l)": lambda x, y, z, w: Fraction(signed(w, 64)),
    "__ull2double_{}(l)": lambda x, y, z, w: Fraction(w),
}


def directed(functions, kind):
    """Return a source with each function in each rounding mode, and the exact functions."""
    exact = {name.format(mode): (mode, f) for name, f in functions.items() for mode in ROUND}
    inputs = {"x": kind, "y": kind, "z": kind, "l": "unsigned long long"}
    return table(exact, inputs, kind), exact


DIRECTED = {"float": (FLOATS, np.float32, 24), "double": (DOUBLES, np.float64, 53)}


def directions(run, kind):
    functions, dtype, _ = DIRECTED[kind]
    random = np.random.default_rng(5)
    wide = 2.0 ** random.integers(-20, 20, (3, 64))
    numbers = dict(
        zip(("xs", "ys", "zs"), (random.normal(size=(3, 64)) * wide).astype(dtype), strict=True)
    )
    ls = words(64, 7).astype(np.uint64) << np.uint64(32) | words(64, 8)
    code, exact = directed(functions, kind)
    out = np.zeros((64, len(exact)), dtype)
    return run(code, warps=2, **numbers, ls=ls, out=out)["out"], [*numbers.values(), ls]


@pytest.mark.parametrize("kind", DIRECTED)
def test_arithmetic_and_conversions_round_in_each_direction(kind):
    results, inputs = directions(run, kind)
    functions, _, bits = DIRECTED[kind]
    exact = directed(functions, kind)[1]
    columns = (values.tolist() for values in (results, *inputs))
    for row, *numbers, word in zip(*columns, strict=True):
        x, y, z = map(Fraction, numbers)
        for got, (name, (mode, expected)) in zip(row, exact.items(), strict=True):
            assert Fraction(got) == rounded(expected(x, y, z, word), mode, bits), (name, numbers)


def normal_cdf(x):
    return math.erfc(-x / math.sqrt(2)) / 2


def inverse_erfc(q):
    """Return x with erfc(x) = q by bisection."""
    low, high = 0.0, 27.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if math.erfc(middle) > q else (low, middle)
    return low


def bessel_i(order, x):
    terms = range(100)
    return math.fsum(
        (x / 2) ** (2 * k + order) / math.prod(range(1, k + 1)) / math.prod(range(1, k + order + 1))
        for k in terms
    )


#: Functions of floats x and y, with a GPU's relative error; None if exact.
FUNCTIONS = {
    "rsqrtf(x)": (lambda x, y: 1 / math.sqrt(x), 2e-7),
    "rsqrt((double)x)": (lambda x, y: 1 / math.sqrt(x), 1e-7),
    "__frsqrt_rn(x)": (lambda x, y: 1 / math.sqrt(x), 1e-7),
    "rcbrtf(x)": (lambda x, y: x ** (-1 / 3), 2e-7),
    "__fdividef(x, y)": (lambda x, y: x / y, 3e-7),
    "fdividef(x, y)": (lambda x, y: x / y, 3e-7),
    "__saturatef(x - y)": (lambda x, y: min(max(x - y, 0), 1), 1e-6),
    "__expf(x)": (lambda x, y: math.exp(x), 2e-6),
    "__exp10f(x)": (lambda x, y: 10**x, 4e-6),
    "exp10f(x)": (lambda x, y: 10**x, 4e-7),
    "__logf(x + 1.5f)": (lambda x, y: math.log(x + 1.5), 2e-6),
    "__log2f(x + 1.5f)": (lambda x, y: math.log2(x + 1.5), 2e-6),
    "__log10f(x + 1.5f)": (lambda x, y: math.log10(x + 1.5), 2e-6),
    "__sinf(0.4f * x)": (lambda x, y: math.sin(0.4 * x), 2e-5),
    "__cosf(0.3f * x)": (lambda x, y: math.cos(0.3 * x), 2e-5),
    "__tanf(0.3f * x)": (lambda x, y: math.tan(0.3 * x), 4e-5),
    "__powf(x, y)": (lambda x, y: x**y, 2e-5),
    "sinpif(x * 0.1f)": (lambda x, y: math.sin(math.pi * x * 0.1), 4e-6),
    "cospif(x * 0.1f)": (lambda x, y: math.cos(math.pi * x * 0.1), 1e-5),
    "sinpif(4.0f) + cospif(1.0f) + cospif(2.5f)": (lambda x, y: -1, None),
    "normcdff(x)": (lambda x, y: normal_cdf(x), 1e-6),
    "norm3df(x, y, 1.0f)": (lambda x, y: math.hypot(x, y, 1), 3e-7),
    "rhypotf(x, y)": (lambda x, y: 1 / math.hypot(x, y), 3e-7),
    "rnorm4df(x, y, 1.0f, 2.0f)": (lambda x, y: 1 / math.hypot(x, y, 1, 2), 4e-7),
    "abs(-x)": (lambda x, y: x, None),
    "min(x, y)": (lambda x, y: min(x, y), None),
    "max(x, nan)": (lambda x, y: x, None),
    "min(nan, (double)y)": (lambda x, y: y, None),
    "isnan(nan) + 2 * isnan(x) + 4 * isinf(1.0f / 0.0f) + 8 * isfinite(x)": (lambda x, y: 13, None),
    "__fdividef(x, 1.5e38f)": (lambda x, y: 0, None),
    "erfinvf(erff(0.5f * x))": (lambda x, y: x / 2, 2e-6),
    "erfinv(-erf(0.5 * x))": (lambda x, y: -x / 2, 1e-13),
    "erfcinv(1e-200 * erfc((double)x)) / 21": (
        lambda x, y: inverse_erfc(1e-200 * math.erfc(x)) / 21,
        1e-13,
    ),
    "normcdfinv(normcdf(-2.0 * x))": (lambda x, y: -2 * x, 1e-12),
    "isnan(erfinv(1.5)) + 2 * isinf(erfinvf(1.0f)) + 4 * isnan(normcdfinvf(-0.1f))": (
        lambda x, y: 7,
        None,
    ),
    "erfcx((double)x)": (lambda x, y: math.exp(x * x) * math.erfc(x), 1e-13),
    "erfcxf(1e10f * x)": (lambda x, y: 1 / (math.sqrt(math.pi) * 1e10 * x), 2e-7),
    "cyl_bessel_i0f(x)": (lambda x, y: bessel_i(0, x), 2e-7),
    "cyl_bessel_i1(8.0 * x)": (lambda x, y: bessel_i(1, 8 * x), 1e-13),
    "fdivide((double)x, (double)y)": (lambda x, y: x / y, None),
    "signbit(-x) != 0": (lambda x, y: 1, None),
    "sincos_of(x)": (lambda x, y: 3 + math.sin(x) - math.cos(x), 1e-6),
}
FUNCTION_CODE = table(
    FUNCTIONS,
    {"x": "float", "y": "float"},
    "double",
    """__device__ float sincos_of(float x) {
    float parts[2], more[2];
    sincosf(x, &parts[0], &parts[1]);
    __sincosf(0.0f, &more[0], &more[1]);
    return 3 + parts[0] - parts[1] * more[1];
}
""",
).replace("    out[i", "    const float nan = __int_as_float(0x7fc00000);\n    out[i", 1)


def functions(run):
    random = np.random.default_rng(3)
    xs, ys = random.uniform(0.5, 3, (2, 32)).astype(np.float32)
    return run(FUNCTION_CODE, xs=xs, ys=ys, out=np.zeros((32, len(FUNCTIONS))))["out"], xs, ys


def check_functions(results, xs, ys):
    for row, x, y in zip(results.tolist(), xs.tolist(), ys.tolist(), strict=True):
        for got, (name, (expected, error)) in zip(row, FUNCTIONS.items(), strict=True):
            assert got == pytest.approx(expected(x, y), rel=error or 0, abs=0), (name, x, y)


def test_floating_point_functions():
    check_functions(*functions(run))


LIMITS = """
extern "C" __global__ void k(int *i, unsigned *u, long long *l, float *f, double *d) {
    i[0] = INT_MAX, i[1] = INT_MIN, u[0] = UINT_MAX, l[0] = LLONG_MAX;
    f[0] = FLT_MAX, f[1] = FLT_MIN, f[2] = FLT_EPSILON, f[3] = INFINITY, f[4] = NAN;
    d[0] = DBL_MAX, d[1] = M_PI;
    uint32_t short_of_include = 3;
    u[1] = short_of_include;
}
"""


def test_limits_need_no_include():
    lengths = {"i4": 2, "u4": 2, "i8": 1, "f4": 5, "f8": 2}
    inputs = {
        name: np.zeros(n, dtype) for name, (dtype, n) in zip("iulfd", lengths.items(), strict=True)
    }
    # lanes of a warp write equal numbers to the same addresses, which is a race
    code = LIMITS.replace("{\n", "{\n    if (threadIdx.x) return;\n", 1)
    results = run(code, **inputs)
    integers = [*results["i"], *results["u"], *results["l"]]
    assert integers == [2**31 - 1, -(2**31), U32, 3, 2**63 - 1]
    f = np.finfo(np.float32)
    np.testing.assert_array_equal(results["f"], [f.max, f.tiny, f.eps, np.inf, np.nan])
    assert [*results["d"]] == [np.finfo(np.float64).max, math.pi]


SOURCES = {
    "SIMD": SIMD_CODE,
    "complex": COMPLEX_CODE,
    "integers": INTEGER_CODE,
    "to integers": TO_INTEGER_CODE,
    "functions": FUNCTION_CODE,
}
SOURCES |= {kind: directed(functions, kind)[0] for kind, (functions, *_) in DIRECTED.items()}


@pytest.mark.parametrize("name", SOURCES)
def test_the_sources_are_cuda(name, monkeypatch):
    assert compiles_for_a_gpu(SOURCES[name], monkeypatch)


@pytest.mark.gpu
def test_a_gpu_finds_the_same():
    np.testing.assert_array_equal(integers(run_on_gpu), integers(run))
    np.testing.assert_array_equal(to_integers(run_on_gpu), to_integers(run))
    np.testing.assert_array_equal(simd(run_on_gpu)[0], simd(run)[0])
    for kind in DIRECTED:
        on_host, on_gpu = (directions(on, kind)[0] for on in (run, run_on_gpu))
        np.testing.assert_array_equal(on_gpu, on_host)
    check_functions(*functions(run_on_gpu))


#: Names in CUDA's headers that are no functions for kernels, and macros of the emulator.
NO_FUNCTIONS = re.compile(
    r"_?_?[A-Z]\w*|_[a-z]\w*|__(?:cmath|pow|libcpp|isfinite|isinfd|isnand|signbitd|pm|cuda|nv|builtin)\w*"
    r"|__[A-Z]\w*|__u128Atomic\w+|\w*sincos\w*|attribute|defined|throw|printf|__attribute__"
)


def test_the_emulator_has_every_function_of_cudas_math_headers():
    folders = [Path(option[2:]) for option in toolkit_options()]
    if not folders or not (folders[0] / "crt" / "math_functions.h").exists():
        pytest.skip("CUDA's own headers are not installed")
    names = set()
    for name in ("math_functions.h", "device_functions.h", "device_double_functions.h"):
        text = (folders[0] / "crt" / name).read_text("utf-8", "replace")
        text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
        mark = r"(?:__DEVICE_FUNCTIONS_DECL__|__device_builtin__|__MATH_FUNCTIONS_DECL__)"
        names |= {*re.findall(rf"{mark}[^;{{}}()#]*?\b(\w+)\s*\(", text)}
    names = sorted(name for name in names if not NO_FUNCTIONS.fullmatch(name))
    assert len(names) > 400
    uses = "\n".join(f"namespace n{i} {{ using ::{name}; }}" for i, name in enumerate(names))
    code = f"{uses}\n{kernel('    out[0] = 1;')}"
    assert emulate(code, 1, 1, np.zeros(1, np.int32))["out"][0] == 1
