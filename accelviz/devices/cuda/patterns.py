"""Patterns of sparse matrices with arrays on the GPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from accelviz.devices.cuda.arrays import on_device
from accelviz.devices.cuda.state import import_cupy
from accelviz.devices.operands import is_device_array
from accelviz.graph import Graph, Pattern, checked_shape


def device_pattern(matrix: Any) -> tuple[Pattern, Any] | None:
    """Return (pattern, values), on the GPU, of a matrix of `cupyx.scipy.sparse`.

    The sizes are checked, the content is not. Returns None for any other object.
    """
    if not (hasattr(matrix, "tocsr") and is_device_array(getattr(matrix, "data", None))):
        return None
    csr = matrix.tocsr()
    pointers, columns = csr.indptr.astype(np.int64), csr.indices.astype(np.int32, copy=False)
    pattern = Pattern(pointers, columns, checked_shape(csr.shape))
    return pattern, csr.data.astype(np.float32, copy=False)


def uploaded(graph: Graph) -> Pattern:
    """Return a graph's pattern on the GPU; `on_device` caches the copies of its arrays."""
    pointers, columns = on_device(graph.row_pointers), on_device(graph.column_indices)
    return Pattern(pointers, columns, graph.shape, graph.name)


def transposed(pattern: Pattern) -> tuple[Pattern, Any]:
    """Transpose a pattern on the GPU.

    Nonzeros are sorted by their column, stably; the row of each is found by binary search in the
    row pointers, in O(nnz log n_rows).

    Returns
    -------
    Pattern
        The transposed pattern, as from `Graph.transposed`.
    CuPy array `order` of int64, shape (nnz,)
        Nonzero `k` of the result is nonzero `order[k]` of `pattern`.
    """
    cupy = import_cupy()
    n_rows, n_columns = pattern.shape
    order = cupy.argsort(pattern.column_indices, kind="stable")
    counts = cupy.bincount(pattern.column_indices, minlength=n_columns)[:n_columns]
    pointers = cupy.zeros(n_columns + 1, np.int64)
    cupy.cumsum(counts, out=pointers[1:])
    rows = cupy.searchsorted(pattern.row_pointers, order, side="right") - 1
    name = f"{pattern.name} transposed"
    return Pattern(pointers, rows.astype(np.int32), (n_columns, n_rows), name), order
