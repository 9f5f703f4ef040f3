"""Random column indices for given degrees and communities, without duplicates in a row.

**Symmetric matrices.** A row of degree d has d stubs (half edges). A perfect matching of all stubs
is a symmetric matrix with exactly the given degrees. Stubs are numbered like nonzeros in CSR: the
column of nonzero `s` is the row of `mate[s]`.

In descending order of their degrees, the rows draw mates at random from the free stubs, first
within each community, then from the whole graph. A pair is invalid if it joins a row to itself or
to the same row twice. The few stubs without a valid mate are paired in any way, and each invalid
pair is then swapped with a random other pair, which preserves all degrees.

**Directed matrices.** Each row draws its columns by popularity, from its community and from the
whole graph.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.arrays import Ints, Longs
from accelviz.compiled import njit
from accelviz.datasets.synthetic.communities import Layout
from accelviz.datasets.synthetic.draws import State, below, stream

#: Largest number of draws for the mate of a stub, and of pairs tried for a swap.
_MATE_DRAWS, _SWAP_DRAWS = 40, 10_000
#: Largest number of draws of a column from one pool.
_COLUMN_DRAWS = 20
_FREE = -1

#: Numbers of stubs: int32, or int64 from 2^31 nonzeros on.
Stubs = npt.NDArray[Any]


def undirected_columns(layout: Layout, seed: int) -> tuple[Longs, Any] | None:
    """Draw a symmetric matrix with the layout's degrees and communities.

    If the sum of the degrees is odd, one row gets a nonzero on the diagonal.

    Returns row pointers (int64, shape (n + 1,)) and column indices (int32, shape (nnz,), unsorted
    within a row), or None if an invalid pair could not be swapped, because there are no or few such
    matrices.
    """
    row_pointers = np.concatenate([[0], np.cumsum(layout.degrees)])
    nnz = int(row_pointers[-1])
    index = np.dtype(np.int32 if nnz <= np.iinfo(np.int32).max else np.int64)
    owner = np.repeat(np.arange(layout.degrees.size, dtype=np.int32), layout.degrees)
    mate = np.full(nnz, _FREE, dtype=index)
    state = stream(seed, "stubs")
    _match(state, row_pointers, owner, mate, layout.local, layout.members, layout.bounds)
    all_rows = np.argsort(-layout.degrees, kind="stable").astype(np.int32)
    one_group = np.array([0, all_rows.size])
    _match(state, row_pointers, owner, mate, layout.degrees, all_rows, one_group)
    unmatched = np.flatnonzero(mate == _FREE).astype(index)
    is_odd = unmatched.size % 2 == 1
    partners = unmatched.copy()  # an odd last stub is its own mate: a nonzero on the diagonal
    even = unmatched.size - is_odd
    partners[:even] = unmatched[:even].reshape(-1, 2)[:, ::-1].ravel()
    mate[unmatched] = partners
    if not _repair(state, row_pointers, owner, mate, is_odd):
        return None
    return row_pointers, owner[mate]


@njit(nogil=True)
def _match(
    state: State,
    row_pointers: Longs,
    owner: Ints,
    mate: Stubs,
    count: Longs,
    members: Ints,
    bounds: Longs,
) -> None:
    """Match the first `count[v]` stubs of each row `v` with stubs of rows of the same group."""
    adjacent_to = np.full(row_pointers.size - 1, -1, dtype=np.int32)
    pool_index = np.empty(mate.size, dtype=mate.dtype)
    for group in range(bounds.size - 1):
        rows = members[bounds[group] : bounds[group + 1]]
        rows = rows[np.argsort(-count[rows], kind="mergesort")]
        pool = np.empty(count[rows].sum(), dtype=mate.dtype)
        free = 0
        for v in rows:
            for s in range(row_pointers[v], row_pointers[v] + count[v]):
                if mate[s] == _FREE:
                    pool[free] = s
                    pool_index[s] = free
                    free += 1
        for v in rows:
            adjacent_to[v] = v
            for s in range(row_pointers[v], row_pointers[v + 1]):
                if mate[s] != _FREE:
                    adjacent_to[owner[mate[s]]] = v
            for s in range(row_pointers[v], row_pointers[v] + count[v]):
                if mate[s] != _FREE:
                    continue
                for _ in range(_MATE_DRAWS):
                    t = pool[below(state, free)]
                    if adjacent_to[owner[t]] != v:
                        adjacent_to[owner[t]] = v
                        mate[s], mate[t] = t, s
                        free = _remove(pool, pool_index, free, s)
                        free = _remove(pool, pool_index, free, t)
                        break


@njit(inline="always")
def _remove(pool: Stubs, pool_index: Stubs, free: int, s: int) -> int:
    """Remove a stub from the pool by replacing it with the last one; return the pool's size."""
    last, position = pool[free - 1], pool_index[s]
    pool[position] = last
    pool_index[last] = position
    return free - 1


