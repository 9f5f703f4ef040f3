"""Which warp multiplies which nonzeros of a dense product's left operand, and in which tiles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from accelviz.arrays import Longs
from accelviz.graph import Pattern
from accelviz.tiles import Tiles
from accelviz.workload import Workload, spread


@dataclass(frozen=True, eq=False)
class Shares:
    """How rows, and bits of a row, are dealt out to warps.

    Attributes
    ----------
    rows : int
        Rows of a block's result.
    warp_rows : int
        Rows that a warp multiplies.
    chunk, warps : int
        Where warps share a row's sum, each has every `warps`-th run of `chunk` bits; else 0, 1.
    blocks : array of int64, shape (row tiles,)
        The block that has each tile of `rows` rows; of several tiles of columns, the first.
    """

    rows: int
    warp_rows: int
    blocks: Longs
    chunk: int = 0
    warps: int = 1

    def workload(self, pattern: Pattern, start: int, stop: int) -> Workload:
        """Return the workload of blocks `start` to `stop` - 1, a record for each run of bits."""
        tiles = np.flatnonzero((self.blocks >= start) & (self.blocks < stop))
        tiles = tiles[np.argsort(self.blocks[tiles], kind="stable")]
        rows = (tiles[:, None] * self.rows + np.arange(self.rows)).ravel()
        rows = rows[rows < pattern.n_rows]
        block, warp = self.blocks[rows // self.rows], rows % self.rows // self.warp_rows
        first, counts = pattern.row_pointers[rows], pattern.degrees[rows].astype(np.int64)
        if not self.chunk:
            return Workload(block, warp, rows, first, counts)
        owner, offset = spread(counts)
        nonzeros = first[owner] + offset
        chunks = pattern.column_indices[nonzeros] // self.chunk
        begins = np.flatnonzero(np.diff(owner, prepend=-1) | np.diff(chunks, prepend=-1))
        lengths = np.diff(begins, append=owner.size)
        row, warp = owner[begins], chunks[begins] % self.warps
        return Workload(block[row], warp, rows[row], nonzeros[begins], lengths)

    def tiles(self, pattern: Pattern, bits: int) -> Tiles:
        """Return the tiles of `rows` rows and so many bits that hold a nonzero."""
        across = -(-pattern.shape[1] // bits)
        rows = np.repeat(np.arange(pattern.n_rows), pattern.degrees)
        key = rows // self.rows * across + pattern.column_indices // bits
        order = np.argsort(key, kind="stable")
        numbers, counts = np.unique(key, return_counts=True)
        down, along = np.divmod(numbers, max(across, 1))
        columns = along[:, None] * bits + np.arange(bits)
        within = rows[order] % self.rows * bits + pattern.column_indices[order] % bits
        return Tiles(
            self.rows,
            bits,
            self.blocks[down],
            (down * self.rows).astype(np.int32),
            np.where(columns < pattern.shape[1], columns, -1).astype(np.int32),
            np.append(0, np.cumsum(counts)),
            order,
            within.astype(np.int32),
        )
