"""What products are computed in, how far that may move a result, and how inputs are rounded."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

#: The largest error of rounding to TF32, over the number: half of the last of its 11 significant
#: bits. Smaller numbers than 2^-126 aside.
TF32_UNIT = 2.0**-11
#: The largest relative error of a product of two inputs, beyond that of float32. An entry that sums
#: such products is off by at most so much of the sum of their magnitudes.
ROUNDING = {
    "float32": 0.0,
    "tf32": (1 + TF32_UNIT) ** 2 - 1,
    # As many bits. Inputs below 2^-14 lose more than that, and from 2^16 on they are infinite.
    "float16": (1 + TF32_UNIT) ** 2 - 1,
    # Each input is the sum of two TF32 numbers up to 2^-23 of it; the product of their low parts,
    # each up to 2^-11 of its input, is left out.
    "3xtf32": 2.0**-22 + 2.0**-22,
}
#: Tensor cores truncate. Over n products the error is at most 1.5 n units of 2^-23 times the sum of
#: magnitudes: a quarter of a unit for each product and for each instruction where terms are
#: aligned, and one for each instruction at the end. float32's bound is n units.
CUT_OFF = 1.5
#: Products of TF32 that one product of inputs takes; of float16 none.
TERMS = {"3xtf32": 3, "tf32": 1, "float16": 0}
#: Bits of a float32 that TF32 lacks.
DROPPED_BITS = 13


def to_tf32(x: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Round to TF32 bit for bit as `cvt.rna.tf32.f32` does: halfway cases go away from zero.

    Parameters
    ----------
    x : array of float32

    Returns
    -------
    array of float32, same shape
        With the lower 13 bits zero. Infinities stay, and a NaN loses its lower bits.
    """
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    half = np.where(np.isfinite(x), np.uint32(1 << (DROPPED_BITS - 1)), np.uint32(0))
    mask = np.uint32((1 << 32) - (1 << DROPPED_BITS))
    return ((bits + half) & mask).astype(np.uint32).view(np.float32)


def to_f16(x: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Round to float16, halfway cases to even; what it cannot hold becomes infinite."""
    with np.errstate(over="ignore"):
        return x.astype(np.float16).astype(np.float32)
