"""What a partition does to a graph, in a few numbers that need no workload."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from accelviz.workload import WorkloadStatistics

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Loads:
    """How many warps handle how many nonzeros each.

    Attributes
    ----------
    nonzeros : array of int64, shape (k,)
        Nonzeros of a warp, ascending, above 0.
    warps : array of int64, shape (k,)
        How many warps have each of them.
    """

    nonzeros: Integers
    warps: Integers

    @classmethod
    def counted(cls, warps: Integers) -> Loads:
        """Take `warps[n]` warps with `n` nonzeros; those with none are left out."""
        nonzeros = np.flatnonzero(warps)
        nonzeros = nonzeros[nonzeros > 0]
        return cls(nonzeros, warps[nonzeros])

    @classmethod
    def of_warps(cls, nonzeros: Integers) -> Loads:
        """Count warps given one by one; those without a nonzero are left out."""
        return cls(*np.unique(nonzeros[nonzeros > 0], return_counts=True))

    @classmethod
    def gathered(cls, nonzeros: Integers, warps: Integers) -> Loads:
        """Add up the warps of entries with equally many nonzeros."""
        distinct, place = np.unique(nonzeros, return_inverse=True)
        sums = np.zeros(distinct.size, dtype=np.int64)
        np.add.at(sums, place, warps)
        work = (distinct > 0) & (sums > 0)
        return cls(distinct[work], sums[work])

    def quantile(self, share: float) -> float:
        """Return the nonzeros that at least this share of the warps does not exceed.

        NaN if there is no warp.
        """
        if not self.warps.size:
            return float("nan")
        below = np.cumsum(self.warps)
        return float(self.nonzeros[np.searchsorted(below, share * below[-1])])


@dataclass(frozen=True, eq=False)
class PartitionSummary:
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
        if idle:
            tally = {0: idle, **tally}
        return WorkloadStatistics(self.blocks, self.warps, self.slots, tally)

    @property
    def busy_warps(self) -> float:
        """Warps that have at least one nonzero; NaN if not known."""
        return float("nan") if self.loads is None else int(self.loads.warps.sum())

    @property
    def nonzeros(self) -> float:
        """Nonzeros covered; NaN if not known."""
        return float("nan") if self.loads is None else int(self.loads.nonzeros @ self.loads.warps)

    @property
    def idle_warps(self) -> float:
        """Share of the launched warps that have nothing to do, 0 to 1; NaN if not known."""
        if self.warps is None:
            return float("nan")
        return 1.0 - self.busy_warps / self.warps if self.warps else 0.0

    @property
    def idle_share(self) -> float:
        """Share of warp time spent idle or waiting for the block's busiest warp; NaN if unknown."""
        if self.slots is None:
            return float("nan")
        return 1.0 - self.nonzeros / self.slots if self.slots else 0.0

    @property
    def largest(self) -> float:
        """Nonzeros of the busiest warp; NaN if not known."""
        return float("nan") if self.loads is None else int(self.loads.nonzeros.max(initial=0))

    @property
    def mean(self) -> float:
        """Mean nonzeros of the warps with work; NaN if not known, or if there are none."""
        return self.nonzeros / self.busy_warps if self.busy_warps else float("nan")

    @property
    def imbalance(self) -> float:
        """Busiest warp's nonzeros over the mean of the warps with work; 1 is perfect balance."""
        return self.largest / self.mean if self.busy_warps else 1.0

    def quantile(self, share: float) -> float:
        """Return `Loads.quantile` of the warps with work; NaN if not known."""
        return float("nan") if self.loads is None else self.loads.quantile(share)

    @classmethod
    def counted(
        cls, statistics: WorkloadStatistics, metadata_bytes: int | None = None
    ) -> PartitionSummary:
        """Take over what was counted from a workload, which does not say how sums meet."""
        tally = np.array(
            [(n, warps) for n, warps in statistics.nonzeros_per_warp.items() if n], dtype=np.int64
        ).reshape(-1, 2)
        return cls(
            blocks=statistics.blocks,
            warps=statistics.warps,
            slots=statistics.slots,
            loads=Loads(tally[:, 0], tally[:, 1]),
            metadata_bytes=metadata_bytes,
        )


def slots_of(per_warp: Integers, block_warps: int) -> int:
    """Sum the busiest warp of each block, times its warps; the last block may not be full."""
    if not per_warp.size:
        return 0
    busiest = np.maximum.reduceat(per_warp, np.arange(0, per_warp.size, block_warps))
    return int(busiest.sum()) * block_warps
