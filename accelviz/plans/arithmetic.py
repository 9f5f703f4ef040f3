"""Arithmetic of products in a kernel: types, error bounds, and rounding of the inputs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

#: Largest relative error of rounding a normal float32 (from 2^-126 on) to TF32, which has 11
#: significant bits.
TF32_UNIT = 2.0**-11
#: Largest relative error of a product of two inputs, in addition to that of float32. The error of
#: a sum of products is at most this factor times the sum of their magnitudes.
ROUNDING = {
    "float32": 0.0,
    "tf32": (1 + TF32_UNIT) ** 2 - 1,
    # 11 significant bits as in TF32, for inputs from 2^-14 to below 2^16.
    "float16": (1 + TF32_UNIT) ** 2 - 1,
    # Each input is the sum of two TF32 numbers with a relative error of 2^-23. The product of the
    # low parts, each at most 2^-11 of its input, is omitted.
    "3xtf32": 2.0**-22 + 2.0**-22,
}
#: Tensor cores truncate. Over n products the error is at most 1.5 n units of 2^-23 times the sum of
#: magnitudes: a quarter of a unit per product and per instruction for the alignment of terms, and
#: one unit per instruction for the final truncation. float32's bound is n units.
CUT_OFF = 1.5
#: Number of TF32 products that compute one product of inputs; 0 for products in float16.
TERMS = {"3xtf32": 3, "tf32": 1, "float16": 0}
#: Number of low bits of a float32 that TF32 does not have.
DROPPED_BITS = 13


def to_tf32(x: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Round to TF32, with halfway cases away from zero, bit for bit as `cvt.rna.tf32.f32`.

    Parameters
    ----------
    x : array of float32

    Returns
    -------
    array of float32, same shape
        The lower 13 bits are zero, also those of a NaN. Infinities are unchanged.
    """
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    half = np.where(np.isfinite(x), np.uint32(1 << (DROPPED_BITS - 1)), np.uint32(0))
    mask = np.uint32((1 << 32) - (1 << DROPPED_BITS))
    return ((bits + half) & mask).astype(np.uint32).view(np.float32)


def to_f16(x: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Round to float16, halfway cases to even; numbers out of its range become infinite."""
    with np.errstate(over="ignore"):
        return x.astype(np.float16).astype(np.float32)
