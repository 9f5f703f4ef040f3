"""Merge path: every warp has the same number of rows plus nonzeros (Merrill and Garland, SC 2016).

The merge path is a list of `n_rows + nnz` items: for each row, its nonzeros and then the end of the
row. Each warp gets a share of `warp_items` consecutive items; the last share may be shorter. A
binary search over the row ends finds the row `r` in which a share starts. If its first item is item
`i`, the share starts at nonzero `i - r`, so the metadata is one int32 per warp: the row.

The parameter `first_rows` of the functions is the result of `merge_path_partition`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from accelviz.arrays import Ints, Longs
from accelviz.ordering import RowDegrees
from accelviz.partition.hardware_warps import HardwareWarps
from accelviz.partition.scheme import Scheme
from accelviz.partition.summary import PartitionSummary, count_distinct, counted_workers, launched
from accelviz.workload import Workload, spread


def merge_path_partition(row_pointers: Longs, warp_items: int) -> Ints:
    """Find the row in which each warp's share starts.

    Parameters
    ----------
    row_pointers : array of int64, shape (n_rows + 1,)
    warp_items : int
        Number of items per warp.

    Returns
    -------
    array of int32, shape (warps + 1,)
        Row of each share's first item: the number of row ends in earlier shares. The last entry is
        the number of rows.
    """
    n_rows = row_pointers.size - 1
    warps = -(-(n_rows + int(row_pointers[-1])) // warp_items)
    row_ends = row_pointers[1:] + np.arange(n_rows)  # item number of each row end
    first_rows = np.searchsorted(row_ends, np.arange(warps + 1) * warp_items).astype(np.int32)
    first_rows[-1] = n_rows
    return first_rows


def first_nonzeros(
    row_pointers: Longs, first_rows: Ints, warp_items: int, start: int, stop: int
) -> Longs:
    """Return the first nonzero of the shares of warps `start` to `stop` - 1, int64.

    The entry of the warp after the last is the number of nonzeros.
    """
    n_items = row_pointers.size - 1 + int(row_pointers[-1])
    items: Longs = np.minimum(np.arange(start, stop) * warp_items, n_items)
    return items - first_rows[start:stop]


def _warps_within_rows(row_pointers: Longs, first_rows: Ints, warp_items: int) -> Longs:
    """Return the warps whose share starts between two nonzeros of one row."""
    nonzeros = first_nonzeros(row_pointers, first_rows, warp_items, 0, first_rows.size)[1:-1]
    rows = first_rows[1:-1]
    inside = (row_pointers[rows] < nonzeros) & (nonzeros < row_pointers[rows + 1])
    return 1 + np.flatnonzero(inside)


def cuts_rows(row_pointers: Longs, first_rows: Ints, warp_items: int) -> bool:
    """Return whether any row has nonzeros in several shares."""
    return _warps_within_rows(row_pointers, first_rows, warp_items).size > 0


def merge_path_workload(
    row_pointers: Longs, first_rows: Ints, warp_items: int, block_warps: int, start: int, stop: int
) -> Workload:
    """Return the workload of blocks `start` to `stop` - 1.

    Returns
    -------
    Workload
        One record per row and share with nonzeros of the row. A row without nonzeros has a record
        in the share with its end.
    """
    warps = first_rows.size - 1
    last = min(stop * block_warps, warps)
    first = min(start * block_warps, last)
    rows = first_rows[first : last + 1].astype(np.int64)
    nonzeros = first_nonzeros(row_pointers, first_rows, warp_items, first, last + 1)
    # A share may have nonzeros of the row in which the next share starts.
    owner, offset = spread(np.minimum(rows[1:] + 1, row_pointers.size - 1) - rows[:-1])
    row = rows[owner] + offset
    nz_start = np.maximum(row_pointers[row], nonzeros[owner])
    nz_count = np.minimum(row_pointers[row + 1], nonzeros[owner + 1]) - nz_start
    ends_empty = (row_pointers[row] == row_pointers[row + 1]) & (row < rows[owner + 1])
    has_work = (nz_count > 0) | ends_empty
    block, warp = np.divmod(first + owner[has_work], block_warps)
    return Workload(block, warp, row[has_work], nz_start[has_work], nz_count[has_work])


@dataclass(frozen=True)
class MergePath(Scheme):
    """One share of `items` rows plus nonzeros per warp; split rows add up by atomics."""

    kind = "merge_path"
    items: int
    warps: int

    def summary(self, rows: RowDegrees, n_cols: int, hardware: HardwareWarps) -> PartitionSummary:
        """Count the shares and the rows that they split; see `Scheme`."""
        items, warps = self.items, self.warps
        shares = -(-(rows.histogram.n_rows + rows.histogram.nnz) // items)
        blocks = -(-shares // warps)
        summary = replace(
            launched(blocks, hardware),
            metadata_bytes=np.dtype(np.int32).itemsize * (shares + 1),
            shared_atomics=0,
        )
        pointers = rows.row_pointers
        if pointers is None:
            return summary
        first_rows = merge_path_partition(pointers, items)
        per_warp = np.diff(first_nonzeros(pointers, first_rows, items, 0, first_rows.size))
        split_at = _warps_within_rows(pointers, first_rows, items)
        row, within_block = first_rows[split_at], split_at % warps != 0
        return replace(
            summary,
            **counted_workers(per_warp, hardware),
            rows_shared=count_distinct(row[within_block]),
            rows_cut=count_distinct(row[~within_block]),
            global_atomics=(row.size + count_distinct(row)) * n_cols,
        )
