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
class GpuCaches:
    """The caches of a GPU.

    Attributes
    ----------
    sms : int
        Streaming multiprocessors, each with an L1.
    l1_bytes, l2_bytes : int
        The L1 at its largest, with no shared memory taken from it, and the L2 that all SMs share.
    l1_ways, l2_ways : int
        Lines of a set.
    """

    sms: int
    l1_bytes: int
    l2_bytes: int
    l1_ways: int = 4
    l2_ways: int = 16


#: Sizes from NVIDIA's architecture whitepapers; the number of ways is not published for all.
GPUS = {
    "V100": GpuCaches(80, 128 * KIB, 6 * MIB),
    "T4": GpuCaches(40, 64 * KIB, 4 * MIB),
    "RTX 3090": GpuCaches(82, 128 * KIB, 6 * MIB),
    "A100": GpuCaches(108, 192 * KIB, 40 * MIB),
    "H100": GpuCaches(132, 256 * KIB, 50 * MIB),
    "H200": GpuCaches(132, 256 * KIB, 50 * MIB),
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
    accesses = traced[traced["space"] == "global"].copy()
    arrays, accesses["array"] = np.unique(accesses["array"].astype(str), return_inverse=True)
    # Arrays begin far from each other, so that no two share a line.
    stride = int(accesses["offset"].max() if len(accesses) else 0) // LINE_BYTES + 2
    lines = accesses["array"] * stride
    accesses["sector"] = lines * (LINE_BYTES // SECTOR_BYTES) + accesses["offset"] // SECTOR_BYTES
    accesses["wave"] = accesses["block"] // gpu.sms // blocks_per_sm
    ordered = accesses.sort_values(["wave", "step", "block", "lane"], kind="stable")
    # Each distinct sector of a request is one access; lanes that share it share it.
    ordered = ordered.drop_duplicates(["step", "block", "sector"])
    load = (ordered["kind"] == "load").to_numpy()
    sector, block = (ordered[name].to_numpy(np.int64) for name in ("sector", "block"))
    levels = ((gpu.l1_bytes, gpu.l1_ways), (gpu.l2_bytes, gpu.l2_ways))
    sizes = np.array([(max(1, size // (LINE_BYTES * ways)), ways) for size, ways in levels])
    l1, l2 = _replay(sector, block % gpu.sms, load, gpu.sms, sizes)
    counts = pd.DataFrame({"array": ordered["array"], "sectors": 1, "loads": load})
    table = counts.assign(l1_hits=l1, l2_hits=l2).groupby("array", as_index=False).sum()
    table["array"] = arrays
    beyond = table["sectors"] - table["l1_hits"]
    table["dram_sectors"] = beyond - table["l2_hits"]
    loads = table.pop("loads")
    table["l1_hit_rate"] = table["l1_hits"] / loads.where(loads > 0)
    table["l2_hit_rate"] = table["l2_hits"] / beyond.where(beyond > 0)
    return table


@numba.njit(cache=True, nogil=True)
def _replay(sector: Longs, sm: Longs, load: Flags, sms: int, levels: Longs) -> tuple[Flags, Flags]:
    """Say which accesses hit in L1, and which of the others in L2."""
    # Of each way: the line, a bit for each of its sectors that is there, and when it was used.
    l1 = np.full((sms, levels[0, 0], levels[0, 1], 3), -1, dtype=np.int64)
    l2 = np.full((levels[1, 0], levels[1, 1], 3), -1, dtype=np.int64)
    hits = np.zeros((2, sector.size), dtype=np.bool_)
    for i in range(sector.size):
        hits[0, i] = load[i] and _touch(l1[sm[i]], sector[i], i)
        hits[1, i] = not hits[0, i] and _touch(l2, sector[i], i)
    return hits[0], hits[1]


@numba.njit(cache=True, nogil=True)
def _touch(cache: Any, sector: int, now: int) -> bool:
    """Look a sector up and bring it in; True if it was there."""
    per_line = LINE_BYTES // SECTOR_BYTES
    line, bit = sector // per_line, 1 << (sector % per_line)
    ways = cache[line % cache.shape[0]]
    oldest = ways[0]
    for way in ways:
        if way[0] == line:
            hit = (way[1] & bit) != 0
            way[1], way[2] = way[1] | bit, now
            return bool(hit)
        if way[2] < oldest[2]:
            oldest = way
    oldest[0], oldest[1], oldest[2] = line, bit, now
    return False
