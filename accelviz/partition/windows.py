"""Sparse graph translation: windows of rows, each with its distinct columns moved together.

Algorithm 4 of TC-GNN (section 5.3.1 of the thesis). Nothing is renumbered: a window lists the
columns that its rows use, and each nonzero knows which of them is its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

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
        Where the columns of each window begin in `senders`.
    senders : array of int32, shape (pointers[-1],)
        The distinct columns of each window, ascending: the rows of X that it reads.
    edge_to_column : array of int32, shape (nnz,)
        For each nonzero, in the matrix's order, the place of its column among those of its window.
    """

    rows: int
    pointers: Longs
    senders: Ints
    edge_to_column: Ints

    def __len__(self) -> int:
        return self.pointers.size - 1

    @property
    def reuse(self) -> float:
        """Nonzeros over distinct columns, the mean number of rows that share one; 1 if empty."""
        return self.edge_to_column.size / self.senders.size if self.senders.size else 1.0

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
    arrays = _translated(graph.row_pointers, graph.column_indices, graph.shape[1], rows)
    for array in arrays:
        array.setflags(write=False)
    return Windows(rows, *arrays)


def untranslated_blocks(graph: Any, rows: int, width: int) -> Longs:
    """Count the tiles with a nonzero of each window as the matrix stands, none condensed.

    Parameters
    ----------
    graph, rows
        As of `row_windows`.
    width : int
        Columns of a tile, which begin at a multiple of it.

    Returns
    -------
    array of int64, shape (windows,)
        Figure 5.4 sets these beside `Windows.blocks`.

    Raises
    ------
    GraphError, PartitionError
        As `row_windows` and `Windows.blocks` do.
    """
    graph = load_pattern(graph)
    rows, width = checked_integer("rows", rows, MOST_ROWS), checked_integer("width", width)
    columns = graph.column_indices // np.int32(width)
    tiles = -(-graph.shape[1] // width)
    return np.diff(_translated(graph.row_pointers, columns, tiles, rows)[0])


def window_tiles(graph: Graph | Pattern, windows: Windows, width: int) -> Tiles:
    """Cut each window into tiles of `width` of its columns; a block computes those of a window.

    Parameters
    ----------
    graph : Graph or Pattern
        Whose windows these are.
    windows : Windows
    width : int
        Columns of a tile.
    """
    blocks = windows.blocks(width)
    window, offset = spread(blocks)
    first = windows.pointers[window] + offset * width
    index = first[:, None] + np.arange(width)
    inside = index < windows.pointers[window + 1][:, None]
    index[~inside] = 0
    senders = windows.senders[index] if windows.senders.size else index.astype(np.int32)
    senders[~inside] = -1
    first_tile = np.cumsum(blocks) - blocks
    nonzero_arrays = _dealt(
        graph.row_pointers, windows.edge_to_column, first_tile, windows.rows, width, window.size
    )
    first_row = (window * windows.rows).astype(np.int32)
    arrays = window, first_row, senders, *nonzero_arrays
    for array in arrays:
        array.setflags(write=False)
    return Tiles(windows.rows, width, *arrays)


@numba.njit(cache=True, nogil=True)
def _dealt(
    row_pointers: Longs, edge_to_column: Ints, first_tile: Longs, rows: int, width: int, tiles: int
) -> tuple[Longs, Longs, Ints]:
    pointers = np.zeros(tiles + 1, np.int64)
    n_rows = row_pointers.size - 1
    for row in range(n_rows):
        for k in range(row_pointers[row], row_pointers[row + 1]):
            pointers[first_tile[row // rows] + edge_to_column[k] // width + 1] += 1
    for tile in range(tiles):
        pointers[tile + 1] += pointers[tile]
    free = pointers[:-1].copy()
    nonzeros = np.empty(edge_to_column.size, np.int64)
    places = np.empty(edge_to_column.size, np.int32)
    for row in range(n_rows):
        for k in range(row_pointers[row], row_pointers[row + 1]):
            tile = first_tile[row // rows] + edge_to_column[k] // width
            nonzeros[free[tile]] = k
            places[free[tile]] = row % rows * width + edge_to_column[k] % width
            free[tile] += 1
    return pointers, nonzeros, places


@numba.njit(cache=True, nogil=True)
def _translated(
    row_pointers: Longs, columns: Ints, n_columns: int, rows: int
) -> tuple[Longs, Ints, Ints]:
    n_rows = row_pointers.size - 1
    windows = -(-n_rows // rows)
    pointers = np.zeros(windows + 1, np.int64)
    # Neither is cleared between windows: a column is new to a window that is not its last one.
    last_window = np.full(n_columns, -1, np.int32)
    position = np.empty(n_columns, np.int32)
    senders = np.empty(columns.size, np.int32)
    edge_to_column = np.empty(columns.size, np.int32)
    end = 0
    for window in range(windows):
        start = row_pointers[window * rows]
        stop = row_pointers[min((window + 1) * rows, n_rows)]
        first = end
        for k in range(start, stop):
            column = columns[k]
            if last_window[column] != window:
                last_window[column] = window
                senders[end] = column
                end += 1
        distinct = senders[first:end]
        distinct.sort()
        for i in range(distinct.size):
            position[distinct[i]] = i
        for k in range(start, stop):
            edge_to_column[k] = position[columns[k]]
        pointers[window + 1] = end
    return pointers, senders[:end].copy(), edge_to_column
