"""Workloads and tiles of bit products: the warps that process each nonzero of A."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from accelviz.arrays import Longs
from accelviz.graph import Pattern
from accelviz.immutable import Immutable
from accelviz.tiles import Tiles
from accelviz.workload import Workload, spread


@dataclass(frozen=True, eq=False)
class Shares(Immutable):
    """Assignment of rows of A, and of bits of a row, to blocks and warps.

    Attributes
    ----------
    rows : int
        Rows of a row tile, which one block computes.
    warp_rows : int
        Rows of a warp.
    blocks : array of int64, shape (row tiles,)
        Block of each row tile; with several column tiles, the block of the first one.
    chunk, warps : int
        If `warps` warps share the sum of a row, each has every `warps`-th run of `chunk` bits. If
        one warp has the sum, 0 and 1.
    """

    rows: int
    warp_rows: int
    blocks: Longs
    chunk: int = 0
    warps: int = 1

    def workload(self, pattern: Pattern, start: int, stop: int) -> Workload:
        """Return the workload of blocks `start` to `stop` - 1: one record per row or chunk."""
        tiles = np.flatnonzero((self.blocks >= start) & (self.blocks < stop))
        tiles = tiles[np.argsort(self.blocks[tiles], kind="stable")]
        rows = (tiles[:, None] * self.rows + np.arange(self.rows)).ravel()
        rows = rows[rows < pattern.n_rows]
        block, warp = self.blocks[rows // self.rows], rows % self.rows // self.warp_rows
        first, counts = pattern.row_pointers[rows], pattern.degrees[rows].astype(np.int64)
        if not self.chunk:
            return Workload(block, warp, rows, first, counts)
        row_index, offset = spread(counts)
        nonzeros = first[row_index] + offset
        chunks = pattern.column_indices[nonzeros] // self.chunk
        begins = np.flatnonzero(np.diff(row_index, prepend=-1) | np.diff(chunks, prepend=-1))
        lengths = np.diff(begins, append=row_index.size)
        record_row, warp = row_index[begins], chunks[begins] % self.warps
        return Workload(block[record_row], warp, rows[record_row], nonzeros[begins], lengths)

    def tiles(self, pattern: Pattern, bits: int) -> Tiles:
        """Return the tiles of `rows` rows by `bits` columns that have a nonzero."""
        n_column_tiles = -(-pattern.shape[1] // bits)
        rows = np.repeat(np.arange(pattern.n_rows), pattern.degrees)
        tile = rows // self.rows * n_column_tiles + pattern.column_indices // bits
        order = np.argsort(tile, kind="stable")
        tiles, counts = np.unique(tile, return_counts=True)
        row_tile, column_tile = np.divmod(tiles, max(n_column_tiles, 1))
        columns = column_tile[:, None] * bits + np.arange(bits)
        places = rows[order] % self.rows * bits + pattern.column_indices[order] % bits
        return Tiles(
            self.rows,
            bits,
            self.blocks[row_tile],
            (row_tile * self.rows).astype(np.int32),
            np.where(columns < pattern.shape[1], columns, -1).astype(np.int32),
            np.append(0, np.cumsum(counts)),
            order,
            places.astype(np.int32),
        )
