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
    # 11 significant bits as in TF32, for inputs of magnitude 2^-14 (smaller ones are subnormal) to
    # below 65,520 (larger ones become infinite).
    "float16": (1 + TF32_UNIT) ** 2 - 1,
    # Each input is the sum of two TF32 numbers, high + low, with a relative error of 2^-23. The
    # product of the low parts, each at most 2^-11 of its input, is omitted.
    "3xtf32": 2 * 2.0**-23 + TF32_UNIT * TF32_UNIT,
}
#: Error bound of a sum on tensor cores, divided by float32's bound, which is one unit per product.
#: A unit is 2^-23 times the sum of magnitudes. An instruction adds products to an accumulator. It
#: truncates each term 25 bits below the largest (1/4 unit for each product and 1/4 for the
#: accumulator), and the sum to float32 (1 unit). With one product per instruction, the worst case,
#: the error is 1/4 + 1/4 + 1 units per product.
TRUNCATION_FACTOR = 1.5
#: Types of products on tensor cores, and the number of TF32 products that compute one product of
#: inputs. 0 selects the float16 instructions (`terms` in the kernels' Config).
TF32_PRODUCTS = {"3xtf32": 3, "tf32": 1, "float16": 0}
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
