"""A directed graph with given row degrees and communities, without duplicate edges."""

from __future__ import annotations

import numba
import numpy as np

from accelviz.arrays import Ints, Longs
from accelviz.datasets.synthetic.communities import Layout
from accelviz.datasets.synthetic.draws import State, below, stream

#: Draws for one neighbor before it is sought elsewhere: its community is then nearly used up.
_TRIES = 20


def directed_columns(layout: Layout, seed: int) -> tuple[Longs, Ints]:
    """Draw the columns of each row by popularity, from its community and from everywhere.

    Parameters
    ----------
    layout : Layout
        A vertex is drawn as a column in proportion to its own degree plus one, so that rows
        without a nonzero are drawn too. No row holds its own column, unless it holds all columns.
    seed : int

    Returns
    -------
    row_pointers : array of int64, shape (n + 1,)
    column_indices : array of int32, shape (nnz,)
        Distinct and unsorted inside a row.
    """
    row_pointers = np.concatenate([[0], np.cumsum(layout.degrees)])
    weight = layout.degrees[layout.members] + 1
    pool = np.repeat(layout.members, weight)
    pool_bounds = np.concatenate([[0], np.cumsum(weight)])[layout.bounds]
    column_indices = np.empty(row_pointers[-1], dtype=np.int32)
    _draw(
        stream(seed, "columns"),
        row_pointers,
        layout.local,
        layout.members,
        layout.bounds,
        pool,
        pool_bounds,
        column_indices,
    )
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
