"""Rows to subwarps, one for each head of a row; a very long row has a block for itself.

Nothing is sorted: neighboring subwarps have neighboring rows. A row's nonzeros count for the
subwarp that has its first head.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from accelviz.arrays import Ints, Longs
from accelviz.ordering import RowDegrees
from accelviz.partition.scheme import Scheme
from accelviz.partition.summary import Loads, PartitionSummary, slots_of
from accelviz.workload import Workload, spread


def long_rows(row_pointers: Longs, most: int) -> Ints:
    """Return the rows of more than `most` nonzeros, ascending."""
    return np.flatnonzero(np.diff(row_pointers) > most).astype(np.int32)


def row_group_workload(
    row_pointers: Longs, long: Ints, heads: int, groups: int, start: int, stop: int
) -> Workload:
    """Return blocks `start` to `stop` - 1: first a block for each long row, then rows in order.

    A row has `heads` subwarps, a block `groups`; `long_rows` gives the long ones.
    """
    n_rows, n_long = row_pointers.size - 1, long.size
    long_row = long[start : min(stop, n_long)]
    degree = row_pointers[long_row + 1] - row_pointers[long_row]
    share = -(-degree // groups)
    owner, part = spread(-(-degree // share))
    parts = Workload(
        start + owner,
        part,
        long_row[owner],
        row_pointers[long_row][owner] + part * share[owner],
        np.minimum(share[owner], degree[owner] - part * share[owner]),
    )
    units = [max(0, block - n_long) * groups for block in (start, stop)]
    rows = np.arange(*(min(-(-unit // heads), n_rows) for unit in units))
    rows = rows[~np.isin(rows, long, assume_unique=True)]
    block, group = np.divmod(rows * heads, groups)
    degrees = row_pointers[rows + 1] - row_pointers[rows]
    whole = Workload(n_long + block, group, rows, row_pointers[rows], degrees)
    return Workload.concatenate([parts, whole])


@dataclass(frozen=True)
class RowGroups(Scheme):
    """A subwarp for each head of a row; a row of more than `most` nonzeros has a block."""

    kind = "row_groups"
    most: int
    heads: int
    warps: int

    def summary(self, rows: RowDegrees, n_cols: int) -> PartitionSummary:
        """Count what `row_group_workload` deals out; see `Scheme`."""
        most, heads, warps = self.most, self.heads, self.warps
        degrees, counts = rows.histogram.degrees, rows.histogram.rows
        is_long = degrees > most
        n_long = int(counts[is_long].sum())
        blocks = n_long + -(-rows.histogram.n_rows * heads // warps)
        share = -(-degrees // warps)
        parts = Loads.of_shares(counts[is_long], degrees[is_long], share[is_long])
        loads = Loads.gathered(
            np.append(parts.nonzeros, degrees[~is_long]), np.append(parts.warps, counts[~is_long])
        )
        slots = None
        if rows.row_pointers is not None:
            degree = np.diff(rows.row_pointers)
            per_group = np.zeros(degree.size * heads, np.int64)
            per_group[::heads] = np.where(degree > most, 0, degree)
            slots = slots_of(per_group, warps) + int(counts[is_long] @ share[is_long]) * warps
        return PartitionSummary(
            blocks=blocks,
            warps=blocks * warps,
            slots=slots,
            loads=loads,
            metadata_bytes=0,
            rows_shared=n_long if warps > 1 else 0,
            rows_cut=0,
            shared_atomics=0,
            global_atomics=0,
        )
