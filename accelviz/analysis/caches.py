"""A cache model: from the sectors that a trace asks for to hit rates in L1 and L2.

Both levels are set-associative with least-recently-used replacement, and hold lines of four
sectors that are filled one by one. Loads go through the L1 of their SM; stores and atomics pass it
by. Real caches hash their sets, keep some stores and share L1 with shared memory, so this is a
model to compare strategies with, not a prediction of a counter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import pandas as pd

from accelviz.analysis.traffic import LINE_BYTES, SECTOR_BYTES, Flags
from accelviz.arrays import Longs
from accelviz.errors import ArgumentError, checked_integer

KIB, MIB = 1 << 10, 1 << 20


@dataclass(frozen=True)
class CacheLevel:
    """A cache of `size` bytes, whose sets have `ways` lines."""

    size: int
    ways: int

    @property
    def sets(self) -> int:
        """How many sets there are."""
        return max(1, self.size // (LINE_BYTES * self.ways))


@dataclass(frozen=True)
class GpuCaches:
    """The caches of a GPU.

    Attributes
    ----------
    sms : int
        Streaming multiprocessors, each with an L1.
    l1 : CacheLevel
        At its largest, with no shared memory taken from it.
    l2 : CacheLevel
        One for all SMs.
    """

    sms: int
    l1: CacheLevel
    l2: CacheLevel


#: Sizes from NVIDIA's architecture whitepapers; the number of ways is not published for all.
GPUS = {
    "V100": GpuCaches(80, CacheLevel(128 * KIB, 4), CacheLevel(6 * MIB, 16)),
    "T4": GpuCaches(40, CacheLevel(64 * KIB, 4), CacheLevel(4 * MIB, 16)),
    "RTX 3090": GpuCaches(82, CacheLevel(128 * KIB, 4), CacheLevel(6 * MIB, 16)),
    "A100": GpuCaches(108, CacheLevel(192 * KIB, 4), CacheLevel(40 * MIB, 16)),
    "H100": GpuCaches(132, CacheLevel(256 * KIB, 4), CacheLevel(50 * MIB, 16)),
    "H200": GpuCaches(132, CacheLevel(256 * KIB, 4), CacheLevel(50 * MIB, 16)),
}


def cache_hits(
    traced: pd.DataFrame, gpu: str | GpuCaches = "H200", *, blocks_per_sm: int = 4
) -> pd.DataFrame:
    """Send the sectors of a trace through a GPU's caches, which are empty at first.

    Parameters
    ----------
    traced : DataFrame
        From `trace`.
    gpu : str or GpuCaches
        One of `GPUS`, or caches of your own.
    blocks_per_sm : int
        Blocks that an SM works on at a time. Blocks go to the SMs in turn, and the requests of
        those that are there together take turns.

    Returns
    -------
    DataFrame
        A row for each array in global memory: `sectors` asked for, `l1_hits` and `l2_hits` of
        them, `dram_sectors` (neither), and the rates `l1_hit_rate` (of all loads' sectors) and
        `l2_hit_rate` (of what reaches the L2).

    Raises
    ------
    ArgumentError
        If there is no such GPU, or `blocks_per_sm` is below 1.
    """
    if isinstance(gpu, str):
        if gpu not in GPUS:
            raise ArgumentError("gpu", f"there is no {gpu!r}", ", ".join(GPUS))
        gpu = GPUS[gpu]
    checked_integer("blocks_per_sm", blocks_per_sm, error=ArgumentError)
    accesses = traced[traced["space"] == "global"]
    blocks, steps, offset = (accesses[name].to_numpy() for name in ("block", "step", "offset"))
    sm = blocks % gpu.sms
    wave = blocks // gpu.sms // blocks_per_sm
    order = np.lexsort((accesses["lane"], blocks, steps, wave))
    arrays, array_of = np.unique(accesses["array"].astype(str), return_inverse=True)
    # Arrays begin far from each other, so that no two share a line.
    stride = (int(offset.max(initial=0)) // LINE_BYTES + 2) * LINE_BYTES
    address = array_of * stride + offset
    counts = np.zeros((len(arrays), 4), dtype=np.int64)
    _replay(
        address[order] // SECTOR_BYTES,
        (blocks << 32 | steps)[order],
        sm[order],
        array_of[order],
        (accesses["kind"] == "load").to_numpy()[order],
        gpu.sms,
        np.array([gpu.l1.sets, gpu.l1.ways, gpu.l2.sets, gpu.l2.ways]),
        counts,
    )
    table = pd.DataFrame(counts, columns=["sectors", "loads", "l1_hits", "l2_hits"])
    table.insert(0, "array", arrays)
    table["dram_sectors"] = table["sectors"] - table["l1_hits"] - table["l2_hits"]
    table["l1_hit_rate"] = table["l1_hits"] / table["loads"].where(table["loads"] > 0)
    beyond = table["sectors"] - table["l1_hits"]
    table["l2_hit_rate"] = table["l2_hits"] / beyond.where(beyond > 0)
    return table.drop(columns="loads")


@numba.njit(cache=True, nogil=True)
def _replay(
    sector: Longs, request: Longs, sm: Longs, array: Longs, load: Flags,
    sms: int, shape: Longs, counts: Longs,
) -> None:  # fmt: skip
    """Each distinct sector of a request is one access; lanes that share it share it."""
    l1_lines = np.full((sms, shape[0], shape[1]), -1, dtype=np.int64)
    l1_valid = np.zeros(l1_lines.shape, dtype=np.uint8)
    l1_used = np.zeros(l1_lines.shape, dtype=np.int64)
    l2_lines = np.full((shape[2], shape[3]), -1, dtype=np.int64)
    l2_valid = np.zeros(l2_lines.shape, dtype=np.uint8)
    l2_used = np.zeros(l2_lines.shape, dtype=np.int64)
    asked = np.empty(64, dtype=np.int64)
    n_asked, last = 0, np.int64(-1)
    for i in range(sector.size):
        if request[i] != last:
            n_asked, last = 0, request[i]
        known = False
        for k in range(n_asked):
            known = known or asked[k] == sector[i]
        if known:
            continue
        asked[n_asked] = sector[i]
        n_asked += 1
        row = counts[array[i]]
        row[0] += 1
        if load[i]:
            row[1] += 1
            unit = sm[i]
            if _touch(l1_lines[unit], l1_valid[unit], l1_used[unit], sector[i], i + 1):
                row[2] += 1
                continue
        if _touch(l2_lines, l2_valid, l2_used, sector[i], i + 1):
            row[3] += 1


@numba.njit(cache=True, nogil=True)
def _touch(lines: Any, valid: Any, used: Any, sector: int, now: int) -> bool:
    """Look a sector up and bring it in; True if it was there."""
    per_line = LINE_BYTES // SECTOR_BYTES
    line, bit = sector // per_line, 1 << (sector % per_line)
    index = line % lines.shape[0]
    oldest = 0
    for way in range(lines.shape[1]):
        if lines[index, way] == line:
            used[index, way] = now
            hit = (valid[index, way] & bit) != 0
            valid[index, way] |= bit
            return bool(hit)
        if used[index, way] < used[index, oldest]:
            oldest = way
    lines[index, oldest] = line
    valid[index, oldest] = bit
    used[index, oldest] = now
    return False
