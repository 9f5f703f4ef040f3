"""Memory transactions of a trace: requests, sectors, bank conflicts, collisions of atomics.

A trace is the table that `accelviz.trace` returns, with one record per access of a lane. A request
is one memory instruction of one warp.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from accelviz.arrays import Longs
from accelviz.devices import trace
from accelviz.plans import Plan

#: Bytes of a sector and of a cache line of NVIDIA GPUs since Pascal.
SECTOR_BYTES, LINE_BYTES = 32, 128
#: Shared memory: number of banks, and bytes per word of a bank.
BANKS, BANK_BYTES = 32, 4
#: Number of blocks that `launch_traffic` traces at a time.
_BLOCKS = 64

_SITE = ["file", "line", "kind", "space", "array"]


def requests(traced: pd.DataFrame) -> pd.DataFrame:
    """Combine the accesses of each request and count its memory transactions.

    Returns
    -------
    DataFrame
        One record per request: `block`, `warp`, `step`, `file`, `line`, `kind`, `space`, `array`,
        and

        - `lanes`: number of participating lanes;
        - `bytes`: requested bytes, counted once per lane;
        - `sectors`, `lines`: distinct 32-byte sectors and 128-byte lines (0 for shared memory);
        - `wavefronts`: passes through the banks of shared memory; 1 without bank conflicts (0 for
          global memory);
        - `collisions`: lanes of an atomic minus its distinct addresses.
    """
    ordered = traced.iloc[np.lexsort([traced[name] for name in ("lane", "step", "block")])]
    begins = changes(ordered["block"], ordered["step"])
    request = np.cumsum(begins) - 1
    table = ordered[begins][["block", "warp", "step", *_SITE]].reset_index(drop=True)
    offset, size = (ordered[name].to_numpy(np.int64) for name in ("offset", "bytes"))
    shared = (ordered["space"] == "shared").to_numpy()
    count = len(table)
    table["lanes"] = np.bincount(request, minlength=count)
    table["bytes"] = np.bincount(request, size, minlength=count).astype(np.int64)
    for name, unit in (("sectors", SECTOR_BYTES), ("lines", LINE_BYTES)):
        table[name] = _distinct(request[~shared], offset[~shared] // unit, count)
    # A request takes as many wavefronts as the largest number of distinct words in one bank.
    n_words = np.maximum(1, size[shared] // BANK_BYTES)
    word = np.repeat(offset[shared] // BANK_BYTES - np.cumsum(n_words) + n_words, n_words)
    word += np.arange(word.size)
    words = pd.DataFrame({"request": np.repeat(request[shared], n_words), "word": word})
    words = words.drop_duplicates()
    bank_words = words.groupby([words["request"], words["word"] % BANKS]).size()
    wavefronts = bank_words.groupby("request").max()
    table["wavefronts"] = wavefronts.reindex(range(count), fill_value=0).to_numpy(np.int64)
    distinct = _distinct(request, offset, count)
    table["collisions"] = (table["lanes"] - distinct).where(table["kind"] == "atomic", 0)
    return table


def _distinct(request: Longs, value: Longs, count: int) -> Longs:
    """Count the distinct values of each request."""
    low, high = (int(value.min()), int(value.max())) if value.size else (0, 0)
    span = high - low + 1
    if count * span >= 1 << 63:  # number the values, so that pairs are integers of 64 bits
        values, value = np.unique(value, return_inverse=True)
        low, span = 0, values.size
    # Lanes often ascend, and merging sorted runs takes half the time of numpy's default.
    pairs = np.sort(request * span + (value - low), kind="stable")
    return np.bincount(pairs[changes(pairs)] // span, minlength=count)


def traffic(traced: pd.DataFrame) -> pd.DataFrame:
    """Sum the requests of a trace by source line, kind and array.

    Returns
    -------
    DataFrame
        One record per source line, kind and array, in the order of the source: the sums `requests`,
        `lanes`, `bytes`, `sectors`, `lines`, `wavefronts` and `collisions`, and the means
        `lanes_per_request` and `sectors_per_request` (4 if 32 lanes read 32 neighboring floats).
    """
    return _summed(requests(traced).assign(requests=1))


def launch_traffic(plan: Plan, *dense: npt.ArrayLike) -> pd.DataFrame:
    """Trace all blocks of a plan's kernel and return its `traffic`.

    Parameters
    ----------
    plan : Plan
    *dense : array
        Dense inputs of the plan's operation, in order.

    Returns
    -------
    DataFrame
        As of `traffic`. Blocks are traced a few at a time to bound the memory.
    """
    total = int(np.prod(plan.launch.grid))
    parts = [
        traffic(trace(plan, *dense, block=range(first, min(first + _BLOCKS, total))))
        for first in range(0, total, _BLOCKS)
    ]
    if not parts:
        return traffic(trace(plan, *dense, block=[]))
    return _summed(pd.concat(parts, ignore_index=True))


def _summed(table: pd.DataFrame) -> pd.DataFrame:
    sums = ["requests", "lanes", "bytes", "sectors", "lines", "wavefronts", "collisions"]
    table = table.groupby(_SITE, observed=True, as_index=False)[sums].sum()
    table = table.sort_values(["file", "line"], kind="stable", ignore_index=True)
    table["lanes_per_request"] = table["lanes"] / table["requests"]
    table["sectors_per_request"] = table["sectors"] / table["requests"]
    return table


def changes(*columns: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Return which records differ from the previous record in some column; True for the first."""
    table = np.stack([np.asarray(column) for column in columns])
    changed = np.ones(table.shape[1], dtype=bool)
    changed[1:] = (table[:, 1:] != table[:, :-1]).any(axis=0)
    return changed
