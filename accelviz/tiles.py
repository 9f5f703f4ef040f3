"""Tiles: small dense matrices, zeros included, into which a kernel packs a sparse matrix.

Tensor cores multiply dense tiles. For a plan of such a kernel, `Tiles` lists the nonzeros of each
tile, in addition to the workload table (`accelviz.workload`), which lists those of each warp.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from accelviz.arrays import Ints, Longs
from accelviz.errors import PartitionError
from accelviz.immutable import Immutable
from accelviz.workload import spread


@dataclass(frozen=True, eq=False)
class Tiles(Immutable):
    """Tiles of one size. A tile has consecutive rows of the matrix and any of its columns.

    Attributes
    ----------
    rows, columns : int
        Size of a tile.
    block : array of int64, shape (tiles,)
        Thread block that computes each tile.
    first_row : array of int32, shape (tiles,)
        Matrix row of each tile's first row.
    column_indices : array of int32, shape (tiles, columns)
        Matrix column of each tile column; -1 for padding.
    pointers : array of int64, shape (tiles + 1,)
        Start of each tile's nonzeros in `nonzeros`.
    nonzeros : array of int64, shape (nnz,)
        Positions of the nonzeros in the matrix, tile by tile, ascending within a tile.
    places : array of int32, shape (nnz,)
        Element index of each entry of `nonzeros` in its tile: row times `columns` plus column.
    """

    rows: int
    columns: int
    block: Longs
    first_row: Ints
    column_indices: Ints
    pointers: Longs
    nonzeros: Longs
    places: Ints

    def __len__(self) -> int:
        return self.block.size

    def __repr__(self) -> str:
        return f"{len(self):,} Tiles of {self.rows} x {self.columns}, {self.fill:.1%} nonzero"

    @property
    def counts(self) -> Longs:
        """Number of nonzeros of each tile, int64, shape (tiles,)."""
        return np.diff(self.pointers)

    @property
    def fill(self) -> float:
        """Share of nonzeros among the elements of all tiles, 0 to 1; 0 if there is no tile."""
        return self.nonzeros.size / (len(self) * self.rows * self.columns) if len(self) else 0.0

    def dense(self, tile: int, values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return one tile as a dense matrix, float32, shape (rows, columns).

        Parameters
        ----------
        tile : int
            Index of the tile.
        values : array of float32, shape (nnz,)
            Values of the matrix's nonzeros.
        """
        nonzeros = slice(self.pointers[tile], self.pointers[tile + 1])
        elements = np.zeros(self.rows * self.columns, np.float32)
        elements[self.places[nonzeros]] = values[self.nonzeros[nonzeros]]
        return elements.reshape(self.rows, self.columns)

    def check(self, row_pointers: Longs, columns: Ints) -> None:
        """Check that every nonzero of a CSR matrix is in exactly one tile, at its row and column.

        Raises
        ------
        PartitionError
            With the first wrong nonzero.
        """
        times = np.bincount(self.nonzeros, minlength=columns.size)
        if times.size != columns.size or np.any(times != 1):
            nonzero = int(np.argmax(times != 1)) if times.size == columns.size else columns.size
            problem = f"nonzero {nonzero} lies in {times[nonzero]} tiles"
            raise PartitionError("tiles", problem, "every nonzero in one")
        tile, _ = spread(self.counts)
        tile_row, tile_column = np.divmod(self.places, self.columns)
        matrix_row = np.searchsorted(row_pointers, self.nonzeros, side="right") - 1
        correct = (self.first_row[tile] + tile_row == matrix_row) & (tile_row < self.rows)
        correct &= self.column_indices[tile, tile_column] == columns[self.nonzeros]
        if not correct.all():
            problem = f"nonzero {self.nonzeros[np.argmin(correct)]} is in a wrong place"
            raise PartitionError("tiles", problem, "its row and column")
