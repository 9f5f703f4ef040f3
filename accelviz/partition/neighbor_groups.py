"""GNNAdvisor's neighbor groups, and their slots of shared memory (section 3.4.1, Algorithm 2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from accelviz.arrays import Ints, Longs
from accelviz.immutable import Immutable, taken_over
from accelviz.partition.block_level import ceil_div
from accelviz.workload import Workload

#: Bit masks of the metadata word of a warp: its slot, and four flags. See `WarpMemory`.
FLAGS = {"slot_mask": 31, "leader": 32, "shared": 64, "cut": 128, "block_shares": 256}


@dataclass(frozen=True, eq=False)
class NeighborGroups(Immutable):
    """Runs of at most `ngs` consecutive nonzeros of one row, one per warp, in row order.

    Attributes
    ----------
    pointers : array of int64, shape (groups + 1,)
        Position of each group's first nonzero, and the number of nonzeros.
    rows : array of int32, shape (groups,)
        Row of each group. Rows without a nonzero have no group.
    """

    pointers: Longs
    rows: Ints

    def __len__(self) -> int:
        return self.rows.size


def neighbor_groups(row_pointers: Longs, ngs: int) -> NeighborGroups:
    """Split the nonzeros of each row into groups of `ngs` (section 3.4.1).

    Parameters
    ----------
    row_pointers : array of int64, shape (n_rows + 1,)
    ngs : int
        Largest number of nonzeros per group, at least 1.
    """
    groups = ceil_div(np.diff(row_pointers), ngs)
    rows = np.repeat(np.arange(groups.size, dtype=np.int32), groups)
    # Group g starts at its row's first nonzero plus ngs * (g - first group of the row).
    first_group = np.cumsum(groups) - groups
    offsets = row_pointers[:-1] - first_group * ngs
    pointers = np.append(np.repeat(offsets, groups), row_pointers[-1])
    pointers[:-1] += np.arange(0, rows.size * ngs, ngs)
    return NeighborGroups(taken_over(pointers), taken_over(rows))


@dataclass(frozen=True, eq=False)
class WarpMemory:
    """Properties of each warp for summation in shared memory. Every array has shape (groups,).

    Attributes
    ----------
    slot : array of int64
        Index of the warp's row in the block (nodeSharedAddr / Dim in Algorithm 2).
    leader : array of bool
        Whether the warp is the first of its row in the block, which copies the sum to the output.
    shared : array of bool
        Whether another warp of the block has the same row.
    cut : array of bool
        Whether the row also has groups in other blocks, so that the output needs atomics.
    block_shares : array of bool
        Whether any warp of the block is `shared`.
    """

    slot: Longs
    leader: npt.NDArray[np.bool_]
    shared: npt.NDArray[np.bool_]
    cut: npt.NDArray[np.bool_]
    block_shares: npt.NDArray[np.bool_]

    def words(self) -> Ints:
        """Pack the properties into one int32 per warp, as `FLAGS` defines."""
        words = self.slot.astype(np.int32)
        for name in ("leader", "shared", "cut", "block_shares"):
            words[getattr(self, name)] |= FLAGS[name]
        return words


def warp_memory(rows: Ints, block_warps: int) -> WarpMemory:
    """Compute slots and leaders for `block_warps` consecutive groups per block (Algorithm 2).

    Parameters
    ----------
    rows : array of int32, shape (groups,)
        Row of each group, ascending.
    block_warps : int

    Notes
    -----
    `shared`, `cut` and `block_shares` are additions to the algorithm. Where they are false, the
    kernel skips shared memory, atomics and barriers, respectively.
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
    block_shares = np.repeat(np.logical_or.reduceat(shared, blocks), block_warps)[: rows.size]

    first = np.flatnonzero(new_row)
    groups = np.diff(np.append(first, rows.size))
    cut = np.repeat(first // block_warps != (first + groups - 1) // block_warps, groups)
    return WarpMemory(slot, leader, shared, cut, block_shares)


def group_workload(groups: NeighborGroups, block_warps: int, start: int, stop: int) -> Workload:
    """Return the workload of blocks `start` to `stop` - 1: one group per warp."""
    first, last = (min(blocks * block_warps, len(groups)) for blocks in (start, stop))
    block, warp = np.divmod(np.arange(first, last), block_warps)
    begin, end = groups.pointers[first:last], groups.pointers[first + 1 : last + 1]
    return Workload(block, warp, groups.rows[first:last], begin, end - begin)
