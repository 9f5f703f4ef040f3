"""fuseGNN's thread groups: threads side by side take the columns, groups of them the edges.

Section 5.3 of the paper: of `block_size` threads T and `n_cols` columns m, floor(T / m) groups of m
threads handle as many edges at once, and the threads left over are idle; with m >= T the whole
block is one group. `groups` are those of a block, and what counts as its warps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from accelviz.arrays import Longs
from accelviz.ordering import RowDegrees
from accelviz.partition.row_split import row_workload
from accelviz.partition.scheme import Scheme
from accelviz.partition.summary import Loads, PartitionSummary
from accelviz.workload import Workload, spread


def thread_groups(block_size: int, n_cols: int) -> int:
    """Return the groups of a block: max(floor(T / m), 1), the paper's `stride`."""
    return max(1, block_size // n_cols)


def vertex_workload(row_pointers: Longs, groups: int, start: int, stop: int) -> Workload:
    """Return blocks `start` to `stop` - 1 where a block has a row and its groups take turns.

    With one group there is a record for each row. Else there is one for each nonzero, as neighbors
    go to different groups, and one for each row without.
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
    """A block a row, whose nonzeros its `warps` thread groups take in turn."""

    kind = "vertex"
    warps: int

    def summary(self, rows: RowDegrees, n_cols: int) -> PartitionSummary:
        """Count what `vertex_workload` deals out; see `Scheme`."""
        histogram, groups = rows.histogram, self.warps
        turns, more = np.divmod(histogram.degrees, groups)
        # Of a row's groups, `more` have one nonzero above `turns`.
        nonzeros = np.concatenate([turns, turns + 1])
        owners = np.concatenate([histogram.rows * (groups - more), histogram.rows * more])
        return PartitionSummary(
            blocks=histogram.n_rows,
            warps=histogram.n_rows * groups,
            slots=int(histogram.rows @ (turns + (more > 0))) * groups,
            loads=Loads.gathered(nonzeros, owners),
            metadata_bytes=0,
            rows_shared=int(histogram.rows[histogram.degrees > 1].sum()) if groups > 1 else 0,
            rows_cut=0,
            shared_atomics=0,
            global_atomics=0,
        )
