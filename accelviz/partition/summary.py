"""Statistics of a partition, in closed form (`Scheme`) or counted from a workload table.

Warps are the hardware's. Loads are those of the workers that the workload counts, which are warps,
combined warps of several hardware warps, or parts of a warp such as subwarps.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from accelviz import markup
from accelviz.arrays import Ints, Longs
from accelviz.immutable import Immutable
from accelviz.partition.hardware_warps import HardwareWarps, Occupancy, in_blocks
from accelviz.workload import Workload, nonzeros_per_warp

#: Title of `PartitionSummary.bars`.
BARS_TITLE = "warps by number of nonzeros"


@dataclass(frozen=True, eq=False)
class Loads(Immutable):
    """A histogram of the workers by their number of nonzeros.

    Attributes
    ----------
    nonzeros : array of int64, shape (k,)
        Distinct numbers of nonzeros per worker, ascending, above 0.
    warps : array of int64, shape (k,)
        Number of workers with that many nonzeros.
    idle : int, optional
        Number of workers without a nonzero; None if the launch is unknown.
    """

    nonzeros: Longs
    warps: Longs
    idle: int | None = None

    @property
    def busy(self) -> int:
        """Number of workers with at least one nonzero."""
        return int(self.warps.sum())

    @property
    def mean(self) -> float:
        """Mean number of nonzeros of the busy workers; 0 if there are none."""
        return int(self.nonzeros @ self.warps) / self.busy if self.busy else 0.0

    def binned(self, uppers: Longs) -> Longs:
        """Count the busy workers per bin, int64, given the bins' ascending upper bounds (bins,)."""
        counts = np.zeros(uppers.size, dtype=np.int64)
        np.add.at(counts, np.searchsorted(uppers, self.nonzeros), self.warps)
        return counts

    @classmethod
    def grouped(cls, nonzeros: Longs, warps: Longs | int = 1) -> Loads:
        """Group entries of `warps[i]` workers with `nonzeros[i]` nonzeros each; drop zeros."""
        distinct, index = np.unique(nonzeros, return_inverse=True)
        weights = np.broadcast_to(warps, index.shape)
        sums = np.bincount(index, weights, distinct.size).astype(np.int64)
        busy = (distinct > 0) & (sums > 0)
        return cls(distinct[busy], sums[busy])

    @classmethod
    def of_split_rows(cls, rows: Longs, row_nzs: Longs, warp_nzs: Longs) -> Loads:
        """Split `rows` rows of `row_nzs` nonzeros into workers of up to `warp_nzs` nonzeros."""
        full_warps = np.maximum(-(-row_nzs // warp_nzs) - 1, 0)
        last = row_nzs - full_warps * warp_nzs
        return cls.grouped(np.append(warp_nzs, last), np.append(rows * full_warps, rows))

    def quantile(self, share: float) -> float:
        """Return the quantile `share` of the nonzeros per busy worker; NaN if none is busy."""
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
        Number of hardware warps launched: blocks times warps per block.
    busy_warps : int, optional
        Number of hardware warps with at least one step.
    steps : int, optional
        Sum of the hardware warps' steps over all passes and column tiles; see `HardwareWarps`.
    slots : int, optional
        Sum over the blocks of warps per block times steps of the block's busiest warp.
    longest : int, optional
        Steps of the busiest hardware warp of all.
    workers : int, optional
        Number of workers: blocks times workers per block.
    loads : Loads, optional
        Histogram of the nonzeros per worker.
    metadata_bytes : int, optional
        Size of the metadata.
    rows_shared : int, optional
        Number of rows that several workers of one block share.
    rows_cut : int, optional
        Number of rows whose nonzeros are split over several blocks.
    shared_atomics, global_atomics : int, optional
        Number of floats added by atomics in shared and in global memory, for all columns of X.
    """

    blocks: int | None = None
    warps: int | None = None
    busy_warps: int | None = None
    steps: int | None = None
    slots: int | None = None
    longest: int | None = None
    workers: int | None = None
    loads: Loads | None = None
    metadata_bytes: int | None = None
    rows_shared: int | None = None
    rows_cut: int | None = None
    shared_atomics: int | None = None
    global_atomics: int | None = None

    def __post_init__(self) -> None:
        if self.loads is not None and self.workers is not None:
            loads = replace(self.loads, idle=self.workers - self.loads.busy)
            object.__setattr__(self, "loads", loads)

    def facts(self, worker: str = "warp") -> list[tuple[str, str]]:
        """Return the known statistics as pairs (label, text); `worker` is `Strategy.worker`."""
        facts: list[tuple[str, Any, str]] = [("blocks", self.blocks, f"{self.blocks or 0:,}")]
        warps = f"{self.warps or 0:,}, {self.idle_warps:.1%} of them without a nonzero"
        facts += [("warps", self.busy_warps, warps)]
        if self.loads is not None:
            load = f"{self.mean:,.1f} on average, {self.largest:,} at most"
            if worker != "warp":
                facts += [(f"{worker}s", self.workers, f"{self.workers or 0:,}")]
            facts += [(f"nonzeros of a busy {worker}", self.loads, load)]
        idle = f"{self.idle_share:.1%} of the warps' time, until the busiest of each block ends"
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
    def nonzeros(self) -> float:
        """Number of nonzeros of all workers; NaN if unknown."""
        return float("nan") if self.loads is None else int(self.loads.nonzeros @ self.loads.warps)

    @property
    def idle_warps(self) -> float:
        """Share of the launched warps without a step, 0 to 1; NaN if unknown."""
        if self.warps is None or self.busy_warps is None:
            return float("nan")
        return 1.0 - self.busy_warps / self.warps if self.warps else 0.0

    @property
    def idle_share(self) -> float:
        """Share of warp time spent idle until the block's busiest warp ends; NaN if unknown."""
        if self.slots is None or self.steps is None:
            return float("nan")
        return 1.0 - self.steps / self.slots if self.slots else 0.0

    @property
    def largest(self) -> float:
        """Number of nonzeros of the busiest worker; NaN if unknown."""
        return float("nan") if self.loads is None else int(self.loads.nonzeros.max(initial=0))

    @property
    def mean(self) -> float:
        """Mean number of nonzeros of the busy workers; NaN if unknown or if none is busy."""
        return self.loads.mean if self.loads and self.loads.busy else float("nan")

    @property
    def imbalance(self) -> float:
        """Load imbalance: nonzeros of the busiest worker over the mean of the busy workers.

        1 is perfect balance. NaN if unknown.
        """
        if self.loads is None:
            return float("nan")
        return self.largest / self.mean if self.loads.busy else 1.0

    def quantile(self, share: float) -> float:
        """Return `Loads.quantile` of the busy workers; NaN if unknown."""
        return float("nan") if self.loads is None else self.loads.quantile(share)


def statistics(
    slices: Iterable[Workload], n_blocks: int, hardware: HardwareWarps
) -> PartitionSummary:
    """Count the statistics of a workload.

    Parameters
    ----------
    slices : iterable of Workload
        The workload in slices of whole blocks, as `Plan.workload_slices()` yields them.
    n_blocks : int
        Number of blocks launched, including those without a record.
    hardware : HardwareWarps
        Workers and hardware warps of a block.

    Returns
    -------
    PartitionSummary
        Blocks, warps, steps, slots, workers and loads. The other attributes are None.
    """
    loads = (
        (hardware.of_workload(work), nonzeros_per_warp(work, hardware.workers)) for work in slices
    )
    return statistics_of_loads(loads, n_blocks, hardware)


def statistics_of_loads(
    slices: Iterable[tuple[Longs, Longs]], n_blocks: int, hardware: HardwareWarps
) -> PartitionSummary:
    """Count the statistics of slices of whole blocks from the loads of their workers.

    A slice has what `HardwareWarps.steps` takes, and the nonzeros of each worker, both of shape
    (blocks, workers). See `statistics` for the rest.
    """
    occupancy, histogram = Occupancy(), np.zeros(1, dtype=np.int64)
    for steps_of, per_worker in slices:
        occupancy += hardware.occupancy(steps_of)
        extended = np.bincount(per_worker.ravel(), minlength=histogram.size)
        extended[: histogram.size] += histogram
        histogram = extended
    loads = Loads.grouped(np.arange(histogram.size), histogram)
    return replace(launched(n_blocks, hardware), loads=loads, **vars(occupancy))


def launched(n_blocks: int, hardware: HardwareWarps) -> PartitionSummary:
    """Return blocks, warps and workers of a launch."""
    return PartitionSummary(
        blocks=n_blocks, warps=n_blocks * hardware.warps, workers=n_blocks * hardware.workers
    )


def counted(
    loads: Longs, hardware: HardwareWarps, blocks: Longs | int = 1, longest: Longs | None = None
) -> dict[str, Any]:
    """Return fields of `PartitionSummary` that follow from the loads of blocks.

    Parameters
    ----------
    loads : array of int64, shape (kinds, workers)
        Nonzeros of each worker of each kind of block.
    hardware : HardwareWarps
    blocks : array of int64, shape (kinds,), or int
        Number of blocks of each kind.
    longest : array of int64, shape (kinds, workers), optional
        Nonzeros of each worker's longest row, which replace `loads` if `hardware.row_per_lane`.
    """
    steps_of = longest if longest is not None and hardware.row_per_lane else loads
    repeats = np.broadcast_to(np.reshape(blocks, (-1, 1)), loads.shape)
    histogram = Loads.grouped(loads.ravel(), repeats.ravel())
    return {"loads": histogram, **vars(hardware.occupancy(steps_of, blocks))}


def counted_loads(loads: Loads, hardware: HardwareWarps) -> dict[str, Any]:
    """Return fields of `PartitionSummary` that follow from loads of workers in unknown order."""
    known: dict[str, Any] = {"loads": loads}
    if hardware.workers == hardware.warps and hardware.passes == 1:  # a worker is a warp
        known["busy_warps"] = loads.busy
    return known


def counted_workers(per_worker: Longs, hardware: HardwareWarps) -> dict[str, Any]:
    """Return `counted` of the loads of consecutive workers, block after block."""
    return counted(in_blocks(per_worker, hardware.workers), hardware)


def count_distinct(ascending: Ints) -> int:
    """Count the distinct values of an ascending array of integers of at least 0."""
    return int(np.count_nonzero(np.diff(ascending, prepend=-1)))
