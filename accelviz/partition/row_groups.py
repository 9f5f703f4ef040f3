"""Row groups: one subwarp per row and attention head; a very long row has a block of its own.

Consecutive subwarps have consecutive rows. In the workload, a row belongs to its first subwarp;
loads and statistics count all heads. The subwarps of a long row process one head after another.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from accelviz.arrays import Ints, Longs
from accelviz.ordering import RowDegrees
from accelviz.partition.hardware_warps import HardwareWarps, in_blocks
from accelviz.partition.scheme import Scheme
from accelviz.partition.summary import Loads, PartitionSummary, launched
from accelviz.workload import Workload, spread


def long_rows(row_pointers: Longs, most: int) -> Ints:
    """Return the rows with more than `most` nonzeros, ascending."""
    return np.flatnonzero(np.diff(row_pointers) > most).astype(np.int32)


def row_group_workload(
    row_pointers: Longs, long: Ints, heads: int, groups: int, start: int, stop: int
) -> Workload:
    """Return the workload of blocks `start` to `stop` - 1.

    The first blocks have one row of `long` each (see `long_rows`), the others the remaining rows in
    order. A row has `heads` subwarps, a block `groups` subwarps.
    """
    n_rows, n_long = row_pointers.size - 1, long.size
    long_row = long[start : min(stop, n_long)]
    degree = row_pointers[long_row + 1] - row_pointers[long_row]
    part_nzs = -(-degree // groups)
    owner, part = spread(-(-degree // part_nzs))
    offset = part * part_nzs[owner]
    long_row_parts = Workload(
        block=start + owner,
        warp=part,
        row=long_row[owner],
        nz_start=row_pointers[long_row][owner] + offset,
        nz_count=np.minimum(part_nzs[owner], degree[owner] - offset),
    )
    first_subwarps = [max(0, block - n_long) * groups for block in (start, stop)]
    rows = np.arange(*(min(-(-subwarp // heads), n_rows) for subwarp in first_subwarps))
    rows = rows[~np.isin(rows, long, assume_unique=True)]
    block, subwarp = np.divmod(rows * heads, groups)
    degrees = row_pointers[rows + 1] - row_pointers[rows]
    short_rows = Workload(n_long + block, subwarp, rows, row_pointers[rows], degrees)
    return Workload.concatenate([long_row_parts, short_rows])


def row_group_loads(
    row_pointers: Longs, long: Ints, heads: int, groups: int, start: int, stop: int
) -> Longs:
    """Return the nonzeros of each subwarp of blocks `start` to `stop` - 1, of every head.

    Parameters are those of `row_group_workload`; the shape is (blocks, groups).
    """
    n_rows, n_long = row_pointers.size - 1, long.size
    loads = np.zeros((stop - start, groups), np.int64)
    first = min(max(start, n_long), stop)  # first block of rows that are not long
    parts = row_group_workload(row_pointers, long, heads, groups, start, first)
    loads[parts.block - start, parts.warp] = heads * parts.nz_count
    degrees = np.diff(row_pointers)
    degrees[long] = 0
    subwarps = np.arange((first - n_long) * groups, (stop - n_long) * groups)
    subwarps = subwarps[subwarps < n_rows * heads]
    loads[first - start :].reshape(-1)[: subwarps.size] = degrees[subwarps // heads]
    return loads


@dataclass(frozen=True)
class RowGroups(Scheme):
    """One subwarp per row and head; a row with more than `most` nonzeros has its own block."""

    kind = "row_groups"
    most: int
    heads: int
    warps: int

    def summary(self, rows: RowDegrees, n_cols: int, hardware: HardwareWarps) -> PartitionSummary:
        """Count the workload of `row_group_workload`; see `Scheme`."""
        most, heads, warps = self.most, self.heads, self.warps
        degrees, counts = rows.histogram.degrees, rows.histogram.rows
        is_long = degrees > most
        n_long = int(counts[is_long].sum())
        blocks = n_long + -(-rows.histogram.n_rows * heads // warps)
        part_nzs = -(-degrees // warps)
        parts = Loads.of_split_rows(counts[is_long], degrees[is_long], part_nzs[is_long])
        loads = Loads.grouped(
            np.append(heads * parts.nonzeros, degrees[~is_long]),
            np.append(parts.warps, heads * counts[~is_long]),
        )
        known: dict[str, Any] = {"loads": loads}
        if rows.row_pointers is not None:
            degree = np.diff(rows.row_pointers)
            per_subwarp = np.repeat(np.where(degree > most, 0, degree), heads)
            share = part_nzs[is_long, None]
            of_long = heads * (degrees[is_long, None] - np.arange(warps) * share).clip(0, share)
            occupancy = hardware.occupancy(of_long, counts[is_long])
            known |= vars(occupancy + hardware.occupancy(in_blocks(per_subwarp, warps)))
        return replace(
            launched(blocks, hardware),
            **known,
            metadata_bytes=0,
            rows_shared=n_long if warps > 1 else 0,
            rows_cut=0,
            shared_atomics=0,
            global_atomics=0,
        )
