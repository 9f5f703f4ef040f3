"""Pattern maps: the nonzeros of a matrix, counted in a coarse grid of cells for a picture."""

from __future__ import annotations

import numpy as np

from accelviz.arrays import Longs
from accelviz.errors import ArgumentError, checked_integer
from accelviz.graph import Graph


def pattern_map(graph: Graph, *, cells: int = 200) -> Longs:
    """Count the nonzeros of `graph` in a grid of at most `cells` x `cells` cells.

    Returns
    -------
    array of int64, shape (min(cells, n_rows), min(cells, n_columns))
        Number of nonzeros in each cell. Cell i of k begins at row `ceil(i * n_rows / k)`.

    Raises
    ------
    ArgumentError
        If `cells` is below 1.
    """
    checked_integer("cells", cells, error=ArgumentError)
    n_rows, n_columns = graph.shape
    down, across = min(cells, n_rows), min(cells, n_columns)
    cell_row = np.arange(n_rows, dtype=np.int64) * down // max(n_rows, 1)
    cell_column = graph.column_indices.astype(np.int64) * across // max(n_columns, 1)
    cell = np.repeat(cell_row, graph.degrees) * across + cell_column
    return np.bincount(cell, minlength=down * across).reshape(down, across)
