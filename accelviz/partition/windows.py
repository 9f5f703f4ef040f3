"""Sparse graph translation: windows of consecutive rows with a list of their distinct columns.

Algorithm 4 of TC-GNN (section 5.3.1 of the thesis). Dense tiles that consist of the distinct
columns only ("condensed" columns) have far fewer zeros than tiles of the matrix itself. The rows
and columns of the graph keep their numbers.
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
from accelviz.immutable import Immutable, taken_over
from accelviz.tiles import Tiles
from accelviz.workload import spread

#: Largest number of rows per window: a row index within a window has 16 bits.
MOST_ROWS = 1 << 16


@dataclass(frozen=True, eq=False)
class Windows(Immutable):
    """The windows of a matrix.

    Attributes
    ----------
    rows : int
        Number of rows per window; the last window may have fewer.
    pointers : array of int64, shape (windows + 1,)
        Start of each window's columns in `columns`.
    columns : array of int32, shape (pointers[-1],)
        Distinct columns of each window, ascending: the rows of X that it reads.
    edge_to_column : array of int32, shape (nnz,)
        Condensed column of each nonzero: the index of its column among those of its window.
    """

    rows: int
    pointers: Longs
    columns: Ints
    edge_to_column: Ints

    def __len__(self) -> int:
        return self.pointers.size - 1

    @property
    def reuse(self) -> float:
        """Mean number of rows per window that share a distinct column; 1 without nonzeros."""
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
        """Return the share of nonzeros among the elements of all tiles of `width`, 0 to 1."""
        elements = int(self.blocks(width).sum()) * self.rows * width
        return self.edge_to_column.size / elements if elements else 0.0


def row_windows(graph: Any, rows: int) -> Windows:
    """Find the distinct columns of every window of `rows` consecutive rows.

    Parameters
    ----------
    graph : Pattern, or anything `load_graph` takes
    rows : int
        Number of rows per window, 1 to 65,536.

    Raises
    ------
    GraphError
        If `graph` is not a valid sparse matrix.
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
    # window * n_columns + column is an ascending key over all windows.
    keys = np.repeat(np.arange(n_windows), np.diff(pointers)) * n_columns + distinct.indices
    window = np.repeat(np.arange(n_windows), np.diff(starts))
    condensed = np.searchsorted(keys, window * n_columns + columns) - pointers[window]
    arrays = pointers, distinct.indices.astype(np.int32), condensed.astype(np.int32)
    return Windows(rows, *map(taken_over, arrays))


def window_tiles(graph: Graph | Pattern, windows: Windows, width: int) -> Tiles:
    """Divide each window into tiles of `width` condensed columns; block `i` computes window `i`."""
    n_tiles = windows.blocks(width)
    window, offset = spread(n_tiles)
    first_column = windows.pointers[window] + offset * width
    index = first_column[:, None] + np.arange(width)
    padding = index >= windows.pointers[window + 1][:, None]
    index[padding] = 0
    columns = windows.columns[index] if windows.columns.size else index.astype(np.int32)
    columns[padding] = -1
    # For each nonzero: its window and tile, and its row and column in the tile.
    row = np.repeat(np.arange(graph.n_rows), graph.degrees)
    nonzero_window, tile_row = np.divmod(row, windows.rows)
    tile_in_window, tile_column = np.divmod(windows.edge_to_column, width)
    tile = (np.cumsum(n_tiles) - n_tiles)[nonzero_window] + tile_in_window
    nonzeros = np.argsort(tile, kind="stable")
    places = (tile_row * width + tile_column)[nonzeros].astype(np.int32)
    pointers = np.append(0, np.cumsum(np.bincount(tile, minlength=window.size)))
    first_row = (window * windows.rows).astype(np.int32)
    arrays = window, first_row, columns, pointers, nonzeros, places
    return Tiles(windows.rows, width, *map(taken_over, arrays))
