"""Load balance: steps of the hardware warps of a plan, reduced to arrays that fit a picture."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from accelviz.arrays import Longs
from accelviz.partition.hardware_warps import HardwareWarps
from accelviz.plans import Plan
from accelviz.workload import Workload

#: Largest load (nonzeros of the busiest warp) for which histogram bins have width 1.
SINGLE_BINS = 40


#: Columns of a load map at most.
MAX_COLUMNS = 1200


@dataclass(frozen=True, eq=False)
class LoadMap:
    """Steps of every hardware warp of every block, or of neighboring blocks of a large launch.

    A column has one block, or up to ceil(n_blocks / columns) consecutive blocks. Their largest
    number of steps and their mean are kept, as neither shows load imbalance alone. The explorer's
    map has the same cells.

    Attributes
    ----------
    most : array of int64, shape (columns, warps_per_block)
        Largest number of steps of a warp in the column's blocks; 0 if the warp is idle in all.
    mean : array of float64, shape (columns, warps_per_block)
        Mean number of steps in the column's blocks, idle warps included.
    blocks : array of int64, shape (columns + 1,)
        Column `i` has blocks `blocks[i]` to `blocks[i + 1]` - 1.
    unit : str
        What a step is: "nonzero", or "step" if workers share a warp or a nonzero takes several.
    """

    most: Longs
    mean: npt.NDArray[np.float64]
    blocks: Longs
    unit: str = "nonzero"

    @property
    def n_blocks(self) -> int:
        """Number of blocks launched."""
        return int(self.blocks[-1])


def load_map(
    slices: Iterable[Workload],
    n_blocks: int,
    hardware: HardwareWarps | int,
    max_columns: int = MAX_COLUMNS,
) -> LoadMap:
    """Count the steps of each warp of a workload by block.

    Steps are those of a full column tile, divided by the least number of steps of a nonzero.

    Parameters
    ----------
    slices : iterable of Workload
        Consecutive slices of the workload. Each contains complete blocks.
    n_blocks : int
        Number of blocks launched.
    hardware : HardwareWarps or int
        Hardware warps of a block, `Plan.hardware`; or their number, if each is a worker.
    max_columns : int
        Largest number of columns in the result.
    """
    if isinstance(hardware, int):
        hardware = HardwareWarps(hardware, hardware)
    loads = ((int(work.block[0]), hardware.of_workload(work)) for work in slices if len(work))
    return _map_of_loads(loads, n_blocks, hardware, max_columns)


def _map_of_loads(
    slices: Iterable[tuple[int, Longs]], n_blocks: int, hardware: HardwareWarps, max_columns: int
) -> LoadMap:
    columns = min(max_columns, n_blocks)
    edges = -(-np.arange(columns + 1) * n_blocks // max(columns, 1))
    most = np.zeros((columns, hardware.warps), dtype=np.int64)
    sums = np.zeros_like(most)
    for first, loads in slices:
        steps = hardware.steps_of_nonzeros(loads)
        column = (first + np.arange(len(steps))) * columns // n_blocks
        np.maximum.at(most, column, steps)
        np.add.at(sums, column, steps)
    counts = np.maximum(np.diff(edges), 1)
    return LoadMap(most, sums / counts[:, None], edges, hardware.unit)


def plan_load_map(plan: Plan) -> LoadMap:
    """Count the steps of each warp of a plan's main call by block; see `load_map`.

    Raises
    ------
    PartitionError
        If the plan calls a library, whose work per warp is unknown.
    """
    loads = ((first, steps_of) for first, steps_of, _ in plan.load_slices())
    return _map_of_loads(loads, plan.launch.n_blocks, plan.hardware, MAX_COLUMNS)


def block_idle_shares(plan: Plan) -> npt.NDArray[np.float64]:
    """Return the idle share of each block's warp time, 0 to 1, shape (n_blocks,).

    0 for a block without a nonzero. The plan's idle share is the mean, weighted by warp time.
    """
    shares = np.zeros(plan.launch.n_blocks)
    for first, steps_of, _ in plan.load_slices():
        steps, slots = plan.hardware.block_times(steps_of)
        busy = np.divide(steps, slots, out=np.ones(len(steps)), where=slots > 0)
        shares[first : first + len(steps)] = 1 - busy
    return shares


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
