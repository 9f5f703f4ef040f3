"""TF32, float32 with 10 bits of mantissa, and float16, as tensor cores read them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

#: Bits of a float32 that TF32 lacks.
DROPPED_BITS = 13
_KEPT = np.uint32((1 << 32) - (1 << DROPPED_BITS))
#: The largest error of rounding to TF32, over the number: half of its last bit. Smaller numbers
#: than 2^-126 aside.
TF32_UNIT = 2.0**-11


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
    return ((bits + half) & _KEPT).astype(np.uint32).view(np.float32)


def truncated_tf32(x: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Drop the bits that TF32 lacks, as tensor cores do with a float32 that nobody rounded."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return (bits & _KEPT).view(np.float32)


def to_f16(x: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Round to float16, halfway cases to even; what it cannot hold becomes infinite."""
    with np.errstate(over="ignore"):
        return x.astype(np.float16).astype(np.float32)
