"""Where the nonzeros of a matrix lie, counted in few enough cells to draw."""

from __future__ import annotations

import numpy as np

from accelviz.arrays import Longs
from accelviz.errors import ArgumentError, checked_integer
from accelviz.graph import Graph


def pattern_map(graph: Graph, *, cells: int = 200) -> Longs:
    """Count the nonzeros of `graph` in at most `cells` x `cells` cells, exactly.

    Returns
    -------
    array of int64, shape (rows of cells, columns of cells)
        Nonzeros in each cell. Cell i begins at row `ceil(i * rows / cells)`.

    Raises
    ------
    ArgumentError
        If `cells` is below 1.
    """
    checked_integer("cells", cells, error=ArgumentError)
    across, down = (min(cells, side) for side in graph.shape[::-1])
    rows = np.arange(graph.n_rows, dtype=np.int64) * down // max(graph.n_rows, 1)
    columns = graph.column_indices.astype(np.int64) * across // max(graph.shape[1], 1)
    flat = np.repeat(rows, graph.degrees) * across + columns
    return np.bincount(flat, minlength=down * across).reshape(down, across)
