"""Storage of features in 16 bits: conversions that work on NumPy and CuPy arrays.

`ml_dtypes` has a bfloat16 for NumPy only.
"""

from __future__ import annotations

from typing import Any

import numpy as np

#: Bytes of an element of a gathered input, by storage type.
STORAGE_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}
#: Number of low bits of a float32 that a bfloat16 does not have.
_DROPPED_BITS = 16


def stored(X: Any, storage: str, xp: Any = np) -> Any:
    """Round float32 features to a storage type.

    Parameters
    ----------
    X : array of float32, shape (n_columns, n_cols)
    storage : {"float32", "float16", "bfloat16"}
        As in `Plan.storage`.
    xp : module
        NumPy or CuPy, the library of `X`.

    Returns
    -------
    array, shape (n_columns, n_cols)
        `X` itself for float32; else the bits as uint16, rounded to nearest with ties to even.
        Numbers out of float16's range become infinite.
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
