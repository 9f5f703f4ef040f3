"""The last step of every made-up graph: columns in order, each once in a row."""

from __future__ import annotations

import numba
import numpy as np

from accelviz.arrays import Ints, Longs
from accelviz.graph import Graph


def finished(row_pointers: Longs, column_indices: Ints, name: str, source: str, kind: str) -> Graph:
    """Sort each row, drop what repeats, and make a square Graph with all weights 1.

    Writes over both arrays.
    """
    n_rows = row_pointers.size - 1
    distinct = np.concatenate([[0], np.cumsum(_sort_and_count(row_pointers, column_indices))])
    nnz = int(distinct[-1])
    if nnz < column_indices.size:
        _close_up(row_pointers, distinct, column_indices)
    ones = np.ones(nnz, dtype=np.float32)
    return Graph(distinct, column_indices[:nnz], ones, (n_rows, n_rows), name, source, kind)


@numba.njit(cache=True, nogil=True, parallel=True)
def _sort_and_count(row_pointers: Longs, column_indices: Ints) -> Longs:
    """Sort each row, bring its distinct columns to its front, and count them."""
    counts = np.zeros(row_pointers.size - 1, dtype=np.int64)
    for row in numba.prange(row_pointers.size - 1):
        columns = column_indices[row_pointers[row] : row_pointers[row + 1]]
        columns.sort()
        kept = 0
        for k in range(columns.size):
            if k == 0 or columns[k] != columns[kept - 1]:
                columns[kept] = columns[k]
                kept += 1
        counts[row] = kept
    return counts


@numba.njit(cache=True, nogil=True)
def _close_up(row_pointers: Longs, distinct: Longs, column_indices: Ints) -> None:
    for row in range(distinct.size - 1):
        for k in range(distinct[row + 1] - distinct[row]):
            column_indices[distinct[row] + k] = column_indices[row_pointers[row] + k]
