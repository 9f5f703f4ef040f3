"""Timelines: when each block of a launch ran, and on which streaming multiprocessor (SM).

A timeline is a table with one record per block. `block_times` makes it from a trace of a GPU,
`predicted_timeline` from a plan's workload. Pictures and summaries accept both.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from accelviz.arrays import Longs
from accelviz.compiled import njit
from accelviz.errors import ArgumentError, checked_integer
from accelviz.plans import Plan

#: Units of `start` and `stop`: of a measured timeline, and of a predicted one.
NANOSECONDS, NONZEROS = "ns", "nonzeros"
#: Predicted duration, in nonzeros, of a block without work: launching it is not free.
IDLE_BLOCK = 1


def block_times(table: pd.DataFrame) -> pd.DataFrame:
    """Combine the warp times of a trace into one record per block.

    Parameters
    ----------
    table : DataFrame
        From `trace_gpu`: one record per warp.

    Returns
    -------
    DataFrame
        One record per block, in order of tile and block, all columns int64:

        - `tile`, `block`: blockIdx.y and blockIdx.x;
        - `sm`: SM number. If the GPU's numbers have gaps, so that some are not below
          `attrs["sms"]`, the SMs are renumbered;
        - `slot`: line within the SM in a picture. Concurrent blocks of an SM have different slots.
          A block is assigned the lowest slot that is free when it starts;
        - `start`, `stop`: start of its first warp and end of its last warp, in `attrs["unit"]`,
          which is "ns".

        The other `attrs` are copied from `table`.
    """
    blocks = table.groupby(["tile", "block"], as_index=False).agg(
        sm=("sm", "first"), start=("start_ns", "min"), stop=("stop_ns", "max")
    )
    blocks = blocks.astype(np.int64)
    sms = int(table.attrs.get("sms", 0)) or int(blocks["sm"].max() if len(blocks) else -1) + 1
    if (blocks["sm"] >= sms).any():
        blocks["sm"] = np.unique(blocks["sm"], return_inverse=True)[1]
    # Sorted by stop, too: a block shorter than a clock tick frees its slot for the next one.
    ordered = blocks.sort_values(["sm", "start", "stop"], kind="stable")
    slot = _assign_slots(*(ordered[name].to_numpy() for name in ("sm", "start", "stop")))
    blocks.insert(3, "slot", pd.Series(slot, ordered.index, dtype=np.int64))
    blocks.attrs = {**table.attrs, "sms": sms, "unit": NANOSECONDS}
    return blocks


def predicted_timeline(plan: Plan, sms: int, blocks_per_sm: int) -> pd.DataFrame:
    """Predict a plan's timeline by a model in which every nonzero takes one unit of time.

    The duration of a block is the number of nonzeros of its busiest warp; without work it is
    `IDLE_BLOCK`. Blocks are scheduled in order, tile after tile, each to the slot that is free
    first. The model has no memory, caches or instructions: they explain deviations of a real GPU.

    Parameters
    ----------
    plan : Plan
    sms : int
        Number of streaming multiprocessors; `trace_gpu` returns it.
    blocks_per_sm : int
        Number of blocks that an SM holds at once; `trace_gpu` returns it.

    Returns
    -------
    DataFrame
        A timeline as of `block_times`, with `start` and `stop` in nonzeros (`attrs["unit"]`).

    Raises
    ------
    ArgumentError
        If `sms` or `blocks_per_sm` is below 1.
    PartitionError
        If the plan is a library's: its work per block is unknown.
    """
    for name, value in (("sms", sms), ("blocks_per_sm", blocks_per_sm)):
        checked_integer(name, value, error=ArgumentError)
    duration = np.maximum(_block_nonzeros(plan)[1], IDLE_BLOCK)
    tiles = plan.launch.grid[1] * plan.launch.grid[2]
    start, slot = _schedule_blocks(duration, tiles, sms * blocks_per_sm)
    tile, block = np.divmod(np.arange(start.size), max(duration.size, 1))
    # Consecutive slots belong to different SMs, so that the first blocks spread over all SMs.
    columns = {"tile": tile, "block": block, "sm": slot % sms, "slot": slot // sms}
    blocks = pd.DataFrame(columns | {"start": start, "stop": start + np.tile(duration, tiles)})
    blocks.attrs = {"sms": sms, "blocks_per_sm": blocks_per_sm, "unit": NONZEROS}
    return blocks


def with_nonzeros(blocks: pd.DataFrame, plan: Plan) -> pd.DataFrame:
    """Return a timeline with the nonzeros of each block and of its busiest warp.

    The added columns are `nonzeros` and `busiest`, from the plan's workload.

    Raises
    ------
    PartitionError
        If the plan is a library's: its work per block is unknown.
    """
    nonzeros, busiest = _block_nonzeros(plan)[:, blocks["block"].to_numpy()]
    return blocks.assign(nonzeros=nonzeros, busiest=busiest)


@dataclass(frozen=True)
class TimelineSummary:
    """How well a launch kept the SMs busy.

    Attributes
    ----------
    total : int
        Time from the start of the first block to the end of the last, in `unit`.
    busy_share : float
        Share of the SMs' time with at least one resident block, mean over the SMs, 0 to 1.
    tail : int
        Time from the first SM's end of work to the end of the launch, in `unit`. An SM without a
        block ends at 0, so that the tail is the total.
    imbalance : float
        End of work of the last SM over the mean of all SMs; 1 is perfect balance.
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
        """The tail as a share of the total, 0 to 1."""
        return self.tail / self.total if self.total else 0.0


