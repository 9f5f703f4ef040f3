"""What a trace costs in memory transactions: requests, sectors, bank conflicts, collisions.

`traced` is the table that `trace` returns.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from accelviz.arrays import Longs
from accelviz.devices import trace
from accelviz.plans import Plan

Flags = npt.NDArray[np.bool_]
#: Bytes of a sector and of a cache line of every NVIDIA GPU since Pascal.
SECTOR_BYTES, LINE_BYTES = 32, 128
#: Shared memory: banks, and bytes of a word of a bank.
BANKS, BANK_BYTES = 32, 4
#: Blocks traced at a time where a whole launch is counted.
_BLOCKS = 64

_SITE = ["file", "line", "kind", "space", "array"]


def requests(traced: pd.DataFrame) -> pd.DataFrame:
    """Put the lanes of each request together and count what it costs.

    Returns
    -------
    DataFrame
        A row for each request (one instruction of one warp): `block`, `warp`, `step`, `file`,
        `line`, `kind`, `space`, `array`, and

        - `lanes`: lanes that take part;
        - `bytes`: what they ask for, repetitions included;
        - `sectors`, `lines`: distinct 32-byte sectors and 128-byte lines (0 for shared memory);
        - `wavefronts`: passes through the banks of shared memory, 1 if no two lanes want different
          words of one bank (0 for global memory);
        - `collisions`: lanes of an atomic whose address another lane of the request has too.
    """
    ordered = traced.sort_values(["block", "step", "lane"], kind="stable")
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
    # Each word that a lane wants, and how many words a bank then has to give.
    words = np.maximum(1, size[shared] // BANK_BYTES)
    word = np.repeat(offset[shared] // BANK_BYTES - np.cumsum(words) + words, words)
    word += np.arange(word.size)
    wanted = pd.DataFrame({"request": np.repeat(request[shared], words), "word": word})
    wanted = wanted.drop_duplicates()
    per_bank = wanted.groupby([wanted["request"], wanted["word"] % BANKS]).size()
    most = per_bank.groupby("request").max()
    table["wavefronts"] = most.reindex(range(count), fill_value=0).to_numpy(np.int64)
    distinct = _distinct(request, offset, count)
    table["collisions"] = (table["lanes"] - distinct).where(table["kind"] == "atomic", 0)
    return table


def _distinct(request: Longs, value: Longs, count: int) -> Longs:
    """Count the distinct values of each of `count` requests."""
    pairs = pd.DataFrame({"request": request, "value": value}).drop_duplicates()
    return np.bincount(pairs["request"], minlength=count)


def traffic(traced: pd.DataFrame) -> pd.DataFrame:
    """Sum the requests of a trace by source line, kind and array.

    Returns
    -------
    DataFrame
        A row for each line, kind and array, in the order of the source: `requests`, `lanes`,
        `bytes`, `sectors`, `lines`, `wavefronts`, `collisions` in all, `lanes_per_request`, and
        `sectors_per_request`, which is 4 where 32 lanes read 4 neighboring bytes each.
    """
    return _summed(requests(traced).assign(requests=1))


def launch_traffic(plan: Plan, *dense: npt.ArrayLike) -> pd.DataFrame:
    """Trace all blocks of a plan's kernel and return its `traffic`.

    Parameters
    ----------
    plan : Plan
    *dense : array
        The dense inputs of its operation, in order.

    Returns
    -------
    DataFrame
        As `traffic` gives it. Blocks are traced a few at a time, so that the memory stays bounded.
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
    """Return where a record differs from the one before it in some column; the first one does."""
    table = np.stack([np.asarray(column) for column in columns])
    changed = np.ones(table.shape[1], dtype=bool)
    changed[1:] = (table[:, 1:] != table[:, :-1]).any(axis=0)
    return changed
