"""How evenly a workload loads the warps, in arrays small enough to draw."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

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
