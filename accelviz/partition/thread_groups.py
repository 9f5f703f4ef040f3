"""fuseGNN's thread groups: a group of threads handles one edge, one column per thread.

Section 5.3 of the paper: a block of T threads has floor(T / m) groups of m threads, where m is the
number of columns; the remaining threads are idle. For m >= T the whole block is one group. The
workload table counts a group as a warp. `groups` is the number of groups per block.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from accelviz.arrays import Longs
from accelviz.ordering import RowDegrees
from accelviz.partition.hardware_warps import HardwareWarps
from accelviz.partition.row_split import row_workload
from accelviz.partition.scheme import Scheme
from accelviz.partition.summary import PartitionSummary, counted, launched
from accelviz.workload import Workload, spread


def thread_groups(block_size: int, n_cols: int) -> int:
    """Return the number of groups per block: max(floor(T / m), 1), the paper's `stride`."""
    return max(1, block_size // n_cols)


def vertex_workload(row_pointers: Longs, groups: int, start: int, stop: int) -> Workload:
    """Return the workload of blocks `start` to `stop` - 1: one row per block.

    The groups of a block take the row's nonzeros in turn. With one group there is one record per
    row, otherwise one per nonzero, and one per row without nonzeros.
    """
    if groups == 1:
        return row_workload(row_pointers, 1, 1, start, stop)
    degrees = np.diff(row_pointers[start : stop + 1])
    owner, offset = spread(np.maximum(degrees, 1))
    row = start + owner
    counts = np.minimum(degrees, 1)[owner]
    return Workload(row, offset % groups, row, row_pointers[row] + offset, counts)


@dataclass(frozen=True)
class Vertex(Scheme):
    """One row per block; the `warps` thread groups of a block take its nonzeros in turn."""

    kind = "vertex"
    warps: int

    def summary(self, rows: RowDegrees, n_cols: int, hardware: HardwareWarps) -> PartitionSummary:
        """Count the workload of `vertex_workload`; see `Scheme`."""
        histogram, groups = rows.histogram, self.warps
        # Group g has nonzeros g, g + groups, ... of its row.
        loads = -((np.arange(groups) - histogram.degrees[:, None]) // groups)
        return replace(
            launched(histogram.n_rows, hardware),
            **counted(loads, hardware, histogram.rows),
            metadata_bytes=0,
            rows_shared=int(histogram.rows[histogram.degrees > 1].sum()) if groups > 1 else 0,
            rows_cut=0,
            shared_atomics=0,
            global_atomics=0,
        )
