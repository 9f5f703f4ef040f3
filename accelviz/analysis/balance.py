"""Load balance: nonzeros per warp of a workload, reduced to arrays that fit a picture."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from accelviz.arrays import Longs
from accelviz.plans import Plan
from accelviz.workload import Workload, nonzeros_per_warp

#: Largest load (nonzeros of the busiest warp) for which histogram bins have width 1.
SINGLE_BINS = 40


@dataclass(frozen=True, eq=False)
class LoadMap:
    """Nonzeros of every warp of every block, or of every k-th block of a large launch.

    Blocks are sampled, not averaged: a mean of neighboring blocks would hide load imbalance.

    Attributes
    ----------
    load : array of int64, shape (ceil(n_blocks / every), warps_per_block)
        Nonzeros of each warp of blocks 0, `every`, 2 `every`, ...; 0 for an idle warp.
    n_blocks : int
        Number of blocks launched.
    every : int
        Sampling distance in blocks; 1 if all blocks are included.
    worker : str
        Name of the unit that handles nonzeros: `Strategy.worker`.
    """

    load: Longs
    n_blocks: int
    every: int
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
        Consecutive slices of the workload. Each contains complete blocks.
    n_blocks, warps_per_block : int
        Launch size.
    max_columns : int
        Largest number of blocks in the result. If there are more, every k-th block is included.
    worker : str
        Name of the unit that handles nonzeros: `Strategy.worker`.
    """
    every = max(1, -(-n_blocks // max_columns))
    load = np.zeros((-(-n_blocks // every), warps_per_block), dtype=np.int64)
    for part in slices:
        if len(part):
            first = int(part.block[0])
            loads = nonzeros_per_warp(part, warps_per_block)[-first % every :: every]
            column = -(-first // every)
            load[column : column + len(loads)] = loads
    return LoadMap(load, n_blocks, every, worker)


def plan_load_map(plan: Plan) -> LoadMap:
    """Sum a plan's workload by block and warp; see `load_map`."""
    return load_map(
        plan.workload_slices(),
        plan.launch.n_blocks,
        plan.workers_per_block,
        worker=plan.strategy.worker,
    )


def group_idle_share(degrees: npt.ArrayLike, group: int) -> float:
    """Return the idle share of groups of rows that run in lockstep, 0 to 1.

    A group takes as many steps as its longest row.

    Parameters
    ----------
    degrees : array of int, shape (rows,)
        Steps of each row, in the order in which rows are assigned.
    group : int
        Number of consecutive rows per group: lanes of a warp, or warps of a block. If the last
        group has fewer rows, its missing members count as idle.
    """
    steps = np.asarray(degrees, dtype=np.int64)
    longest = np.maximum.reduceat(steps, np.arange(0, steps.size, group))
    return float(1 - steps.sum() / (longest.sum() * group))


def load_bins(largest: int) -> Longs:
    """Return the inclusive upper bounds of the bins of a histogram of warp loads.

    Parameters
    ----------
    largest : int
        Nonzeros of the busiest warp.

    Returns
    -------
    array of int64, shape (bins,)
        Ascending. 1, 2, 3, ..., `largest` if `largest` is at most `SINGLE_BINS`. Otherwise two bins
        per doubling: 1, 2, 3, 4, 6, 8, 12, 16, ... up to the first bound of at least `largest`.
    """
    if largest <= SINGLE_BINS:
        return np.arange(1, largest + 1)
    powers = 2 ** np.arange(int(largest).bit_length() + 1)
    bounds = np.unique(np.concatenate([powers, powers[1:] * 3 // 2]))
    return bounds[: int(np.searchsorted(bounds, largest)) + 1]


def example_blocks(
    degree: npt.NDArray[np.int64], busy_warps: npt.NDArray[np.int64], count: int
) -> list[int]:
    """Select blocks whose row degrees are spread evenly on a logarithmic scale.

    Parameters
    ----------
    degree : array of int64, shape (blocks,)
        Degree of each block's rows, ascending.
    busy_warps : array of int64, shape (blocks,)
        Number of warps with work in each block. Of blocks with similar degrees, the one with most
        busy warps is selected.
    count : int
        Largest number of blocks to select.

    Returns
    -------
    list of int
        Indices into the arrays, ascending.
    """
    if not degree.size:
        return []
    low, high = np.log(max(1, degree[0])), np.log(max(1, degree[-1]))
    targets = np.linspace(low, high, count)
    tolerance = (high - low) / max(1, count - 1) / 4
    distance = np.abs(np.log(np.maximum(degree, 1)) - targets[:, None])
    score = np.where(distance <= tolerance, busy_warps, -distance)
    return sorted(set(np.argmax(score, axis=1).tolist()))
