"""Communities of a generated graph: their sizes, and the rows in each.

As in the LFR benchmark (Lancichinetti, Fortunato and Radicchi 2008), sizes follow a power law, and
each row is in a random community that is large enough for the row's local neighbors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.arrays import Ints, Longs
from accelviz.compiled import njit
from accelviz.datasets.synthetic.draws import State, below, shuffle, stream, unit

#: Order of the vertex ids: by community, or random.
ORDERS = ("natural", "shuffled")
#: Largest community size over the smallest.
SIZE_RATIO = 100
#: Smallest number of rows, and largest share of all rows, of a community.
_MIN_SIZE, _MAX_SHARE = 8, 0.25


@dataclass(frozen=True, eq=False)
class Layout:
    """The community, degree and number of local neighbors of each vertex.

    `degrees` and `local` (int64, shape (n,)) are the degree of each vertex and the number of its
    neighbors that should be in its community. `members` (int32, shape (n,)) lists the vertices by
    community, `bounds` (int64, shape (communities + 1,)) the start of each community in it.
    """

    degrees: Longs
    local: Longs
    members: Ints
    bounds: Longs


def default_sizes(n: int, nnz: int) -> tuple[int, int]:
    """Return the smallest and largest community size for `n` rows and `nnz` nonzeros."""
    smallest = max(_MIN_SIZE, nnz // max(1, n) + 1)
    largest = min(SIZE_RATIO * smallest, int(_MAX_SHARE * n))
    return smallest, max(smallest, largest)


def lay_out(
    degrees: Longs, rows: Longs, *, locality: float, sizes: tuple[int, int], order: str, seed: int
) -> Layout:
    """Assign the rows of a degree histogram to communities and vertex ids.

    `degrees` and `rows` are the histogram, int64, shape (k,). `locality` is the share of a row's
    neighbors that should be in its community, 0 to 1. `sizes` are the smallest and the largest
    community size; sizes s between them have probabilities in proportion to s^-2. Vertex ids are
    contiguous within a community for the `order` "natural", and random for "shuffled".
    """
    n = int(rows.sum())
    bounds = _bounds(stream(seed, "sizes"), n, *sizes)
    degree_of_row = np.repeat(degrees, rows)
    local_of_row = _rounded(stream(seed, "local"), degree_of_row.astype(np.float64) * locality)
    size = np.diff(bounds)
    communities, row_order = (np.argsort(-key, kind="stable") for key in (size, local_of_row))
    slots = _assign_slots(stream(seed, "slots"), bounds, communities, row_order, local_of_row)
    members = np.arange(n, dtype=np.int32)
    if order == "shuffled":
        shuffle(stream(seed, "ids"), members)
    degree_of_vertex, local = np.empty(n, np.int64), np.empty(n, np.int64)
    degree_of_vertex[members[slots]] = degree_of_row
    max_local = np.repeat(size, size) - 1
    local[members[slots]] = np.minimum(local_of_row, max_local[slots])
    return Layout(degree_of_vertex, local, members, bounds)


@njit(nogil=True)
def _bounds(state: State, n: int, smallest: int, largest: int) -> Longs:
    """Draw sizes from the power law s^-2 until they add up to `n`; return their bounds."""
    bounds = [0]
    while bounds[-1] < n:
        size = int(smallest * largest / (largest - unit(state) * (largest - smallest)))
        if bounds[-1] + size + smallest > n:
            size = n - bounds[-1]
        bounds.append(bounds[-1] + size)
    return np.array(bounds)


@njit(nogil=True)
def _rounded(state: State, values: npt.NDArray[np.float64]) -> Longs:
    """Round up or down at random, which preserves the mean even of small values."""
    rounded = np.empty(values.size, dtype=np.int64)
    for i in range(values.size):
        floor = int(values[i])
        rounded[i] = floor + (unit(state) < values[i] - floor)
    return rounded


@njit(nogil=True)
def _assign_slots(
    state: State, bounds: Longs, communities: Longs, row_order: Longs, local_of_row: Longs
) -> Any:
    """Assign each row a random free slot of a community that is large enough, if possible.

    A community of s slots is large enough for rows with fewer than s local neighbors. Rows are in
    descending order of `local_of_row`, communities in descending order of size: more and more
    communities are added to the pool of free slots.
    """
    slots = np.empty(local_of_row.size, dtype=np.int64)
    pool = np.empty(local_of_row.size, dtype=np.int64)
    free, opened = 0, 0
    for row in row_order:
        while opened < communities.size:
            start, stop = bounds[communities[opened]], bounds[communities[opened] + 1]
            if free > 0 and stop - start <= local_of_row[row]:
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
