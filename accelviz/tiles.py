"""Tiles: the small dense matrices that cover a sparse one, where a kernel multiplies such.

They stand beside the workload table. That says which warp handles which nonzeros; this says which
nonzeros lie in which tile, and where the rest of it is filled with zeros.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from accelviz.arrays import Ints, Longs
from accelviz.errors import PartitionError
from accelviz.workload import spread


@dataclass(frozen=True, eq=False)
class Tiles:
    """Tiles of one size, window of rows by window.

    Attributes
    ----------
    rows, columns : int
        Size of a tile.
    block : array of int64, shape (tiles,)
        The block that computes each tile.
    first_row : array of int32, shape (tiles,)
        The matrix's row that is a tile's first; the others follow it.
    column_indices : array of int32, shape (tiles, columns)
        The matrix's column that each column of a tile stands for; -1 where it stands for none.
    pointers : array of int64, shape (tiles + 1,)
        Where the nonzeros of each tile begin in `nonzeros`.
    nonzeros : array of int64, shape (nnz,)
        Positions of the nonzeros in the matrix, tile by tile and ascending in each.
    places : array of int32, shape (nnz,)
        Where each of them lies in its tile: row times `columns` plus column.
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
        """Nonzeros of each tile."""
        return np.diff(self.pointers)

    @property
    def fill(self) -> float:
        """Share of all elements that are nonzeros; 0 without a tile."""
        return self.nonzeros.size / (len(self) * self.rows * self.columns) if len(self) else 0.0

    def dense(self, tile: int, values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return a tile with its zeros, float32, shape (rows, columns).

        Parameters
        ----------
        tile : int
        values : array of float32, shape (nnz,)
            Of the matrix's nonzeros.
        """
        nonzeros = slice(self.pointers[tile], self.pointers[tile + 1])
        elements = np.zeros(self.rows * self.columns, np.float32)
        elements[self.places[nonzeros]] = values[self.nonzeros[nonzeros]]
        return elements.reshape(self.rows, self.columns)

    def check(self, row_pointers: Longs, columns: Ints) -> None:
        """Refuse tiles that do not hold every nonzero of a matrix once, in its own place.

        Raises
        ------
        PartitionError
            Naming the first nonzero at fault.
        """
        times = np.bincount(self.nonzeros, minlength=columns.size)
        if times.size != columns.size or np.any(times != 1):
            wrong = int(np.argmax(times != 1)) if times.size == columns.size else columns.size
            problem = f"nonzero {wrong} lies in {times[wrong]} tiles"
            raise PartitionError("tiles", problem, "every nonzero in one")
        tile, _ = spread(self.counts)
        row, column = np.divmod(self.places, self.columns)
        own_row = np.searchsorted(row_pointers, self.nonzeros, side="right") - 1
        fits = (self.first_row[tile] + row == own_row) & (row < self.rows)
        fits &= self.column_indices[tile, column] == columns[self.nonzeros]
        if not fits.all():
            wrong = int(self.nonzeros[np.argmin(fits)])
            raise PartitionError(
                "tiles", f"nonzero {wrong} is in a wrong place", "its row and column"
            )
