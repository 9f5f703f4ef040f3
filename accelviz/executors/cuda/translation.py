"""Sparse graph translation on the GPU: what `tensor_cores.windows.row_windows` makes on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from accelviz.errors import checked_integer
from accelviz.executors.cuda.state import import_cupy
from accelviz.graph import Pattern
from accelviz.tensor_cores.windows import MOST_ROWS, Windows


def translate_windows(pattern: Pattern, rows: int) -> Windows:
    """Condense the columns of every window of rows: one sort of all nonzeros by window and column.

    Parameters
    ----------
    pattern : Pattern
        Of CuPy arrays, and of a valid matrix; the content is not checked.
    rows : int
        Of a window, 1 to 65,536.

    Returns
    -------
    Windows
        Of CuPy arrays, bit for bit those of `row_windows`.

    Notes
    -----
    Beside the result it takes about 40 bytes a nonzero. It waits for the number of columns.
    """
    cupy = import_cupy()
    rows = checked_integer("rows", rows, MOST_ROWS)
    row_pointers, columns = pattern.row_pointers, pattern.column_indices
    n_columns = pattern.shape[1]
    starts = cupy.append(row_pointers[:-1:rows], row_pointers[-1:])
    window = cupy.searchsorted(starts, cupy.arange(columns.size), side="right") - 1
    found: Any = cupy.unique(window * n_columns + columns, return_inverse=True)
    first = cupy.arange(starts.size, dtype=np.int64) * n_columns
    pointers = cupy.searchsorted(found[0], first)
    senders = (found[0] % max(n_columns, 1)).astype(np.int32)
    return Windows(rows, pointers, senders, (found[1] - pointers[window]).astype(np.int32))
