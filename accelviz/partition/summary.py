"""Statistics of a partition, in closed form (`Scheme`) or counted from a workload table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from accelviz import markup
from accelviz.arrays import Ints, Longs
from accelviz.immutable import Immutable
from accelviz.workload import Workload, nonzeros_per_warp

#: Title of `PartitionSummary.bars`.
BARS_TITLE = "warps by number of nonzeros"


@dataclass(frozen=True, eq=False)
class Loads(Immutable):
    """A histogram of the warps by their number of nonzeros.

    Attributes
    ----------
    nonzeros : array of int64, shape (k,)
        Distinct numbers of nonzeros per warp, ascending, above 0.
    warps : array of int64, shape (k,)
        Number of warps with that many nonzeros.
    idle : int, optional
        Number of launched warps without a nonzero; None if the launch is unknown.
    """

    nonzeros: Longs
    warps: Longs
    idle: int | None = None

    @property
    def busy(self) -> int:
        """Number of warps with at least one nonzero."""
        return int(self.warps.sum())

    @property
    def mean(self) -> float:
        """Mean number of nonzeros of the busy warps; 0 if there are none."""
        return int(self.nonzeros @ self.warps) / self.busy if self.busy else 0.0

    def binned(self, uppers: Longs) -> Longs:
        """Count the busy warps per bin, int64, given the bins' ascending upper bounds (bins,)."""
        counts = np.zeros(uppers.size, dtype=np.int64)
        np.add.at(counts, np.searchsorted(uppers, self.nonzeros), self.warps)
        return counts

    @classmethod
    def grouped(cls, nonzeros: Longs, warps: Longs | int = 1) -> Loads:
        """Group entries of `warps[i]` warps with `nonzeros[i]` nonzeros each; drop zeros."""
        distinct, index = np.unique(nonzeros, return_inverse=True)
        weights = np.broadcast_to(warps, index.shape)
        sums = np.bincount(index, weights, distinct.size).astype(np.int64)
        busy = (distinct > 0) & (sums > 0)
        return cls(distinct[busy], sums[busy])

    @classmethod
    def of_split_rows(cls, rows: Longs, row_nzs: Longs, warp_nzs: Longs) -> Loads:
        """Split `rows` rows of `row_nzs` nonzeros into warps of up to `warp_nzs` nonzeros."""
        full_warps = np.maximum(-(-row_nzs // warp_nzs) - 1, 0)
        last = row_nzs - full_warps * warp_nzs
        return cls.grouped(np.append(warp_nzs, last), np.append(rows * full_warps, rows))

    def quantile(self, share: float) -> float:
        """Return the quantile `share` of the nonzeros per busy warp; NaN if no warp is busy."""
        if not self.warps.size:
            return float("nan")
        cumulative = np.cumsum(self.warps)
        return float(self.nonzeros[np.searchsorted(cumulative, share * cumulative[-1])])


@dataclass(frozen=True, eq=False)
class PartitionSummary(Immutable):
    """Statistics of a partition; None for each one that cannot be computed.

    A degree histogram does not contain the order of the rows. If a scheme keeps that order, and
    only the histogram is known, statistics that depend on which rows share a block are None.

    Attributes
    ----------
    blocks : int, optional
        Number of blocks launched per column tile. None for a vendor's library.
    warps : int, optional
        Number of warps launched: blocks times warps per block.
    slots : int, optional
        Sum over the blocks of warps per block times nonzeros of the block's busiest warp.
    loads : Loads, optional
        Histogram of the nonzeros per warp.
    metadata_bytes : int, optional
        Size of the metadata.
    rows_shared : int, optional
        Number of rows that several warps of one block share.
    rows_cut : int, optional
        Number of rows whose nonzeros are split over several blocks.
    shared_atomics, global_atomics : int, optional
        Number of floats added by atomics in shared and in global memory, for all columns of X.
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

    def facts(self, worker: str = "warp") -> list[tuple[str, str]]:
        """Return the known statistics as pairs (label, text); `worker` is `Strategy.worker`."""
        facts: list[tuple[str, Any, str]] = [("blocks", self.blocks, f"{self.blocks or 0:,}")]
        if self.loads is not None:
            warps = f"{self.warps or 0:,}, {self.idle_warps:.1%} of them without a nonzero"
            load = f"{self.mean:,.1f} on average, {self.largest:,} at most"
            facts += [(f"{worker}s", self.warps, warps)]
            facts += [(f"nonzeros of a busy {worker}", self.loads, load)]
        idle = f"{self.idle_share:.1%} of the time, until the busiest {worker} of each block ends"
        facts += [
            ("idle", self.slots, idle),
            ("metadata", self.metadata_bytes, f"{self.metadata_bytes or 0:,} bytes"),
            ("rows split over blocks", self.rows_cut, f"{self.rows_cut or 0:,}"),
            ("atomics in global memory", self.global_atomics, f"{self.global_atomics or 0:,}"),
        ]
        return [(label, text) for label, value, text in facts if value is not None]

    def bars(self) -> list[tuple[str, float, str]]:
        """Return the number of warps by number of nonzeros, for `markup.summary`."""
        if self.loads is None:
            return []
        warps = np.append(self.loads.idle or 0, self.loads.warps)
        return markup.histogram(np.append(0, self.loads.nonzeros), warps)

    def _repr_html_(self) -> str:
        sentence = "how a partition spreads nonzeros over warps"
        facts, bars = self.facts(), self.bars()
        return markup.summary("Statistics", sentence, facts, bars, BARS_TITLE)

    @property
    def busy_warps(self) -> float:
        """Number of warps with at least one nonzero; NaN if unknown."""
        return float("nan") if self.loads is None else self.loads.busy

    @property
    def nonzeros(self) -> float:
        """Number of nonzeros of all warps; NaN if unknown."""
        return float("nan") if self.loads is None else int(self.loads.nonzeros @ self.loads.warps)

    @property
    def idle_warps(self) -> float:
        """Share of the launched warps without a nonzero, 0 to 1; NaN if unknown."""
        if self.warps is None:
            return float("nan")
        return 1.0 - self.busy_warps / self.warps if self.warps else 0.0

    @property
    def idle_share(self) -> float:
        """Share of warp time spent idle until the block's busiest warp ends; NaN if unknown."""
        if self.slots is None:
            return float("nan")
        return 1.0 - self.nonzeros / self.slots if self.slots else 0.0

    @property
    def largest(self) -> float:
        """Number of nonzeros of the busiest warp; NaN if unknown."""
        return float("nan") if self.loads is None else int(self.loads.nonzeros.max(initial=0))

    @property
    def mean(self) -> float:
        """Mean number of nonzeros of the busy warps; NaN if unknown or if no warp is busy."""
        return self.nonzeros / self.busy_warps if self.busy_warps else float("nan")

    @property
    def imbalance(self) -> float:
        """Load imbalance: nonzeros of the busiest warp over the mean of the busy warps.

        1 is perfect balance. NaN if unknown.
        """
        if self.loads is None:
            return float("nan")
        return self.largest / self.mean if self.busy_warps else 1.0

    def quantile(self, share: float) -> float:
        """Return `Loads.quantile` of the busy warps; NaN if unknown."""
        return float("nan") if self.loads is None else self.loads.quantile(share)


def statistics(slices: Iterable[Workload], n_blocks: int, warps_per_block: int) -> PartitionSummary:
    """Count the statistics of a workload.

    Parameters
    ----------
    slices : iterable of Workload
        The workload in slices of whole blocks, as `Plan.workload_slices()` yields them.
    n_blocks : int
        Number of blocks launched, including those without a record.
    warps_per_block : int
        Number of warps launched per block.

    Returns
    -------
    PartitionSummary
        Blocks, warps, slots and loads. The other attributes are None.
    """
    slots, histogram = 0, np.zeros(1, dtype=np.int64)
    for workload in slices:
        per_warp = nonzeros_per_warp(workload, warps_per_block)
        slots += int(per_warp.max(axis=1, initial=0).sum()) * warps_per_block
        extended = np.bincount(per_warp.ravel(), minlength=histogram.size)
        extended[: histogram.size] += histogram
        histogram = extended
    loads = Loads.grouped(np.arange(histogram.size), histogram)
    return PartitionSummary(n_blocks, n_blocks * warps_per_block, slots, loads)


def count_distinct(ascending: Ints) -> int:
    """Count the distinct values of an ascending array of integers of at least 0."""
    return int(np.count_nonzero(np.diff(ascending, prepend=-1)))


def count_slots(per_warp: Longs, block_warps: int) -> int:
    """Return `PartitionSummary.slots` from the nonzeros of each warp, block after block."""
    if not per_warp.size:
        return 0
    busiest = np.maximum.reduceat(per_warp, np.arange(0, per_warp.size, block_warps))
    return int(busiest.sum()) * block_warps
