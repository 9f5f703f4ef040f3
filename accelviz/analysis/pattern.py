"""Where the nonzeros of a matrix lie, counted in few enough cells to draw."""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
import numpy.typing as npt

from accelviz.arrays import Longs
from accelviz.errors import ArgumentError, checked_integer
from accelviz.graph import Graph


@dataclass(frozen=True, eq=False)
class PatternMap:
    """Nonzeros in each cell of a coarse grid over a matrix.

    Attributes
    ----------
    counts : array of int64, shape (rows of cells, columns of cells)
        Nonzeros in each cell. They add up to the matrix's.
    shape : tuple of int
        Rows and columns of the matrix. Cell i begins at row `ceil(i * rows / cells)`.
    """

    counts: Longs
    shape: tuple[int, int]


def pattern_map(graph: Graph, *, cells: int = 200) -> PatternMap:
    """Count the nonzeros of `graph` in at most `cells` x `cells` cells, exactly.

    Raises
    ------
    ArgumentError
        If `cells` is below 1.
    """
    checked_integer("cells", cells, error=ArgumentError)
    counts = np.zeros((min(cells, graph.shape[0]), min(cells, graph.shape[1])), dtype=np.int64)
    _count_cells(graph.row_pointers, graph.column_indices, graph.shape[1], counts)
    return PatternMap(counts, graph.shape)


@numba.njit(cache=True, nogil=True)
def _count_cells(
    row_pointers: Longs, column_indices: npt.NDArray[np.int32], n_cols: int, counts: Longs
) -> None:
    n_rows = row_pointers.size - 1
    for row in range(n_rows):
        line = counts[row * counts.shape[0] // n_rows]
        for k in range(row_pointers[row], row_pointers[row + 1]):
            line[int(column_indices[k]) * counts.shape[1] // n_cols] += 1
