"""Whether a vertex order is local: whether neighbors stand near each other."""

from __future__ import annotations

from typing import Any

import numpy as np

from accelviz.graph import Pattern

#: A vertex order is local if this share of the nonzeros lies this near the diagonal, by the share
#: of the columns between them. In a random order a thirty-second would.
NEAR, LOCAL_SHARE = 1 / 64, 0.25
_SAMPLE = 1 << 16


def is_local(pattern: Pattern, xp: Any = np) -> bool:
    """Say whether many of up to 65,536 evenly spaced nonzeros lie near the diagonal.

    `xp` is CuPy where the pattern's arrays are CuPy's.
    """
    if pattern.nnz == 0:
        return False
    sample = np.linspace(0, pattern.nnz - 1, min(_SAMPLE, pattern.nnz)).astype(np.int64)
    places = xp.asarray(sample)
    rows = xp.searchsorted(pattern.row_pointers, places, side="right") - 1
    columns = pattern.column_indices[places]
    apart = xp.abs(rows / pattern.n_rows - columns / pattern.shape[1])
    return bool(int(xp.count_nonzero(apart < NEAR)) >= LOCAL_SHARE * sample.size)
