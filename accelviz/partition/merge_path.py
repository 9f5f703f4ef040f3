"""Merge path: every warp gets equally many rows plus nonzeros (Merrill and Garland, SC 2016).

The decision path walks the rows' ends and the nonzeros: a row's nonzeros, then its end. It has an
item for each, `n_rows + nnz` in all, and is cut into shares of equal length. Where a share begins
is found by binary search on its diagonal: the rows and nonzeros before it are as many as the items,
so the row alone says the nonzero too, and metadata is one int32 a warp for any number of nonzeros.

In all functions, `warp_items` is the items of a warp, of which the last warp has what is left, and
`first_rows` is what `merge_path_partition` returns for it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from accelviz.arrays import Ints, Longs
from accelviz.ordering import RowDegrees
from accelviz.partition.scheme import Scheme
from accelviz.partition.summary import Loads, PartitionSummary, count_distinct, slots_of
from accelviz.workload import Workload, spread


def merge_path_partition(row_pointers: Longs, warp_items: int) -> Ints:
    """Find the row at which each warp's share begins.

    Parameters
    ----------
    row_pointers : array of int64, shape (n_rows + 1,)
    warp_items : int
        Items of a warp.

    Returns
    -------
    array of int32, shape (warps + 1,)
        The rows whose ends lie in earlier shares, which is the row where the share begins; the last
        entry is the number of rows. Item `i` at row `r` has nonzero `i - r` next.
    """
    n_rows = row_pointers.size - 1
    warps = -(-(n_rows + int(row_pointers[-1])) // warp_items)
    row_ends = row_pointers[1:] + np.arange(n_rows)  # the item that ends each row
    first_rows = np.searchsorted(row_ends, np.arange(warps + 1) * warp_items).astype(np.int32)
    first_rows[-1] = n_rows
    return first_rows


def first_nonzeros(
    row_pointers: Longs, first_rows: Ints, warp_items: int, start: int, stop: int
) -> Longs:
    """Return the nonzero at which the shares of warps `start` to `stop` - 1 begin, int64.

    Entry `warps` is where the last share ends.
    """
    n_items = row_pointers.size - 1 + int(row_pointers[-1])
    items: Longs = np.minimum(np.arange(start, stop) * warp_items, n_items)
    return items - first_rows[start:stop]


def _cut_at(row_pointers: Longs, first_rows: Ints, warp_items: int) -> Longs:
    """Return the warps whose share begins inside a row, which the warp before has begun."""
    nonzeros = first_nonzeros(row_pointers, first_rows, warp_items, 0, first_rows.size)[1:-1]
    rows = first_rows[1:-1]
    inside = (row_pointers[rows] < nonzeros) & (nonzeros < row_pointers[rows + 1])
    return 1 + np.flatnonzero(inside)


def cuts_rows(row_pointers: Longs, first_rows: Ints, warp_items: int) -> bool:
    """Say whether the nonzeros of some row lie in several shares."""
    return _cut_at(row_pointers, first_rows, warp_items).size > 0


def merge_path_workload(
    row_pointers: Longs, first_rows: Ints, warp_items: int, block_warps: int, start: int, stop: int
) -> Workload:
    """Return the workload of blocks `start` to `stop` - 1.

    Returns
    -------
    Workload
        A record for each piece of a row in a share. A row's nonzeros say whose it is: the share
        that has only its end has no record, unless the row has no nonzero at all.
    """
    warps = first_rows.size - 1
    last = min(stop * block_warps, warps)
    first = min(start * block_warps, last)
    rows = first_rows[first : last + 1].astype(np.int64)
    nonzeros = first_nonzeros(row_pointers, first_rows, warp_items, first, last + 1)
    # A share can reach into the row whose end is the next share's, if there is a row left.
    owner, offset = spread(np.minimum(rows[1:] + 1, row_pointers.size - 1) - rows[:-1])
    row = rows[owner] + offset
    nz_start = np.maximum(row_pointers[row], nonzeros[owner])
    nz_count = np.minimum(row_pointers[row + 1], nonzeros[owner + 1]) - nz_start
    ends_empty = (row_pointers[row] == row_pointers[row + 1]) & (row < rows[owner + 1])
    work = (nz_count > 0) | ends_empty
    block, warp = np.divmod(first + owner[work], block_warps)
    return Workload(block, warp, row[work], nz_start[work], nz_count[work])


@dataclass(frozen=True)
class MergePath(Scheme):
    """Shares of `items` rows plus nonzeros, one a warp; atomics add the pieces of split rows."""

    kind = "merge_path"
    items: int
    warps: int

    def summary(self, rows: RowDegrees, n_cols: int) -> PartitionSummary:
        """Count the shares; see `Scheme`."""
        items, warps = self.items, self.warps
        shares = -(-(rows.histogram.n_rows + rows.histogram.nnz) // items)
        blocks = -(-shares // warps)
        size = PartitionSummary(
            blocks=blocks,
            warps=blocks * warps,
            metadata_bytes=np.dtype(np.int32).itemsize * (shares + 1),
            shared_atomics=0,
        )
        pointers = rows.row_pointers
        if pointers is None:
            return size
        first_rows = merge_path_partition(pointers, items)
        per_warp = np.diff(first_nonzeros(pointers, first_rows, items, 0, first_rows.size))
        cut = _cut_at(pointers, first_rows, items)
        row, in_block = first_rows[cut], cut % warps != 0
        return replace(
            size,
            slots=slots_of(per_warp, warps),
            loads=Loads.gathered(per_warp),
            rows_shared=count_distinct(row[in_block]),
            rows_cut=count_distinct(row[~in_block]),
            global_atomics=(row.size + count_distinct(row)) * n_cols,
        )
