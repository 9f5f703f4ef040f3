"""How evenly a workload loads the warps, in arrays small enough to draw."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from accelviz.partition.summary import PartitionSummary
from accelviz.plans import Plan
from accelviz.workload import Workload, WorkloadStatistics, nonzeros_per_warp

Integers = npt.NDArray[np.int64]
#: Nonzeros of the busiest warp up to which each number of nonzeros has a bin of its own.
SINGLE_BINS = 40


@dataclass(frozen=True, eq=False)
class LoadMap:
    """Nonzeros of every warp of every block, or of every k-th block where there are many.

    A sample and not a mean: averaging neighboring blocks would smooth away the very imbalance that
    the map is to show.

    Attributes
    ----------
    load : array of int64, shape (columns, warps_per_block)
        Nonzeros of each warp of blocks 0, `every`, 2 `every`, ...; 0 where it is idle.
    n_blocks : int
        Blocks in all.
    every : int
        Distance of the blocks shown; 1 means all of them.
    idle_share : float
        Share of warp time spent idle or waiting, of the whole workload (`WorkloadStatistics`).
    worker : str
        What a line of the map is, as `Strategy.worker` says.
    """

    load: Integers
    n_blocks: int
    every: int
    idle_share: float
    worker: str = "warp"


def load_map(
    slices: Iterable[Workload],
    n_blocks: int,
    warps_per_block: int,
    max_columns: int = 1200,
    *,
    worker: str = "warp",
) -> LoadMap:
    """Sum a workload by block and warp.

    Parameters
    ----------
    slices : iterable of Workload
        Together the whole workload, each of them whole blocks.
    n_blocks, warps_per_block : int
        What the plan launches.
    max_columns : int
        Most columns of the result; of more blocks, every k-th is shown.
    worker : str
        What the workload calls a warp, as `Strategy.worker` says.

    Returns
    -------
    LoadMap
    """
    every = max(1, -(-n_blocks // max_columns))
    load = np.zeros((-(-n_blocks // every), warps_per_block), dtype=np.int64)
    counted = WorkloadStatistics(blocks=n_blocks, warps=n_blocks * warps_per_block)
    for part in slices:
        if not len(part):
            continue
        per_warp = nonzeros_per_warp(part, warps_per_block)
        counted.add(per_warp)
        first = int(part.block[0])
        shown = per_warp[-first % every :: every]
        column = -(-first // every)
        load[column : column + len(shown)] = shown
    return LoadMap(load, n_blocks, every, counted.idle_share, worker)


def plan_load_map(plan: Plan, max_columns: int = 1200) -> LoadMap:
    """Sum a plan's workload by block and warp; see `load_map`."""
    return load_map(
        plan.workload_slices(),
        plan.launch.n_blocks,
        plan.workers_per_block,
        max_columns,
        worker=plan.strategy.worker,
    )


@dataclass(frozen=True, eq=False)
class WarpTally:
    """How many launched warps handle how many nonzeros each.

    Attributes
    ----------
    nonzeros, warps : arrays of int64, shape (k,)
        The numbers of nonzeros that occur, ascending and above 0, and how many warps have each.
    idle : int or None
        Launched warps without a nonzero; None if it is not known how many are launched.
    """

    nonzeros: Integers
    warps: Integers
    idle: int | None

    @property
    def mean(self) -> float:
        """Mean nonzeros of the warps with work; 0 if there are none."""
        busy = int(self.warps.sum())
        return int(self.nonzeros @ self.warps) / busy if busy else 0.0

    def binned(self, uppers: Integers) -> Integers:
        """Count the warps with work in the bins of `load_bins`, shape (bins,)."""
        counts = np.zeros(uppers.size, dtype=np.int64)
        np.add.at(counts, np.searchsorted(uppers, self.nonzeros), self.warps)
        return counts


def warp_tally(statistics: WorkloadStatistics | PartitionSummary) -> WarpTally | None:
    """Return the nonzeros of the warps; None where the degrees alone do not tell them."""
    if isinstance(statistics, WorkloadStatistics):
        items = sorted((n, warps) for n, warps in statistics.nonzeros_per_warp.items() if n)
        table = np.array(items, dtype=np.int64).reshape(-1, 2)
        return WarpTally(table[:, 0], table[:, 1], statistics.nonzeros_per_warp.get(0, 0))
    if statistics.loads is None:
        return None
    nonzeros, warps = statistics.loads.nonzeros, statistics.loads.warps
    launched = statistics.warps
    return WarpTally(nonzeros, warps, None if launched is None else launched - int(warps.sum()))


def load_bins(largest: int) -> Integers:
    """Return the most nonzeros of each bin of a histogram of warps, ascending.

    Parameters
    ----------
    largest : int
        Nonzeros of the busiest warp.

    Returns
    -------
    array of int64, shape (bins,)
        1, 2, 3, ... `largest` if that is at most `SINGLE_BINS`. If not, two bins to each doubling:
        1, 2, 3, 4, 6, 8, 12, 16, ... up to the first that is not below `largest`. The first bin
        begins at 1, each other one above the one before it.
    """
    if largest <= SINGLE_BINS:
        return np.arange(1, largest + 1)
    powers = 2 ** np.arange(int(largest).bit_length() + 1)
    bounds = np.unique(np.concatenate([powers, powers[1:] * 3 // 2]))
    return bounds[: int(np.searchsorted(bounds, largest)) + 1]


def example_blocks(
    degree: npt.NDArray[np.int64], busy_warps: npt.NDArray[np.int64], count: int
) -> list[int]:
    """Choose blocks that differ as much as possible in the degree of their rows.

    Parameters
    ----------
    degree : array of int64, shape (blocks,)
        Degree of each block's rows, ascending.
    busy_warps : array of int64, shape (blocks,)
        Warps with work in each block; of blocks alike in degree, a full one is taken.
    count : int
        How many to choose at most.

    Returns
    -------
    list of int
        Block numbers, ascending.
    """
    if not degree.size:
        return []
    low, high = np.log(max(1, degree[0])), np.log(max(1, degree[-1]))
    targets = np.linspace(low, high, count)
    reach = (high - low) / max(1, count - 1) / 4
    distance = np.abs(np.log(np.maximum(degree, 1)) - targets[:, None])
    score = np.where(distance <= reach, busy_warps, -distance)
    return sorted(set(np.argmax(score, axis=1).tolist()))
