"""Row split: consecutive rows are assigned to consecutive warps, regardless of their degrees."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from accelviz.arrays import Longs
from accelviz.ordering import RowDegrees
from accelviz.partition.hardware_warps import HardwareWarps, in_blocks
from accelviz.partition.scheme import Scheme
from accelviz.partition.summary import Loads, PartitionSummary, counted, counted_loads, launched
from accelviz.workload import Workload


def row_workload(
    row_pointers: Longs, rows_per_warp: int, block_warps: int, start: int, stop: int
) -> Workload:
    """Return the workload of blocks `start` to `stop` - 1: one record per row.

    `nz_count` is 0 for a row without nonzeros, whose output the warp sets to zero.
    """
    rows_per_block = rows_per_warp * block_warps
    last = min(stop * rows_per_block, row_pointers.size - 1)
    rows = np.arange(min(start * rows_per_block, last), last)
    block, offset = np.divmod(rows, rows_per_block)
    degrees = row_pointers[rows + 1] - row_pointers[rows]
    return Workload(block, offset // rows_per_warp, rows, row_pointers[rows], degrees)


@dataclass(frozen=True)
class RowSplit(Scheme):
    """Consecutive rows for consecutive warps; no row is shared or split.

    The kernel executes `atomics` atomic additions per nonzero.
    """

    kind = "rows"
    rows_per_warp: int
    warps: int
    atomics: int = 0

    def summary(self, rows: RowDegrees, n_cols: int, hardware: HardwareWarps) -> PartitionSummary:
        """Count the rows of each warp; see `Scheme`."""
        histogram = rows.histogram
        blocks = -(-histogram.n_rows // (self.rows_per_warp * self.warps))
        known: dict[str, Any] = {}
        if rows.row_pointers is not None:
            degrees = in_blocks(np.diff(rows.row_pointers), self.rows_per_warp * self.warps)
            degrees = degrees.reshape(-1, self.warps, self.rows_per_warp)
            known = counted(degrees.sum(axis=2), hardware, longest=degrees.max(axis=2))
        elif self.rows_per_warp == 1:
            known = counted_loads(Loads.grouped(histogram.degrees, histogram.rows), hardware)
        return replace(
            launched(blocks, hardware),
            **known,
            metadata_bytes=0,
            rows_shared=0,
            rows_cut=0,
            shared_atomics=0,
            global_atomics=self.atomics * histogram.nnz,
        )
