"""What a partition does to a graph, in a few numbers that need no workload."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from accelviz.arrays import Longs
from accelviz.workload import Balance, Loads, WorkloadStatistics


@dataclass(frozen=True, eq=False)
class PartitionSummary(Balance):
    """What a partition does to a graph; None where the degrees that were given do not say it.

    A histogram says how many rows have each degree, not in which order they come. Where a partition
    walks the rows as they are, who shares a block with whom depends on that order.

    Attributes
    ----------
    blocks : int, optional
        Blocks launched for one tile of columns. None for a library alone.
    warps : int, optional
        Warps launched: blocks times the warps of a block.
    slots : int, optional
        For each block, its warps times the nonzeros of its busiest warp.
    loads : Loads, optional
        Nonzeros of each warp with work.
    metadata_bytes : int, optional
        Size of the metadata.
    rows_shared : int, optional
        Rows that several warps of one block share.
    rows_cut : int, optional
        Rows whose nonzeros lie in several blocks.
    shared_atomics, global_atomics : int, optional
        Floats that the kernel adds by atomics in shared and in global memory, over all columns.
    """

    blocks: int | None = None
    warps: int | None = None
    slots: int | None = None
    loads: Loads | None = None
    metadata_bytes: int | None = None
    rows_shared: int | None = None
    rows_cut: int | None = None
    shared_atomics: int | None = None
    global_atomics: int | None = None

    @cached_property
    def statistics(self) -> WorkloadStatistics | None:
        """The same as counted from a workload; None unless blocks, loads and slots are known."""
        if self.blocks is None or self.warps is None or self.loads is None or self.slots is None:
            return None
        idle = self.warps - int(self.loads.warps.sum())
        tally = dict(zip(self.loads.nonzeros.tolist(), self.loads.warps.tolist(), strict=True))
        tally = {0: idle, **tally} if idle else tally
        return WorkloadStatistics(self.blocks, self.warps, self.slots, tally)

    @classmethod
    def counted(
        cls, statistics: WorkloadStatistics, metadata_bytes: int | None = None
    ) -> PartitionSummary:
        """Take over what was counted from a workload, which does not say how sums meet."""
        known = statistics.blocks, statistics.warps, statistics.slots, statistics.loads
        return cls(*known, metadata_bytes)


def slots_of(per_warp: Longs, block_warps: int) -> int:
    """Sum the busiest warp of each block, times its warps; the last block may not be full."""
    if not per_warp.size:
        return 0
    busiest = np.maximum.reduceat(per_warp, np.arange(0, per_warp.size, block_warps))
    return int(busiest.sum()) * block_warps