@njit(nogil=True)
def _edges(row_pointers: Longs, owner: Ints, mate: Stubs, v: int, w: int) -> int:
    """Count the pairs that join rows `v` and `w`, in the shorter row."""
    if row_pointers[v + 1] - row_pointers[v] > row_pointers[w + 1] - row_pointers[w]:
        v, w = w, v
    count = 0
    for s in range(row_pointers[v], row_pointers[v + 1]):
        count += owner[mate[s]] == w
    return count


@njit(nogil=True)
def _swap(state: State, row_pointers: Longs, owner: Ints, mate: Stubs, s: int) -> bool:
    """Exchange mates with a random pair so that both new pairs are valid; return success."""
    t = mate[s]
    v, w = owner[s], owner[t]
    for _ in range(_SWAP_DRAWS):
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


@njit(nogil=True)
def _repair(
    state: State, row_pointers: Longs, owner: Ints, mate: Stubs, has_diagonal: bool
) -> bool:
    """Swap every invalid pair, in one pass, because swaps create only valid pairs."""
    adjacent_to = np.full(row_pointers.size - 1, -1, dtype=np.int32)
    for v in range(row_pointers.size - 1):
        for s in range(row_pointers[v], row_pointers[v + 1]):
            if mate[s] == s and has_diagonal:
                continue
            w = owner[mate[s]]
            if w == v or adjacent_to[w] == v:
                if not _swap(state, row_pointers, owner, mate, s):
                    return False
                w = owner[mate[s]]
            adjacent_to[w] = v
    return True


def directed_columns(layout: Layout, seed: int) -> tuple[Longs, Ints]:
    """Draw the columns of each row by popularity, from its community and from the whole graph.

    The probability of a column is in proportion to the degree of that row plus one, so that rows
    without nonzeros occur as columns. There are no nonzeros on the diagonal, except in rows with
    all columns. Returns row pointers and columns as `undirected_columns` does.
    """
    row_pointers = np.concatenate([[0], np.cumsum(layout.degrees)])
    weight = layout.degrees[layout.members] + 1
    pool = np.repeat(layout.members, weight)
    pool_bounds = np.concatenate([[0], np.cumsum(weight)])[layout.bounds]
    column_indices = np.empty(row_pointers[-1], dtype=np.int32)
    communities = (layout.local, layout.members, layout.bounds)
    _draw(stream(seed, "columns"), row_pointers, *communities, pool, pool_bounds, column_indices)
    return row_pointers, column_indices


@njit(nogil=True)
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
    used_by = np.full(members.size, -1, dtype=np.int32)
    for community in range(bounds.size - 1):
        community_pool = pool[pool_bounds[community] : pool_bounds[community + 1]]
        for row in members[bounds[community] : bounds[community + 1]]:
            start, stop = row_pointers[row], row_pointers[row + 1]
            if stop - start < members.size:  # exclude the diagonal, except in a full row
                used_by[row] = row
            for k in range(start, stop):
                column = np.int32(-1)
                if k - start < local[row]:
                    column = _unused(state, community_pool, used_by, row)
                if column < 0:
                    column = _unused(state, pool, used_by, row)
                if column < 0:  # nearly all are used: the first unused one after a random one
                    column = np.int32(below(state, members.size))
                    while used_by[column] == row:
                        column = np.int32((column + 1) % members.size)
                used_by[column] = row
                column_indices[k] = column


@njit(nogil=True)
def _unused(state: State, pool: Ints, used_by: Ints, row: int) -> np.int32:
    """Draw a column that the row does not have yet; return -1 after too many draws."""
    for _ in range(_COLUMN_DRAWS):
        column = pool[below(state, pool.size)]
        if used_by[column] != row:
            return column
    return np.int32(-1)
