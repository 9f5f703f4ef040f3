"""How evenly a workload loads the warps, in arrays small enough to draw."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from accelviz.arrays import Longs
from accelviz.plans import Plan
from accelviz.workload import Workload, nonzeros_per_warp

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
    worker : str
        What a line of the map is, as `Strategy.worker` says.
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
    """Return the share of steps that members of a group wait, if it lasts as long as its longest.

    Parameters
    ----------
    degrees : array of int, shape (rows,)
        Steps of each row, in the order in which rows are dealt out.
    group : int
        Neighboring rows in a group: the lanes of a warp, the warps of a block. Members that the
        last group lacks wait too.
    """
    steps = np.asarray(degrees, dtype=np.int64)
    longest = np.maximum.reduceat(steps, np.arange(0, steps.size, group))
    return float(1 - steps.sum() / (longest.sum() * group))


def load_bins(largest: int) -> Longs:
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
