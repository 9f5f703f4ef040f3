"""The columns of made-up graphs, each once in a row: for given degrees and communities.

**Symmetric.** Each row has as many stubs (half edges) as nonzeros, and a perfect matching of the
stubs is a symmetric matrix with exactly these degrees. The stubs are the places of the CSR arrays:
place `s` holds the row that the mate of `s` belongs to.

Rows take mates in turn, the longest first, each from the free stubs at random: first inside every
community, then everywhere. A row takes neither itself nor a row twice; drawing by stub makes
columns as popular as their degree. The last few stubs, which find no mate, are paired anyway. Each
pair that joins a row to itself or twice to the same row is then swapped with a random other pair,
which keeps every degree.

**Directed.** Each row draws its columns by popularity, from its community and from everywhere.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from accelviz.arrays import Ints, Longs
from accelviz.datasets.synthetic.communities import Layout
from accelviz.datasets.synthetic.draws import State, below, stream

#: Draws for one mate before its stub is left over, and partners to try for a swap.
_DRAWS, _SWAPS = 40, 10_000
#: Draws for one neighbor before it is sought elsewhere: its community is then nearly used up.
_TRIES = 20
_FREE = -1

Places = npt.NDArray[Any]  # int32, or int64 from 2^31 nonzeros on


def undirected_columns(layout: Layout, seed: int) -> tuple[Longs, Any] | None:
    """Draw a symmetric matrix with the layout's degrees and communities.

    If the degrees add up to an odd number, one row gets a nonzero on the diagonal: it counts once,
    where any other edge counts twice.

    Returns row pointers (int64, shape (n + 1,)) and column indices (int32, (nnz,), unsorted inside
    a row). Or None, if some pair could not be swapped: the degrees allow hardly any such matrix.
    """
    row_pointers = np.concatenate([[0], np.cumsum(layout.degrees)])
    nnz = int(row_pointers[-1])
    index = np.dtype(np.int32 if nnz <= np.iinfo(np.int32).max else np.int64)
    owner = np.repeat(np.arange(layout.degrees.size, dtype=np.int32), layout.degrees)
    mate = np.full(nnz, _FREE, dtype=index)
    state = stream(seed, "stubs")
    _match(state, row_pointers, owner, mate, layout.local, layout.members, layout.bounds)
    everyone = np.argsort(-layout.degrees, kind="stable").astype(np.int32)
    whole = np.array([0, everyone.size])
    _match(state, row_pointers, owner, mate, layout.degrees, everyone, whole)
    rest = np.flatnonzero(mate == _FREE).astype(index)
    partners = rest.copy()  # the next one; a last one by itself becomes a nonzero on the diagonal
    even = rest.size - rest.size % 2
    partners[:even] = rest[:even].reshape(-1, 2)[:, ::-1].ravel()
    mate[rest] = partners
    if not _repair(state, row_pointers, owner, mate, rest.size % 2 == 1):
        return None
    return row_pointers, owner[mate]


@numba.njit(cache=True, nogil=True)
def _match(
    state: State,
    row_pointers: Longs,
    owner: Ints,
    mate: Places,
    take: Longs,
    members: Ints,
    bounds: Longs,
) -> None:
    """Find mates inside each group for the first `take[v]` stubs of each row `v` of it."""
    adjacent_to = np.full(row_pointers.size - 1, -1, dtype=np.int32)
    place_in_pool = np.empty(mate.size, dtype=mate.dtype)
    for group in range(bounds.size - 1):
        inside = members[bounds[group] : bounds[group + 1]]
        inside = inside[np.argsort(-take[inside], kind="mergesort")]
        pool = np.empty(take[inside].sum(), dtype=mate.dtype)
        free = 0
        for v in inside:
            for s in range(row_pointers[v], row_pointers[v] + take[v]):
                if mate[s] == _FREE:
                    pool[free] = s
                    place_in_pool[s] = free
                    free += 1
        for v in inside:
            adjacent_to[v] = v
            for s in range(row_pointers[v], row_pointers[v + 1]):
                if mate[s] != _FREE:
                    adjacent_to[owner[mate[s]]] = v
            for s in range(row_pointers[v], row_pointers[v] + take[v]):
                if mate[s] != _FREE:
                    continue
                for _ in range(_DRAWS):
                    t = pool[below(state, free)]
                    if adjacent_to[owner[t]] != v:
                        adjacent_to[owner[t]] = v
                        mate[s], mate[t] = t, s
                        free = _remove(pool, place_in_pool, free, s)
                        free = _remove(pool, place_in_pool, free, t)
                        break


@numba.njit(cache=True, inline="always")
def _remove(pool: Places, place_in_pool: Places, free: int, s: int) -> int:
    """Take a stub out of the pool; the last one fills its place."""
    last, position = pool[free - 1], place_in_pool[s]
    pool[position] = last
    place_in_pool[last] = position
    return free - 1


@numba.njit(cache=True, nogil=True)
def _edges(row_pointers: Longs, owner: Ints, mate: Places, v: int, w: int) -> int:
    """How many pairs join rows `v` and `w`, counted in the shorter row."""
    if row_pointers[v + 1] - row_pointers[v] > row_pointers[w + 1] - row_pointers[w]:
        v, w = w, v
    count = 0
    for s in range(row_pointers[v], row_pointers[v + 1]):
        count += owner[mate[s]] == w
    return count


@numba.njit(cache=True, nogil=True)
def _swap(state: State, row_pointers: Longs, owner: Ints, mate: Places, s: int) -> bool:
    """Exchange mates with a random pair so that both new pairs are good; say whether it worked."""
    t = mate[s]
    v, w = owner[s], owner[t]
    for _ in range(_SWAPS):
        a = below(state, mate.size)
        b = mate[a]
        x, y = owner[a], owner[b]
        if (
            a != b  # the nonzero on the diagonal stays
            and v != x
            and w != y
            and not (v == w and x == y)  # the new pairs would be equal
            and not (v == y and x == w)
            and _edges(row_pointers, owner, mate, v, x) == 0
            and _edges(row_pointers, owner, mate, w, y) == 0
        ):
            mate[s], mate[a] = a, s
            mate[t], mate[b] = b, t
            return True
    return False


@numba.njit(cache=True, nogil=True)
def _repair(
    state: State, row_pointers: Longs, owner: Ints, mate: Places, loop_is_due: bool
) -> bool:
    """Swap every pair that is not good; a swap makes none that is not, so one pass is enough."""
    adjacent_to = np.full(row_pointers.size - 1, -1, dtype=np.int32)
    for v in range(row_pointers.size - 1):
        for s in range(row_pointers[v], row_pointers[v + 1]):
            if mate[s] == s and loop_is_due:
                continue
            w = owner[mate[s]]
            if w == v or adjacent_to[w] == v:
                if not _swap(state, row_pointers, owner, mate, s):
                    return False
                w = owner[mate[s]]
            adjacent_to[w] = v
    return True


def directed_columns(layout: Layout, seed: int) -> tuple[Longs, Ints]:
    """Draw the columns of each row by popularity, from its community and from everywhere.

    A vertex is drawn as a column in proportion to its own degree plus one, so that rows without a
    nonzero are drawn too. No row holds its own column, unless it holds all columns. Returns arrays
    as `undirected_columns` does; the columns of a row are distinct.
    """
    row_pointers = np.concatenate([[0], np.cumsum(layout.degrees)])
    weight = layout.degrees[layout.members] + 1
    pool = np.repeat(layout.members, weight)
    pool_bounds = np.concatenate([[0], np.cumsum(weight)])[layout.bounds]
    column_indices = np.empty(row_pointers[-1], dtype=np.int32)
    homes = (layout.local, layout.members, layout.bounds)
    _draw(stream(seed, "columns"), row_pointers, *homes, pool, pool_bounds, column_indices)
    return row_pointers, column_indices


@numba.njit(cache=True, nogil=True)
def _draw(
    state: State,
    row_pointers: Longs,
    local: Longs,
    members: Ints,
    bounds: Longs,
    pool: Ints,
    pool_bounds: Longs,
    column_indices: Ints,
) -> None:
    taken_by = np.full(members.size, -1, dtype=np.int32)
    for community in range(bounds.size - 1):
        near = pool[pool_bounds[community] : pool_bounds[community + 1]]
        for row in members[bounds[community] : bounds[community + 1]]:
            start, stop = row_pointers[row], row_pointers[row + 1]
            if stop - start < members.size:  # a full row holds its own column too
                taken_by[row] = row
            for k in range(start, stop):
                column = np.int32(-1)
                if k - start < local[row]:
                    column = _untaken(state, near, taken_by, row)
                if column < 0:
                    column = _untaken(state, pool, taken_by, row)
                if column < 0:  # nearly all are taken: the next free one after a random one
                    column = np.int32(below(state, members.size))
                    while taken_by[column] == row:
                        column = np.int32((column + 1) % members.size)
                taken_by[column] = row
                column_indices[k] = column


@numba.njit(cache=True, nogil=True)
def _untaken(state: State, pool: Ints, taken_by: Ints, row: int) -> np.int32:
    for _ in range(_TRIES):
        column = pool[below(state, pool.size)]
        if taken_by[column] != row:
            return column
    return np.int32(-1)
