"""Sparse graph translation: windows of rows, each with its distinct columns moved together.

Algorithm 4 of TC-GNN (section 5.3.1 of the thesis). Nothing is renumbered: a window lists the
columns that its rows use, and each nonzero knows which of them is its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from accelviz.arrays import Ints, Longs
from accelviz.datasets.load import load_pattern
from accelviz.errors import checked_integer
from accelviz.graph import Graph, Pattern
from accelviz.tiles import Tiles
from accelviz.workload import spread

#: Most rows of a window, so that a row's place in it takes 16 bits.
MOST_ROWS = 1 << 16


@dataclass(frozen=True, eq=False)
class Windows:
    """The windows of a matrix.

    Attributes
    ----------
    rows : int
        Rows of a window; the last may have fewer.
    pointers : array of int64, shape (windows + 1,)
        Where the columns of each window begin in `columns`.
    columns : array of int32, shape (pointers[-1],)
        The distinct columns of each window, ascending: the rows of X that it reads.
    edge_to_column : array of int32, shape (nnz,)
        For each nonzero, in the matrix's order, the place of its column among those of its window.
    """

    rows: int
    pointers: Longs
    columns: Ints
    edge_to_column: Ints

    def __len__(self) -> int:
        return self.pointers.size - 1

    @property
    def reuse(self) -> float:
        """Nonzeros over distinct columns, the mean number of rows that share one; 1 if empty."""
        return self.edge_to_column.size / self.columns.size if self.columns.size else 1.0

    def blocks(self, width: int) -> Longs:
        """Count the tiles of `width` condensed columns that cover each window.

        Returns
        -------
        array of int64, shape (windows,)
            Algorithm 4's winPartition.

        Raises
        ------
        PartitionError
            If `width` is no integer of at least 1.
        """
        width = checked_integer("width", width)
        return -(-np.diff(self.pointers) // width)

    def fill(self, width: int) -> float:
        """Return the share of the elements of all tiles that are nonzeros, 0 to 1."""
        elements = int(self.blocks(width).sum()) * self.rows * width
        return self.edge_to_column.size / elements if elements else 0.0


def row_windows(graph: Any, rows: int) -> Windows:
    """Translate a matrix: condense the columns of every window of `rows` consecutive rows.

    Parameters
    ----------
    graph : Pattern, or anything `load_graph` takes
    rows : int
        1 to 65,536.

    Raises
    ------
    GraphError
        As `load_graph` does.
    PartitionError
        If `rows` is out of range.
    """
    graph = load_pattern(graph)
    rows = checked_integer("rows", rows, MOST_ROWS)
    columns, starts = graph.column_indices, np.append(graph.row_pointers[:-1:rows], graph.nnz)
    n_windows, n_columns = starts.size - 1, graph.shape[1]
    arrays = np.ones(columns.size, np.int8), columns, starts
    distinct = sparse.csr_array(arrays, shape=(n_windows, n_columns), copy=True)
    distinct.sum_duplicates()  # sorts, too
    pointers = distinct.indptr.astype(np.int64)
    # A window times the columns plus a column ascends over all windows.
    keys = np.repeat(np.arange(n_windows), np.diff(pointers)) * n_columns + distinct.indices
    window = np.repeat(np.arange(n_windows), np.diff(starts))
    places = np.searchsorted(keys, window * n_columns + columns) - pointers[window]
    windows = Windows(rows, pointers, distinct.indices.astype(np.int32), places.astype(np.int32))
    for array in (windows.pointers, windows.columns, windows.edge_to_column):
        array.setflags(write=False)
    return windows


def window_tiles(graph: Graph | Pattern, windows: Windows, width: int) -> Tiles:
    """Divide each window into tiles of `width` of its columns; a block computes a window's."""
    blocks = windows.blocks(width)
    window, offset = spread(blocks)
    first = windows.pointers[window] + offset * width
    index = first[:, None] + np.arange(width)
    inside = index < windows.pointers[window + 1][:, None]
    index[~inside] = 0
    columns = windows.columns[index] if windows.columns.size else index.astype(np.int32)
    columns[~inside] = -1
    row = np.repeat(np.arange(graph.n_rows), graph.degrees)
    own_window, own_row = np.divmod(row, windows.rows)
    turn, column = np.divmod(windows.edge_to_column, width)
    tile = (np.cumsum(blocks) - blocks)[own_window] + turn
    nonzeros = np.argsort(tile, kind="stable")
    places = (own_row * width + column)[nonzeros].astype(np.int32)
    pointers = np.append(0, np.cumsum(np.bincount(tile, minlength=window.size)))
    first_row = (window * windows.rows).astype(np.int32)
    arrays = window, first_row, columns, pointers, nonzeros, places
    for array in arrays:
        array.setflags(write=False)
    return Tiles(windows.rows, width, *arrays)
