"""Communities whose sizes follow a power law, and the rows in each.

As in the LFR benchmark (Lancichinetti, Fortunato and Radicchi 2008): sizes follow a power law, and
a row goes into a random community that is large enough for the neighbors it should have there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from accelviz.arrays import Ints, Longs
from accelviz.datasets.synthetic.draws import State, below, shuffle, stream, unit
from accelviz.errors import ArgumentError

#: Vertex ids by community, or at random.
ORDERS = ("natural", "shuffled")
#: The largest community is this many times as large as the smallest.
SIZE_RATIO = 100
#: No community is smaller, nor holds more than this share of the rows.
_LEAST, _LARGEST_SHARE = 8, 0.25


@dataclass(frozen=True, eq=False)
class Layout:
    """Which community each vertex lives in, and how many of its neighbors should live there too.

    `degrees` and `local` (int64, shape (n,)) have the degree of each vertex and how many of its
    neighbors should lie in its own community. `members` (int32, shape (n,)) lists the vertices,
    community by community; `bounds` (int64) says where each community begins there, and the end.
    """

    degrees: Longs
    local: Longs
    members: Ints
    bounds: Longs


def check_order(order: object) -> None:
    """Raise an ArgumentError if `order` is not one of `ORDERS`."""
    if order not in ORDERS:
        raise ArgumentError("order", f"got {order!r}", " or ".join(map(repr, ORDERS)))


def default_sizes(n: int, nnz: int) -> tuple[int, int]:
    """Return the smallest and largest community for a graph of `n` rows and `nnz` nonzeros."""
    smallest = max(_LEAST, nnz // max(1, n) + 1)
    largest = min(SIZE_RATIO * smallest, int(_LARGEST_SHARE * n))
    return smallest, max(smallest, largest)


def lay_out(
    degrees: Longs, rows: Longs, *, locality: float, sizes: tuple[int, int], order: str, seed: int
) -> Layout:
    """Put the rows of a degree histogram into communities, and give each a vertex id.

    `rows` says how many rows have each of the `degrees` (both int64, shape (k,)). `locality` is the
    share of a row's neighbors that should be in its community, 0 to 1. `sizes` are the smallest and
    the largest community; sizes s between them occur in proportion to s^-2. Vertex ids go from
    community to community if `order` is "natural", and are at random if it is "shuffled".
    """
    n = int(rows.sum())
    bounds = _bounds(stream(seed, "sizes"), n, *sizes)
    degree_of_row = np.repeat(degrees, rows)
    wanted = _rounded(stream(seed, "local"), degree_of_row.astype(np.float64) * locality)
    built = np.diff(bounds)
    largest_first, demanding = (np.argsort(-key, kind="stable") for key in (built, wanted))
    slots = _deal(stream(seed, "slots"), bounds, largest_first, demanding, wanted)
    members = np.arange(n, dtype=np.int32)
    if order == "shuffled":
        shuffle(stream(seed, "ids"), members)
    by_vertex, local = np.empty(n, np.int64), np.empty(n, np.int64)
    by_vertex[members[slots]] = degree_of_row
    room = np.repeat(built, built) - 1
    local[members[slots]] = np.minimum(wanted, room[slots])
    return Layout(by_vertex, local, members, bounds)


@numba.njit(cache=True, nogil=True)
def _bounds(state: State, n: int, smallest: int, largest: int) -> Longs:
    """Draw sizes from the power law s^-2 until there are `n` rows; return where each begins."""
    bounds = [0]
    while bounds[-1] < n:
        size = int(smallest * largest / (largest - unit(state) * (largest - smallest)))
        if bounds[-1] + size + smallest > n:
            size = n - bounds[-1]
        bounds.append(bounds[-1] + size)
    return np.array(bounds)


@numba.njit(cache=True, nogil=True)
def _rounded(state: State, values: npt.NDArray[np.float64]) -> Longs:
    """Round up or down at random, so that the mean is kept even where all values are small."""
    rounded = np.empty(values.size, dtype=np.int64)
    for i in range(values.size):
        whole = int(values[i])
        rounded[i] = whole + (unit(state) < values[i] - whole)
    return rounded


@numba.njit(cache=True, nogil=True)
def _deal(state: State, bounds: Longs, largest_first: Longs, order: Longs, wanted: Longs) -> Any:
    """Give each row a random free slot in a community with more than `wanted` rows, if any is left.

    The most demanding rows come first, and ever smaller communities are opened.
    """
    slots = np.empty(wanted.size, dtype=np.int64)
    pool = np.empty(wanted.size, dtype=np.int64)
    free, opened = 0, 0
    for row in order:
        while opened < largest_first.size:
            start, stop = bounds[largest_first[opened]], bounds[largest_first[opened] + 1]
            if free > 0 and stop - start <= wanted[row]:
                break
            for slot in range(start, stop):
                pool[free] = slot
                free += 1
            opened += 1
        pick = below(state, free)
        slots[row] = pool[pick]
        free -= 1
        pool[pick] = pool[free]
    return slots
