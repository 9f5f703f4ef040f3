"""8-bit floating-point numbers in the emulator, bit for bit."""

import numpy as np
import pytest

from accelviz import emulate
from accelviz.errors import KernelError
from tests.compilers import needs_compiler
from tests.vocabulary import compiles_for_a_gpu, run_on_gpu

pytestmark = needs_compiler

CODE = """#include <cuda_fp8.h>
extern "C" __global__ void k(const float *X, unsigned char *bytes, float *back, float *other,
                             const __nv_fp8_{0} *all, __nv_fp8_{0} *same) {{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const __nv_fp8_{0} a(X[i]), b(__float2half(X[i]));
    bytes[4 * i] = a.__x;
    bytes[4 * i + 1] = b.__x;
    bytes[4 * i + 2] = __nv_cvt_float_to_fp8(X[i], __NV_NOSAT, __NV_{1});
    const float2 pair = make_float2(0, X[i]);
    bytes[4 * i + 3] = __nv_cvt_float2_to_fp8x2(pair, __NV_SATFINITE, __NV_{1}) >> 8;
    if (blockIdx.x) return;
    back[i] = float(all[i]);
    const float2 both = float2(__nv_fp8x2_{0}(make_float2(back[i], 1.0f)));
    other[i] = both.y == 1 ? both.x : -1;
    same[i] = all[i];
}}
"""
#: (bits of the fraction, bias, largest number) of each type.
TYPES = {"e4m3": (3, 7, 448.0), "e5m2": (2, 15, 57344.0)}


def values(type_):
    """Return the number of each byte, by the definition of the type."""
    fraction, bias, largest = TYPES[type_]
    bits = np.arange(256)
    exponent, steps = (bits & 0x7F) >> fraction, bits & ((1 << fraction) - 1)
    scale = np.where(exponent, exponent, 1) - bias
    size = np.ldexp(np.where(exponent, 1.0, 0.0) + steps / (1 << fraction), scale)
    infinite = (bits & 0x7F) == 0x7C if type_ == "e5m2" else np.zeros(256, bool)
    size = np.where(size <= largest, size, np.where(infinite, np.inf, np.nan))
    return np.where(bits & 0x80, -size, size).astype(np.float32)


def nearest(X, type_, saturate):
    """Return the bytes of the nearest numbers, those with an even byte on a tie."""
    table = values(type_)[:128].astype(float)
    finite = table[np.isfinite(table)]
    beyond = 2 * finite[-1] - finite[-2]  # what would follow the largest number
    steps = np.append(finite, beyond)
    size = np.minimum(np.abs(np.float64(X)), beyond)
    above = np.searchsorted(steps, size).clip(1, len(finite))
    low, high = steps[above - 1], steps[above]
    up = (size - low > high - size) | ((size - low == high - size) & (above % 2 == 0))
    bits = np.where(up, above, above - 1)
    bits = np.where(bits == len(finite), len(finite) - 1 if saturate else len(finite), bits)
    return np.where(np.isnan(X), 0x7F, bits | np.signbit(X) * 0x80).astype(np.uint8)


def inputs(type_):
    table = values(type_)
    table = table[np.isfinite(table)]
    middles = (np.sort(table)[1:] + np.sort(table)[:-1]) / 2
    around = [np.nextafter(middles, np.float32(s * np.inf)) for s in (-1, 1)]
    special = np.float32([np.inf, -np.inf, np.nan, 1e30, -1e30, 1e-30, 449, 464, 465, 61440, 65504])
    X = np.concatenate([table, middles, *around, special]).astype(np.float32)
    return np.resize(X, 1024)


def launch(run, type_):
    X, all_bytes = inputs(type_), np.arange(256, dtype=np.uint8)
    code = CODE.format(type_, type_.upper())
    outputs = np.zeros((1024, 4), np.uint8), np.ones(256, "f4"), np.ones(256, "f4")
    names = ["X", "bytes", "back", "other", "all", "same"]
    return X, run(code, dict(zip(names, [X, *outputs, all_bytes, all_bytes * 0], strict=True)))


def check(type_, X, out):
    np.testing.assert_array_equal(out["bytes"][:, 0], nearest(X, type_, True))
    with np.errstate(over="ignore"):
        half = X.astype(np.float16).astype(np.float32)
    np.testing.assert_array_equal(out["bytes"][:, 1], nearest(half, type_, True))
    np.testing.assert_array_equal(out["bytes"][:, 2], nearest(X, type_, False))
    np.testing.assert_array_equal(out["bytes"][:, 3], out["bytes"][:, 0])
    np.testing.assert_array_equal(out["back"], values(type_))
    largest = np.float32(TYPES[type_][2])
    np.testing.assert_array_equal(out["other"], values(type_).clip(-largest, largest))
    np.testing.assert_array_equal(out["same"], np.arange(256))


@pytest.mark.parametrize("type_", TYPES)
def test_conversions_are_exact(type_):
    X, out = launch(lambda code, arrays: {**arrays, **emulate(code, 4, 256, **arrays)}, type_)
    check(type_, X, out)


@pytest.mark.gpu
@pytest.mark.parametrize("type_", TYPES)
def test_a_gpu_finds_the_same(type_):
    check(type_, *launch(lambda code, arrays: run_on_gpu(code, warps=8, grid=4, **arrays), type_))


@pytest.mark.parametrize("type_", TYPES)
def test_the_source_is_cuda(type_, monkeypatch):
    assert compiles_for_a_gpu(CODE.format(type_, type_.upper()), monkeypatch)


def test_copies_are_checked():
    code = "#include <cuda_fp8.h>\n__global__ void k(__nv_fp8_e4m3 *X) { X[threadIdx.x] = X[1]; }"
    with pytest.raises(KernelError, match="a race"):
        emulate(code, 1, 32, np.zeros(32, np.uint8))
