"""GNNAdvisor's neighbor groups and where their sums meet (section 3.4.1 and Algorithm 2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from accelviz.arrays import Ints, Longs
from accelviz.partition.block_level import ceil_div
from accelviz.workload import Workload

#: How a warp's properties are packed into one word of the metadata: its slot, and four flags.
FLAGS = {"slot_mask": 31, "leader": 32, "shared": 64, "cut": 128, "block_shares": 256}


@dataclass(frozen=True, eq=False)
class NeighborGroups:
    """Runs of at most `ngs` consecutive nonzeros of one row each, in row order.

    Attributes
    ----------
    pointers : array of int64, shape (groups + 1,)
        Position of each group's first nonzero; the next group begins where it ends.
    rows : array of int32, shape (groups,)
        The row of each group. Rows without a nonzero have no group.
    """

    pointers: Longs
    rows: Ints

    def __len__(self) -> int:
        return self.rows.size


def neighbor_groups(row_pointers: Longs, ngs: int) -> NeighborGroups:
    """Break the nonzeros of each row into groups of `ngs` (section 3.4.1).

    Parameters
    ----------
    row_pointers : array of int64, shape (n_rows + 1,)
    ngs : int
        Most nonzeros of a group, at least 1.
    """
    groups = ceil_div(np.diff(row_pointers), ngs)
    rows = np.repeat(np.arange(groups.size, dtype=np.int32), groups)
    # Group `g` of all begins `ngs` x (g - first group of its row) behind the row's first nonzero.
    first = np.cumsum(groups) - groups
    pointers = np.append(np.repeat(row_pointers[:-1] - first * ngs, groups), row_pointers[-1])
    pointers[:-1] += np.arange(0, rows.size * ngs, ngs)
    return NeighborGroups(pointers, rows)


@dataclass(frozen=True, eq=False)
class WarpMemory:
    """What each warp has to know to add up in shared memory. Every array has shape (groups,).

    Attributes
    ----------
    slot : array of int64
        Its row's place among the rows of the block, which is its slot of shared memory (Algorithm
        2's nodeSharedAddr over Dim).
    leader : array of bool
        It is the first of its row in the block, and takes the row's sums to the output.
    shared : array of bool
        Another warp of the block has the same row.
    cut : array of bool
        Its row has groups in other blocks too, so that the sums meet in the output.
    block_shares : array of bool
        Some warp of its block is `shared`; the same for all warps of a block.
    """

    slot: Longs
    leader: npt.NDArray[np.bool_]
    shared: npt.NDArray[np.bool_]
    cut: npt.NDArray[np.bool_]
    block_shares: npt.NDArray[np.bool_]

    def words(self) -> Ints:
        """Pack the five into one int32 for each warp."""
        words = self.slot.astype(np.int32)
        for name in ("leader", "shared", "cut", "block_shares"):
            words[getattr(self, name)] |= FLAGS[name]
        return words


def warp_memory(rows: Ints, block_warps: int) -> WarpMemory:
    """Algorithm 2: slots and leaders of the warps, `block_warps` consecutive groups a block.

    Parameters
    ----------
    rows : array of int32, shape (groups,)
        The row of each group, ascending.
    block_warps : int

    Notes
    -----
    `shared`, `cut` and `block_shares` are not in the algorithm. They tell the kernel where it can
    do without shared memory, atomics and barriers.
    """
    blocks = np.arange(0, rows.size, block_warps)
    new_row = np.ones(rows.size, dtype=np.bool_)
    np.not_equal(rows[1:], rows[:-1], out=new_row[1:])
    leader = new_row.copy()
    leader[::block_warps] = True
    slot: Longs = np.cumsum(leader, dtype=np.int64)
    slot -= np.repeat(slot[blocks], block_warps)[: rows.size]

    shared = ~leader
    shared[:-1] |= ~leader[1:]
    shares = np.repeat(np.logical_or.reduceat(shared, blocks), block_warps)[: rows.size]

    first = np.flatnonzero(new_row)
    groups = np.diff(np.append(first, rows.size))
    cut = np.repeat(first // block_warps != (first + groups - 1) // block_warps, groups)
    return WarpMemory(slot, leader, shared, cut, shares)


def group_workload(groups: NeighborGroups, block_warps: int, start: int, stop: int) -> Workload:
    """Return the workload of blocks `start` to `stop` - 1: a group for each warp."""
    first, last = (min(blocks * block_warps, len(groups)) for blocks in (start, stop))
    block, warp = np.divmod(np.arange(first, last), block_warps)
    begin, end = groups.pointers[first:last], groups.pointers[first + 1 : last + 1]
    return Workload(block, warp, groups.rows[first:last], begin, end - begin)