def timeline_summary(blocks: pd.DataFrame) -> TimelineSummary:
    """Summarize how busy the SMs were during a launch.

    Parameters
    ----------
    blocks : DataFrame
        From `block_times` or `predicted_timeline`. `attrs["sms"]` is the number of SMs, including
        SMs without a block.

    Raises
    ------
    ArgumentError
        If `blocks` has no unit, or more SMs than `attrs["sms"]`.
    """
    unit = blocks.attrs.get("unit")
    if unit not in (NANOSECONDS, NONZEROS):  # some pandas operations drop attrs
        expected = "a table from block_times or predicted_timeline, its attrs kept"
        raise ArgumentError("blocks", f"attrs['unit'] is {unit!r}", expected)
    finish = sm_finishes(blocks)
    sms = finish.size
    total = int(finish.max(initial=0))
    # Each block adds the part of its time that no earlier block of its SM overlaps.
    ordered = blocks.sort_values(["sm", "start"])
    earlier_stop = ordered.groupby("sm")["stop"].cummax().groupby(ordered["sm"]).shift()
    added = ordered["stop"] - ordered["start"].clip(lower=earlier_stop)
    busy, finish_sum = int(added.clip(lower=0).sum()), int(finish.sum())
    return TimelineSummary(
        total=total,
        busy_share=busy / (sms * total) if total else 1.0,
        tail=total - int(finish.min(initial=total)),
        imbalance=sms * total / finish_sum if finish_sum else 1.0,
        unit=str(unit),
    )


def sm_finishes(blocks: pd.DataFrame) -> Longs:
    """Return the time at which each SM finished its last block.

    Parameters
    ----------
    blocks : DataFrame
        A timeline, as of `timeline_summary`.

    Returns
    -------
    array of int64, shape (sms,)
        Time since the first block's start, in the timeline's unit; 0 for an SM without a block.
    """
    sms, sm, start, stop = _checked_columns(blocks)
    finish = np.zeros(sms, dtype=np.int64)
    np.maximum.at(finish, sm, stop - start.min(initial=np.iinfo(np.int64).max))
    return finish


def occupancy(blocks: pd.DataFrame, bins: int) -> npt.NDArray[np.float64]:
    """Return the mean number of resident blocks of each SM in equal intervals of time.

    Parameters
    ----------
    blocks : DataFrame
        A timeline, as of `timeline_summary`.
    bins : int
        Number of intervals from the start of the first block to the end of the last.

    Returns
    -------
    array of float64, shape (sms, bins)
    """
    sms, sm, start, stop = _checked_columns(blocks)
    origin, end = (int(start.min()), int(stop.max())) if len(blocks) else (0, 0)
    change = np.zeros(sms * (bins + 1))
    if end > origin:
        # A block that starts at fraction f of a bin adds 1 - f to this bin and 1 to the later bins.
        # Its stop subtracts the same. The cumulative sum along time gives the counts.
        for moment, sign in ((start, 1.0), (stop, -1.0)):
            position = (moment - origin) * (bins / (end - origin))
            index = np.minimum(position.astype(np.int64), bins - 1)
            fraction = position - index
            cell = sm * (bins + 1) + index
            change += np.bincount(cell, sign * (1.0 - fraction), change.size)
            change += np.bincount(cell + 1, sign * fraction, change.size)
    resident = np.cumsum(change.reshape(sms, bins + 1), axis=1)[:, :-1]
    resident[resident < 1e-9] = 0.0  # rounding errors of the sum
    return resident


def _checked_columns(blocks: pd.DataFrame) -> tuple[int, Longs, Longs, Longs]:
    """Return the number of SMs, and the arrays `sm`, `start` and `stop` of the blocks."""
    sm, start, stop = (blocks[name].to_numpy(np.int64) for name in ("sm", "start", "stop"))
    sms, largest = int(blocks.attrs.get("sms", 1)), int(sm.max(initial=0))
    if largest >= sms:
        raise ArgumentError("blocks", f"attrs['sms'] is {sms}, but there is an SM {largest}", "all")
    return sms, sm, start, stop


def _block_nonzeros(plan: Plan) -> Longs:
    """Return nonzeros of each block and steps of its busiest warp, int64, shape (2, n_blocks)."""
    nonzeros = np.zeros((2, plan.launch.n_blocks), dtype=np.int64)
    for first, steps_of, per_worker in plan.load_slices():
        steps = plan.hardware.steps_of_nonzeros(steps_of)
        blocks = slice(first, first + len(steps))
        nonzeros[:, blocks] = per_worker.sum(axis=1), steps.max(axis=1, initial=0)
    return nonzeros


@njit(nogil=True)
def _assign_slots(sm: Longs, start: Longs, stop: Longs) -> Longs:
    """Assign each block, in order of SM and start, the lowest free slot of its SM."""
    slot = np.empty(sm.size, np.int64)
    free_from = np.empty(32, np.int64)  # stop of the last block in each used slot
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


@njit(nogil=True)
def _schedule_blocks(duration: Longs, tiles: int, slots: int) -> Any:
    """Assign the blocks in order to the slot that is free first; ties go to the lowest slot."""
    start = np.empty(tiles * duration.size, np.int64)
    slot = np.empty_like(start)
    free = [(0, k) for k in range(slots)]  # ascending, hence a heap
    for i in range(start.size):
        start[i], slot[i] = free[0]
        heapq.heapreplace(free, (start[i] + duration[i % duration.size], slot[i]))
    return start, slot
