"""Sparse graph translation on the GPU: what `partition.windows.row_windows` makes on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from accelviz.devices.cuda.compiler import compiled
from accelviz.devices.cuda.state import import_cupy
from accelviz.errors import checked_integer
from accelviz.graph import Pattern
from accelviz.partition.windows import MOST_ROWS, Windows
from accelviz.plans import KernelSpec

#: Threads of a block, and the nonzeros that it translates.
BLOCK_THREADS, CHUNK = 256, 1024
#: The kernels and their parameters, in order.
PARAMETERS = {
    "place_columns": ("row_pointers", "columns", "places", "marks", "rows", "n_rows", "nnz"),
    "condense_columns": (
        *("row_pointers", "columns", "distinct_before", "edge_to_column", "senders"),
        *("rows", "n_rows", "nnz"),
    ),
}


def translate_windows(pattern: Pattern, rows: int) -> Windows:
    """Condense the columns of every window of rows: each nonzero finds its place by searches.

    Parameters
    ----------
    pattern : Pattern
        Of CuPy arrays, and of a valid matrix; the content is not checked.
    rows : int
        Of a window, 1 to 65,536. The time grows with them.

    Returns
    -------
    Windows
        Of CuPy arrays, bit for bit those of `row_windows`.

    Notes
    -----
    Beside the result it takes 9 bytes a nonzero. It waits for the number of columns.
    """
    cupy = import_cupy()
    rows = checked_integer("rows", rows, MOST_ROWS)
    row_pointers, columns, nnz = pattern.row_pointers, pattern.column_indices, pattern.nnz
    distinct_before = cupy.zeros(nnz + 1, np.int64)
    edge_to_column = cupy.empty(nnz, np.int32)
    senders = cupy.empty(0, np.int32)
    if nnz:
        grid, scalars = -(-nnz // CHUNK), (np.int32(rows), np.int32(pattern.n_rows), np.int64(nnz))
        marks = cupy.zeros(nnz, np.uint8)
        place_columns, condense = (compiled(spec(entry))[1] for entry in PARAMETERS)
        arguments: tuple[Any, ...] = (row_pointers, columns, edge_to_column, marks, *scalars)
        place_columns((grid,), (BLOCK_THREADS,), arguments)
        cupy.cumsum(marks, dtype=np.int64, out=distinct_before[1:])
        senders = cupy.empty(int(distinct_before[-1]), np.int32)
        arguments = (row_pointers, columns, distinct_before, edge_to_column, senders, *scalars)
        condense((grid,), (BLOCK_THREADS,), arguments)
    starts = cupy.append(row_pointers[:-1:rows], row_pointers[-1:])
    return Windows(rows, distinct_before[starts], senders, edge_to_column)


def spec(entry: str) -> KernelSpec:
    """Return the kernel `place_columns` or `condense_columns`."""
    config = {"block_threads": BLOCK_THREADS, "chunk": CHUNK}
    return KernelSpec("tensor_cores/translation.cu", entry, config, PARAMETERS[entry])
