"""Features in 16 bits: rounded once, before any kernel reads them.

`ml_dtypes` has a bfloat16 for NumPy alone; these lines serve NumPy and CuPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

#: What an element of a gathered input may be kept in, and its bytes.
STORAGE_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}
#: Bits of a bfloat16 below those of a float32.
_DROPPED_BITS = 16


def stored(X: Any, storage: str, xp: Any = np) -> Any:
    """Return what a kernel reads, of float32 features.

    Parameters
    ----------
    X : array of float32, shape (n_senders, n_cols)
    storage : {"float32", "float16", "bfloat16"}
        As `Plan.storage`.
    xp : module
        NumPy or CuPy, whichever `X` is an array of.

    Returns
    -------
    array, shape (n_senders, n_cols)
        `X` itself, or the bits as uint16: rounded to the nearest, halfway cases to even. What
        float16 cannot hold becomes infinite.
    """
    if storage == "float32":
        return X
    if storage == "float16":
        with np.errstate(over="ignore"):
            return X.astype(np.float16).view(np.uint16)
    bits = X.view(np.uint32)
    to_even = (bits >> _DROPPED_BITS) & 1
    rounded = (bits + (to_even + 0x7FFF).astype(np.uint32)) >> _DROPPED_BITS
    quiet = (bits >> _DROPPED_BITS) | 0x40  # a NaN must not be rounded to infinity
    return xp.where(xp.isnan(X), quiet, rounded).astype(np.uint16)


def restored(bits: Any, storage: str) -> Any:
    """Return the float32 values of stored features; the inverse of `stored`."""
    if storage == "float32":
        return bits
    if storage == "float16":
        return bits.view(np.float16).astype(np.float32)
    return (bits.astype(np.uint32) << _DROPPED_BITS).view(np.float32)
