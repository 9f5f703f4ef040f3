"""half and bfloat16 in the emulator: exact bits by IEEE's rules, and CUDA's names."""

from fractions import Fraction

import numpy as np
import pytest

from accelviz.errors import KernelError
from tests.compilers import needs_compiler
from tests.kernels import source
from tests.vocabulary import ROUND, compiles_for_a_gpu, rounded, run, run_on_gpu, table

pytestmark = needs_compiler

#: Types: name in functions, header, significant bits, smallest and largest exponents.
KINDS = {"half": ("cuda_fp16.h", 11, -14, 15), "bfloat16": ("cuda_bf16.h", 8, -126, 127)}
EVERY = np.arange(1 << 16, dtype=np.uint16)


def head(kind):
    typed = "half" if kind == "half" else "__nv_bfloat16"
    return f"#include <{KINDS[kind][0]}>\nusing T = {typed};\nusing T2 = {typed}2;\n"


def named(kind, code):
    return code.replace("NAME", kind)


def number(bits, kind):
    """Return the Fraction with these 16 bits, or None for an infinity or NaN."""
    precision, lowest, highest = KINDS[kind][1:]
    fraction_bits = precision - 1
    exponent, fraction = (bits & 0x7FFF) >> fraction_bits, bits & (1 << fraction_bits) - 1
    if exponent > highest - lowest + 1:
        return None
    steps = fraction + (exponent > 0) * (1 << fraction_bits)
    size = steps * Fraction(2) ** (max(exponent, 1) - 1 + lowest - fraction_bits)
    return -size if bits >> 15 else size


def bits_of(x, kind, mode="rn"):
    """Return the 16 bits to which a Fraction is rounded."""
    precision, lowest, highest = KINDS[kind][1:]
    near = rounded(x, mode, precision, lowest)
    sign = (x < 0) << 15
    infinity = (highest - lowest + 2) << precision - 1
    if abs(near) >= Fraction(2) ** (highest + 1):
        away = mode == "rn" or mode == ("rd" if x < 0 else "ru")
        return sign | infinity - (not away)
    steps = int(abs(near) / Fraction(2) ** (lowest - precision + 1))
    doublings = max(steps.bit_length() - precision, 0)
    return sign | (doublings << precision - 1) + (steps >> doublings)


CONVERT = source("half_convert")


def every(run, kind):
    arrays = {"given": EVERY, "wide": np.zeros(1 << 16, np.float32), "back": EVERY * 0}
    return run(head(kind) + named(kind, CONVERT), warps=32, grid=64, **arrays)


def wide_of(kind):
    if kind == "half":
        return EVERY.view(np.float16).astype(np.float32)
    return (EVERY.astype(np.uint32) << 16).view(np.float32)


@pytest.mark.parametrize("kind", KINDS)
def test_every_number_is_widened_and_comes_back(kind):
    results, wide = every(run, kind), wide_of(kind)
    np.testing.assert_array_equal(results["wide"], wide)
    assert (np.signbit(results["wide"]) == np.signbit(wide))[~np.isnan(wide)].all()
    np.testing.assert_array_equal(results["back"], np.where(np.isnan(wide), 0x7FFF, EVERY))


NARROW = {
    "float": ["__float2NAME(x)", *(f"__float2NAME_{mode}(x)" for mode in ROUND)],
    "double": ["__double2NAME(y)", "T(y)"],
    "int": [f"__int2NAME_{mode}(j)" for mode in ROUND] + ["T(j)"],
}


def narrow_code(kind):
    expressions = [f"__NAME_as_ushort({name})" for group in NARROW.values() for name in group]
    inputs = {"x": "float", "y": "double", "j": "int"}
    return head(kind) + named(kind, table(expressions, inputs, "unsigned short"))


def narrow_inputs(kind):
    """Return numbers of the whole range, ties between two numbers, and numbers close to ties."""
    precision, lowest, highest = KINDS[kind][1:]
    random = np.random.default_rng(11)
    exponents = random.integers(lowest - precision - 2, highest + 1, 1024)
    y = random.choice([-1, 1], 1024) * (1 + random.random(1024)) * 2.0**exponents
    odd = 2 * random.integers(1 << precision - 1, 1 << precision, 512) + 1
    y[:512] = odd * 2.0 ** random.integers(lowest - precision, highest - precision, 512)
    y[:128] *= 1 + 2.0**-22
    y[128:256] *= 1 - 2.0**-22
    most = (2 - 2.0**-precision) * 2.0**highest  # halfway to what no longer fits
    y[-4:] = [most, np.nextafter(most, 0), -most, most / 2]
    x = y.astype(np.float32)
    return {"xs": x, "ys": y, "js": random.integers(-70000, 70000, 1024).astype(np.int32)}


