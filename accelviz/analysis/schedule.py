"""When blocks ran on which SM: as a GPU recorded it, and as the workload alone predicts it.

Both are one table, a row for each block, so that one picture and one summary serve both.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import pandas as pd

from accelviz.arrays import Longs
from accelviz.errors import ArgumentError, checked_integer
from accelviz.plans import Plan
from accelviz.workload import nonzeros_per_warp

#: Units of `start` and `stop`: of a measured table, and of a predicted one.
NANOSECONDS, NONZEROS = "ns", "nonzeros"
#: What a block without work takes in a prediction, in nonzeros: to come and go is not free.
IDLE_BLOCK = 1


def block_times(table: pd.DataFrame) -> pd.DataFrame:
    """Sum up the warps of each block.

    Parameters
    ----------
    table : DataFrame
        From `trace_gpu`: a row for each warp.

    Returns
    -------
    DataFrame
        A row for each block, in order of tile and block, all columns int64:

        - `tile`, `block`: blockIdx.y and blockIdx.x;
        - `sm`: the streaming multiprocessor it ran on. Where the GPU's numbers have gaps, so that
          some are not below `attrs["sms"]`, they are counted anew;
        - `slot`: its lane in the picture. Of the blocks on one SM, those that ran at the same time
          have different ones: each has the first that is free when it starts;
        - `start`, `stop`: when its first warp began and its last one ended, in `attrs["unit"]`,
          here "ns".

        The other `attrs` are those of `table`.
    """
    blocks = table.groupby(["tile", "block"], as_index=False).agg(
        sm=("sm", "first"), start=("start_ns", "min"), stop=("stop_ns", "max")
    )
    blocks = blocks.astype(np.int64)
    sms = int(table.attrs.get("sms", 0)) or int(blocks["sm"].max() if len(blocks) else -1) + 1
    if (blocks["sm"] >= sms).any():
        blocks["sm"] = np.unique(blocks["sm"], return_inverse=True)[1]
    # Of those that start together, first the ones that the clock's step gives no time at all.
    ordered = blocks.sort_values(["sm", "start", "stop"], kind="stable")
    slot = _pack(*(ordered[name].to_numpy() for name in ("sm", "start", "stop")))
    blocks.insert(3, "slot", pd.Series(slot, ordered.index, dtype=np.int64))
    blocks.attrs = {**table.attrs, "sms": sms, "unit": NANOSECONDS}
    return blocks


def predicted_timeline(plan: Plan, sms: int, blocks_per_sm: int) -> pd.DataFrame:
    """Hand out a plan's blocks as a GPU would if time were nothing but nonzeros.

    A block takes as long as its busiest warp has nonzeros, one without work takes `IDLE_BLOCK`.
    Blocks go out in order, the tiles one after the other, each to the slot that is free first. It
    knows of no memory, no caches and no instructions: where a GPU does otherwise, they are why.

    Parameters
    ----------
    plan : Plan
    sms : int
        Streaming multiprocessors.
    blocks_per_sm : int
        Blocks that an SM holds at once. `trace_gpu` gives both.

    Returns
    -------
    DataFrame
        As of `block_times`, with `start` and `stop` in nonzeros (`attrs["unit"]`).

    Raises
    ------
    ArgumentError
        If `sms` or `blocks_per_sm` is below 1.
    PartitionError
        If the plan is a library's, which does not say what its blocks do.
    """
    for name, value in (("sms", sms), ("blocks_per_sm", blocks_per_sm)):
        checked_integer(name, value, error=ArgumentError)
    duration = np.maximum(_per_block(plan)[1], IDLE_BLOCK)
    tiles = plan.launch.grid[1] * plan.launch.grid[2]
    start, lane = _hand_out(duration, tiles, sms * blocks_per_sm)
    tile, block = np.divmod(np.arange(start.size), max(duration.size, 1))
    # The first blocks go to the SMs in turn, as on a GPU, not all to the first SM.
    stop = start + np.tile(duration, tiles)
    columns = (tile, block, lane % sms, lane // sms, start, stop)
    names = ("tile", "block", "sm", "slot", "start", "stop")
    blocks = pd.DataFrame(dict(zip(names, columns, strict=True)))
    blocks.attrs = {"sms": sms, "blocks_per_sm": blocks_per_sm, "unit": NONZEROS}
    return blocks


def with_nonzeros(blocks: pd.DataFrame, plan: Plan) -> pd.DataFrame:
    """Return the table with columns `nonzeros`, of the block in the plan's workload, and `busiest`.

    That is how many of them its busiest warp has.

    Raises
    ------
    PartitionError
        If the plan is a library's, which does not say what its blocks do.
    """
    nonzeros, busiest = _per_block(plan)[:, blocks["block"].to_numpy()]
    return blocks.assign(nonzeros=nonzeros, busiest=busiest)


@dataclass(frozen=True)
class TimelineSummary:
    """How well a launch kept the SMs busy.

    Attributes
    ----------
    total : int
        From the start of the first block to the end of the last, in `unit`.
    busy_share : float
        Share of the SMs' time in which they had at least one block, 0 to 1.
    tail : int
        From when the first SM had its last block behind it until the end, in `unit`; all of the
        time where an SM never had a block.
    imbalance : float
        When the last SM ended over when they ended on average; 1 is perfect balance.
    unit : str
        "ns" or "nonzeros".
    """

    total: int
    busy_share: float
    tail: int
    imbalance: float
    unit: str

    @property
    def tail_share(self) -> float:
        """Share of the total that the tail is, 0 to 1."""
        return self.tail / self.total if self.total else 0.0


def timeline_summary(blocks: pd.DataFrame) -> TimelineSummary:
    """Sum up the blocks of a launch.

    Parameters
    ----------
    blocks : DataFrame
        From `block_times` or `predicted_timeline`. `attrs["sms"]` counts the streaming
        multiprocessors, those without a block included.

    Raises
    ------
    ArgumentError
        If `blocks` has no unit, or more SMs than `attrs["sms"]`.
    """
    unit = blocks.attrs.get("unit")
    if unit not in (NANOSECONDS, NONZEROS):  # as after an operation of pandas that drops attrs
        wanted = "a table from block_times or predicted_timeline, its attrs kept"
        raise ArgumentError("blocks", f"attrs['unit'] is {unit!r}", wanted)
    finish = sm_finishes(blocks)
    sms = finish.size
    total = int(finish.max(initial=0))
    # What a block adds to its SM's time is what lies after all that started before it.
    ordered = blocks.sort_values(["sm", "start"])
    before = ordered.groupby("sm")["stop"].cummax().groupby(ordered["sm"]).shift()
    added = ordered["stop"] - ordered["start"].clip(lower=before)
    busy, spent = int(added.clip(lower=0).sum()), int(finish.sum())
    return TimelineSummary(
        total=total,
        busy_share=busy / (sms * total) if total else 1.0,
        tail=total - int(finish.min(initial=total)),
        imbalance=sms * total / spent if spent else 1.0,
        unit=str(unit),
    )


def sm_finishes(blocks: pd.DataFrame) -> Longs:
    """Return when each SM ended its last block, from the start of the launch; 0 without a block.

    Parameters
    ----------
    blocks : DataFrame
        As of `timeline_summary`.

    Returns
    -------
    array of int64, shape (sms,)
    """
    sms, sm, start, stop = _columns(blocks)
    finish = np.zeros(sms, dtype=np.int64)
    np.maximum.at(finish, sm, stop - start.min(initial=np.iinfo(np.int64).max))
    return finish


def occupancy(blocks: pd.DataFrame, bins: int) -> npt.NDArray[np.float64]:
    """Count the blocks that each SM holds, on average over each of `bins` equal stretches of time.

    Parameters
    ----------
    blocks : DataFrame
        As of `timeline_summary`.
    bins : int
        Stretches from the start of the first block to the end of the last.

    Returns
    -------
    array of float64, shape (sms, bins)
    """
    sms, sm, start, stop = _columns(blocks)
    origin, end = (int(start.min()), int(stop.max())) if len(blocks) else (0, 0)
    change = np.zeros(sms * (bins + 1))
    if end > origin:
        # A block that comes within a bin counts for the rest of it there, and in full from the
        # next one on: two changes, summed along time at the end.
        for moment, sign in ((start, 1.0), (stop, -1.0)):
            position = (moment - origin) * (bins / (end - origin))
            at = np.minimum(position.astype(np.int64), bins - 1)
            late = position - at
            cell = sm * (bins + 1) + at
            change += np.bincount(cell, sign * (1.0 - late), change.size)
            change += np.bincount(cell + 1, sign * late, change.size)
    held = np.cumsum(change.reshape(sms, bins + 1), axis=1)[:, :-1]
    # What is left of a block after it went is rounding.
    held[held < 1e-9] = 0.0
    return held


def _columns(blocks: pd.DataFrame) -> tuple[int, Longs, Longs, Longs]:
    """Return how many SMs there are, and of each block its SM, start and stop."""
    sm, start, stop = (blocks[name].to_numpy(np.int64) for name in ("sm", "start", "stop"))
    sms, largest = int(blocks.attrs.get("sms", 1)), int(sm.max(initial=0))
    if largest >= sms:
        raise ArgumentError("blocks", f"attrs['sms'] is {sms}, but there is an SM {largest}", "all")
    return sms, sm, start, stop


def _per_block(plan: Plan) -> Longs:
    """Return nonzeros of each block of one tile, and of its busiest warp, shape (2, blocks)."""
    totals = np.zeros((2, plan.launch.n_blocks), dtype=np.int64)
    for part in plan.workload_slices():
        if len(part):
            per_warp = nonzeros_per_warp(part, plan.workers_per_block)
            first = int(part.block[0])
            of_slice = per_warp.sum(axis=1), per_warp.max(axis=1, initial=0)
            totals[:, first : first + len(per_warp)] = of_slice
    return totals


@numba.njit(cache=True, nogil=True)
def _pack(sm: Longs, start: Longs, stop: Longs) -> Longs:
    """Give each block, in order of SM and start, the first slot of its SM that is free."""
    slot = np.empty(sm.size, np.int64)
    free_from = np.empty(32, np.int64)
    used = 0
    for i in range(sm.size):
        if i and sm[i] != sm[i - 1]:
            used = 0
        k = 0
        while k < used and free_from[k] > start[i]:
            k += 1
        if k == used:
            used += 1
            if used > free_from.size:
                free_from = np.concatenate((free_from, free_from))
        free_from[k] = stop[i]
        slot[i] = k
    return slot


@numba.njit(cache=True, nogil=True)
def _hand_out(duration: Longs, tiles: int, slots: int) -> Any:
    """Give each block in turn to the slot that is free first, of several to the lowest."""
    start = np.empty(tiles * duration.size, np.int64)
    slot = np.empty_like(start)
    free = [(0, k) for k in range(slots)]  # ascending, hence a heap
    for i in range(start.size):
        start[i], slot[i] = free[0]
        heapq.heapreplace(free, (start[i] + duration[i % duration.size], slot[i]))
    return start, slot
