"""What a partition does to a graph, in a few numbers: counted, or in closed form."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from accelviz.arrays import Ints, Longs
from accelviz.workload import Workload, nonzeros_per_warp


@dataclass(frozen=True, eq=False)
class Loads:
    """How many warps handle how many nonzeros each.

    Attributes
    ----------
    nonzeros : array of int64, shape (k,)
        Nonzeros of a warp, ascending, above 0.
    warps : array of int64, shape (k,)
        How many warps have each of them.
    idle : int, optional
        Launched warps without a nonzero; None if it is not known how many are launched.
    """

    nonzeros: Longs
    warps: Longs
    idle: int | None = None

    @property
    def busy(self) -> int:
        """Warps with work."""
        return int(self.warps.sum())

    @property
    def mean(self) -> float:
        """Mean nonzeros of the warps with work; 0 if there are none."""
        return int(self.nonzeros @ self.warps) / self.busy if self.busy else 0.0

    def binned(self, uppers: Longs) -> Longs:
        """Count the warps with work in bins, shape (bins,), given the most nonzeros of each bin."""
        counts = np.zeros(uppers.size, dtype=np.int64)
        np.add.at(counts, np.searchsorted(uppers, self.nonzeros), self.warps)
        return counts

    @classmethod
    def gathered(cls, nonzeros: Longs, warps: Longs | int = 1) -> Loads:
        """Add up the warps of entries with equally many nonzeros; those without are left out."""
        distinct, index = np.unique(nonzeros, return_inverse=True)
        weights = np.broadcast_to(warps, index.shape)
        sums = np.bincount(index, weights, distinct.size).astype(np.int64)
        work = (distinct > 0) & (sums > 0)
        return cls(distinct[work], sums[work])

    @classmethod
    def of_shares(cls, rows: Longs, row_nzs: Longs, share: Longs) -> Loads:
        """Split `rows` rows of `row_nzs` nonzeros into warps of `share`; the last has the rest."""
        others = np.maximum(-(-row_nzs // share) - 1, 0)
        last = row_nzs - others * share
        return cls.gathered(np.append(share, last), np.append(rows * others, rows))

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

    def __post_init__(self) -> None:
        if self.loads is not None and self.warps is not None:
            loads = replace(self.loads, idle=self.warps - self.loads.busy)
            object.__setattr__(self, "loads", loads)

    @property
    def busy_warps(self) -> float:
        """Warps that have at least one nonzero; NaN if not known."""
        return float("nan") if self.loads is None else self.loads.busy

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
        """Busiest warp's nonzeros over the mean of the warps with work; 1 is perfect balance.

        NaN if not known.
        """
        if self.loads is None:
            return float("nan")
        return self.largest / self.mean if self.busy_warps else 1.0

    def quantile(self, share: float) -> float:
        """Return `Loads.quantile` of the warps with work; NaN if not known."""
        return float("nan") if self.loads is None else self.loads.quantile(share)


def statistics(slices: Iterable[Workload], n_blocks: int, warps_per_block: int) -> PartitionSummary:
    """Count a workload, one slice of whole blocks at a time.

    Parameters
    ----------
    slices : iterable of Workload
        Together the whole workload, each of them whole blocks (`Plan.workload_slices()`).
    n_blocks : int
        Blocks launched, those without a record included.
    warps_per_block : int
        Warps launched in each block.

    Returns
    -------
    PartitionSummary
        A workload does not say how sums meet: atomics and the rows that are shared or cut are None.
    """
    slots, counts = 0, np.zeros(1, dtype=np.int64)
    for part in slices:
        per_warp = nonzeros_per_warp(part, warps_per_block)
        slots += int(per_warp.max(axis=1, initial=0).sum()) * warps_per_block
        more = np.bincount(per_warp.ravel(), minlength=counts.size)
        more[: counts.size] += counts
        counts = more
    loads = Loads.gathered(np.arange(counts.size), counts)
    return PartitionSummary(n_blocks, n_blocks * warps_per_block, slots, loads)


def count_distinct(ascending: Ints) -> int:
    """Count the different numbers among ascending ones of at least 0."""
    return int(np.count_nonzero(np.diff(ascending, prepend=-1)))


def slots_of(per_warp: Longs, block_warps: int) -> int:
    """Sum the busiest warp of each block, times its warps; the last block may not be full."""
    if not per_warp.size:
        return 0
    busiest = np.maximum.reduceat(per_warp, np.arange(0, per_warp.size, block_warps))
    return int(busiest.sum()) * block_warps