def narrowed(run, kind):
    inputs = narrow_inputs(kind)
    out = np.zeros((1024, sum(map(len, NARROW.values()))), np.uint16)
    return run(narrow_code(kind), warps=32, **inputs, out=out)["out"], inputs


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_are_narrowed_in_each_direction(kind):
    results, inputs = narrowed(run, kind)
    for row, x, y, j in zip(results.tolist(), *(a.tolist() for a in inputs.values()), strict=True):
        exact = {"float": Fraction(x), "double": Fraction(y), "int": Fraction(j)}
        expected = iter(row)
        for of, expressions in NARROW.items():
            for expression in expressions:
                mode = next((mode for mode in ROUND if f"_{mode}(" in expression), "rn")
                assert next(expected) == bits_of(exact[of], kind, mode), (expression, x, y, j)
    if kind == "half":
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(
                results[:, 0], inputs["xs"].astype(np.float16).view(np.uint16)
            )


#: Expressions of numbers a, b, c; pairs are (a, b) and (b, c).
ARITHMETIC = {
    "__hadd(a, b)": lambda a, b, c: a + b,
    "__hsub(a, b)": lambda a, b, c: a - b,
    "__hmul(a, b)": lambda a, b, c: a * b,
    "__hdiv(a, b)": lambda a, b, c: a / b,
    "__hfma(a, b, c)": lambda a, b, c: a * b + c,
    "a + b": lambda a, b, c: a + b,
    "a * b": lambda a, b, c: a * b,
    "a / b": lambda a, b, c: a / b,
    "-a": lambda a, b, c: -a,
    "__habs(a)": lambda a, b, c: abs(a),
    "__hmax(a, b)": lambda a, b, c: max(a, b),
    "__hmin(a, b)": lambda a, b, c: min(a, b),
    "__hfma_sat(a, b, c)": lambda a, b, c: min(max(a * b + c, Fraction(0)), Fraction(1)),
    "__hfma_relu(a, b, c)": lambda a, b, c: max(a * b + c, Fraction(0)),
    "__hadd_sat(a, b)": lambda a, b, c: min(max(a + b, Fraction(0)), Fraction(1)),
    "hfloor(a)": lambda a, b, c: Fraction(a // 1),
    "htrunc(a)": lambda a, b, c: Fraction(ROUND["rz"](a)),
    "hrint(a)": lambda a, b, c: Fraction(round(a)),
    "__low2NAME(__hadd2(p, q))": lambda a, b, c: a + b,
    "__high2NAME(__hmul2(p, q))": lambda a, b, c: b * c,
    "__high2NAME(__hfma2(p, q, q))": lambda a, b, c: b * c + c,
    "(p / q).y": lambda a, b, c: b / c,
    "__lowhigh2highlow(p).x": lambda a, b, c: b,
    "__lows2NAME2(p, q).y": lambda a, b, c: b,
    "__highs2NAME2(p, q).y": lambda a, b, c: c,
    "__NAME2NAME2(c).y": lambda a, b, c: c,
    "T(T(3) * T(0.5f))": lambda a, b, c: Fraction(3, 2),
}
COMPARISONS = {
    "__heq(a, b)": lambda a, b: a == b,
    "a != b": lambda a, b: a != b,
    "__hlt(a, b)": lambda a, b: a < b,
    "a >= b": lambda a, b: a >= b,
    "__hbgt2(T2(a, b), T2(b, a))": lambda a, b: False,
    "__low2float(__hlt2(p, q)) == 1.0f": lambda a, b: a < b,
    "__heq(nan, nan) || __hne(nan, a) || a < nan": lambda a, b: False,
    "__hequ(nan, nan) && nan != nan && __hisnan(nan) && !__hisinf(nan)": lambda a, b: True,
}


def arithmetic_code(kind):
    lines = [f"__NAME_as_ushort({expression})" for expression in ARITHMETIC] + [*COMPARISONS]
    inputs = {"a0": "unsigned short", "b0": "unsigned short", "c0": "unsigned short"}
    code = table(lines, inputs, "unsigned short").replace(
        "    out[i",
        "    const T a = __ushort_as_NAME(a0), b = __ushort_as_NAME(b0);\n"
        "    const T c = __ushort_as_NAME(c0);\n"
        "    const T nan = __ushort_as_NAME(0x7fff);\n"
        "    const T2 p = __halves2NAME2(a, b), q = make_NAME2(b, c);\n    out[i",
        1,
    )
    return head(kind) + named(kind, code)


def arithmetic_inputs(kind):
    precision = KINDS[kind][1]
    random = np.random.default_rng(17)
    # numbers near 1, for which sums have ties, and of any size
    near = bits_of(Fraction(1), kind) + random.integers(-2 << precision, 2 << precision, (3, 384))
    any_ = random.integers(0, 1 << 15, (3, 384))
    words = np.concatenate([near, any_], axis=1) | random.integers(0, 2, (3, 768)) << 15
    # a product halfway between two numbers, with a sum that decides the rounding
    third = (Fraction(3, 2), Fraction((1 << precision - 1) // 3 * 2 + 1, 1 << precision - 2))
    tiny = Fraction(2) ** KINDS[kind][2]
    for i, c in enumerate((tiny, -tiny, Fraction(0))):
        words[:, i] = [bits_of(x, kind) for x in (*third, c)]
    return dict(zip(("a0s", "b0s", "c0s"), words.astype(np.uint16), strict=True))


def arithmetic(run, kind):
    inputs = arithmetic_inputs(kind)
    out = np.zeros((768, len(ARITHMETIC) + len(COMPARISONS)), np.uint16)
    return run(arithmetic_code(kind), warps=24, **inputs, out=out)["out"], inputs


@pytest.mark.parametrize("kind", KINDS)
def test_arithmetic_is_rounded_once(kind):
    results, inputs = arithmetic(run, kind)
    checked = 0
    for row, *words in zip(results.tolist(), *(a.tolist() for a in inputs.values()), strict=True):
        numbers = [number(word, kind) for word in words]
        if None in numbers or 0 in numbers:
            continue
        for got, (name, expected) in zip(row, ARITHMETIC.items(), strict=False):
            exact = expected(*numbers)
            if exact == 0:
                assert got & 0x7FFF == 0, (name, words)
            else:
                assert got == bits_of(exact, kind), (name, [hex(word) for word in words])
            checked += 1
        for got, (name, expected) in zip(row[len(ARITHMETIC) :], COMPARISONS.items(), strict=True):
            assert got == expected(*numbers[:2]), (name, words)
    assert checked > 10_000


MEMORY = source("half_memory")


def memory(run, kind):
    def stored(x):
        words = [bits_of(Fraction(int(value)), kind) for value in np.ravel(x)]
        dtype = np.float16 if kind == "half" else np.uint16
        return np.array(words, np.uint16).view(dtype).reshape(np.shape(x))

    X, pairs = np.arange(64), np.arange(64).reshape(32, 2)
    arrays = {"X": stored(X), "pairs": stored(pairs), "sum": stored([0]), "sums": stored([0, 0])}
    results = run(head(kind) + named(kind, MEMORY), **arrays, whole=np.zeros(32, np.int32))
    v = X[31::-1] + 2
    expected = pairs[::-1] + np.stack([v, 2 * X[:31:-1]], axis=1)
    return results, {
        "X": stored([*X[32:], *X[32:]]),
        "pairs": stored(expected),
        "sum": stored([32]),
        "sums": stored([64, 64]),
        "whole": np.append(v[1:], v[-1]) // 2 + X[:32],
    }


@pytest.mark.parametrize("kind", KINDS)
def test_they_are_stored_shared_summed_and_exchanged(kind):
    results, expected = memory(run, kind)
    for name, array in expected.items():
        np.testing.assert_array_equal(results[name], array, err_msg=name)


#: Expressions that are ambiguous or undefined in CUDA.
NO_CUDA = ("a * 2.0f", "a + 1", "a < 0.5f ? a : a", "__hadd(a, 1.0f)", "max(a, a)", "T2(a).x")


@pytest.mark.parametrize("kind", KINDS)
def test_the_sources_are_cuda(kind, monkeypatch):
    for code in (CONVERT, MEMORY):
        assert compiles_for_a_gpu(head(kind) + named(kind, code), monkeypatch)
    assert compiles_for_a_gpu(narrow_code(kind), monkeypatch)
    assert compiles_for_a_gpu(arithmetic_code(kind), monkeypatch)


def ambiguous(expression):
    body = f"T a = *a0; *a0 = {expression};"
    return f'{head("half")}extern "C" __global__ void k(T *a0) {{ {body} }}'


@pytest.mark.parametrize("expression", NO_CUDA)
def test_what_is_ambiguous_in_cuda_is_so_here(expression, monkeypatch):
    with pytest.raises(KernelError, match=r"kernel.cu:4: it does not compile for the emulator"):
        run(ambiguous(expression), a0=np.zeros(1, np.float16))
    assert not compiles_for_a_gpu(ambiguous(expression), monkeypatch)


@pytest.mark.gpu
@pytest.mark.parametrize("kind", KINDS)
def test_a_gpu_finds_the_same(kind):
    for results in (every, memory):
        on_host, on_gpu = results(run, kind), results(run_on_gpu, kind)
        np.testing.assert_equal(on_gpu, on_host)
    for results in (narrowed, arithmetic):
        on_host, on_gpu = (
            np.where((bits & 0x7FFF) > bits_of(Fraction(2) ** 200, kind), 0x7FFF, bits)  # any NaN
            for bits in (results(on, kind)[0] for on in (run, run_on_gpu))
        )
        np.testing.assert_array_equal(on_gpu, on_host)
