"""Test of the locality of a vertex order: whether neighbors have numbers near each other."""

from __future__ import annotations

from typing import Any

import numpy as np

from accelviz.graph import Pattern

#: A nonzero is near the diagonal if |row / n_rows - column / n_columns| is below this. In a random
#: order, 1/32 of the nonzeros are.
NEAR = 1 / 64
#: An order is local if at least this share of the nonzeros are near the diagonal.
LOCAL_SHARE = 0.25
_SAMPLE_SIZE = 1 << 16


def is_local(pattern: Pattern, xp: Any = np) -> bool:
    """Return whether the order is local, from a sample of up to 65,536 evenly spaced nonzeros.

    `xp` is CuPy if the pattern's arrays are CuPy arrays.
    """
    if pattern.nnz == 0:
        return False
    sample_size = min(_SAMPLE_SIZE, pattern.nnz)
    sample = xp.asarray(np.linspace(0, pattern.nnz - 1, sample_size).astype(np.int64))
    rows = xp.searchsorted(pattern.row_pointers, sample, side="right") - 1
    columns = pattern.column_indices[sample]
    distance = xp.abs(rows / pattern.n_rows - columns / pattern.shape[1])
    return bool(int(xp.count_nonzero(distance < NEAR)) >= LOCAL_SHARE * sample_size)
