"""What a trace costs in memory transactions: requests, sectors, bank conflicts, collisions.

`traced` is the table that `trace` returns.
"""

from __future__ import annotations

import numba
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

_PLACE = ["file", "line", "kind", "space", "array"]


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
    begins = changes(*(ordered[name] for name in ("block", "step")))
    bounds = np.append(np.flatnonzero(begins), len(ordered)).astype(np.int64)
    first = ordered.iloc[bounds[:-1]].reset_index(drop=True)
    counted = _count(
        bounds,
        ordered["offset"].to_numpy(np.int64),
        ordered["bytes"].to_numpy(np.int64),
        (ordered["space"] == "shared").to_numpy(),
        (ordered["kind"] == "atomic").to_numpy(),
    )
    found = first[["block", "warp", "step", *_PLACE]].copy()
    found["lanes"] = np.diff(bounds)
    for i, name in enumerate(("bytes", "sectors", "lines", "wavefronts", "collisions")):
        found[name] = counted[:, i]
    return found


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
    found = table.groupby(_PLACE, observed=True, as_index=False)[sums].sum()
    found = found.sort_values(["file", "line"], kind="stable", ignore_index=True)
    found["lanes_per_request"] = found["lanes"] / found["requests"]
    found["sectors_per_request"] = found["sectors"] / found["requests"]
    return found


def changes(*columns: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Return where a record differs from the one before it in some column; the first one does."""
    table = np.stack([np.asarray(column) for column in columns])
    changed = np.ones(table.shape[1], dtype=bool)
    changed[1:] = (table[:, 1:] != table[:, :-1]).any(axis=0)
    return changed


@numba.njit(cache=True, nogil=True)
def _count(bounds: Longs, offset: Longs, size: Longs, shared: Flags, atomic: Flags) -> Longs:
    """Bytes, sectors, lines, wavefronts and collisions of each request."""
    counted = np.zeros((bounds.size - 1, 5), dtype=np.int64)
    seen = np.empty(offset.size, dtype=np.int64)
    for request in range(bounds.size - 1):
        start, stop = bounds[request], bounds[request + 1]
        row = counted[request]
        row[0] = size[start:stop].sum()
        if shared[start]:
            row[3] = _wavefronts(offset[start:stop], size[start], seen)
        else:
            row[1] = _distinct(offset[start:stop], SECTOR_BYTES, seen)
            row[2] = _distinct(offset[start:stop], LINE_BYTES, seen)
        if atomic[start]:
            row[4] = stop - start - _distinct(offset[start:stop], 1, seen)
    return counted


@numba.njit(cache=True, nogil=True)
def _distinct(offset: Longs, unit: int, seen: Longs) -> int:
    """Count the units that a warp's offsets lie in, and write which into `seen`.

    They are few, and mostly the last one found; numpy.unique takes seconds to compile.
    """
    count = 0
    for each in offset:
        place = each // unit
        k = count - 1
        while k >= 0 and seen[k] != place:
            k -= 1
        if k < 0:
            seen[count] = place
            count += 1
    return count


@numba.njit(cache=True, nogil=True)
def _wavefronts(offset: Longs, size: int, seen: Longs) -> int:
    """Count passes through the banks: the most distinct words that one bank has to give."""
    words = max(1, size // BANK_BYTES)
    in_bank = np.zeros(BANKS, dtype=np.int64)
    for k in range(_distinct(offset, BANK_BYTES, seen)):
        for word in range(seen[k], seen[k] + words):
            in_bank[word % BANKS] += 1
    return in_bank.max()
