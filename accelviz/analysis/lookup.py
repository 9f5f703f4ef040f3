"""Look up the blocks that handle a row, without building a plan's whole workload."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from accelviz.errors import ArgumentError
from accelviz.plans import Plan
from accelviz.plans.plan import SLICE_BLOCKS
from accelviz.workload import Workload


@dataclass(frozen=True)
class RowLocation:
    """A row of the caller's graph with its position in a plan and its blocks.

    Attributes
    ----------
    row : int
        Row number in the caller's graph.
    walked_row : int
        Row number in the matrix that the kernel walks (`Plan.walked`).
    degree : int
        Number of nonzeros of the row.
    first_nz : int
        Position of its first nonzero in the nonzero arrays of the walked matrix.
    blocks : tuple of int
        Blocks that handle the row, ascending. Empty for a row without nonzeros if the output is set
        to zero before the kernel runs.
    """

    row: int
    walked_row: int
    degree: int
    first_nz: int
    blocks: tuple[int, ...]


def find_row(plan: Plan, row: int) -> RowLocation:
    """Return the position in the walked matrix, and the blocks, of a row of the caller's graph.

    Parameters
    ----------
    plan : Plan
        A plan with a workload.
    row : int
        Row number. If the plan walks the transposed matrix, a column number of the graph.

    Raises
    ------
    ArgumentError
        If the row does not exist.
    PartitionError
        If the plan is a library's.

    Notes
    -----
    The blocks of all built-in strategies are in order of rows: a binary search builds the workload
    of a few dozen blocks. For a strategy without that order, all blocks are searched.
    """
    if not 0 <= row < plan.walked.n_rows:
        raise ArgumentError("row", f"got {row}", f"0 to {plan.walked.n_rows - 1}")
    walked_row = row if plan.permutation is None else int(plan.permutation.inverse[row])
    begin, end = map(int, plan.walked.row_pointers[walked_row : walked_row + 2])

    def first_block(condition: Callable[[Workload], bool]) -> int:
        """Bisect for the first block whose work meets a condition; trailing blocks may be empty."""

        def holds(block: int) -> bool:
            work = _next_work(plan, block)
            return not len(work) or condition(work)

        return bisect_left(range(plan.launch.n_blocks), True, key=holds)

    first = first_block(lambda work: bool(work.row.max() >= walked_row))
    stop = first_block(lambda work: bool(work.row.min() > walked_row))
    is_ordered = 0 < stop - first <= max(end - begin, SLICE_BLOCKS)
    blocks, covered = _row_blocks(walked_row, [plan.workload(first, stop)] if is_ordered else [])
    zeroed = len(plan.zero_outputs) == len(plan.operation.outputs)
    # An empty row of permuted rows may have a record, which no order leads to.
    is_found = is_ordered or plan.permutation is None
    if covered < end - begin or not (blocks or (zeroed and is_found)):
        blocks, _ = _row_blocks(walked_row, plan.workload_slices())
    return RowLocation(row, walked_row, end - begin, begin, blocks)


def _next_work(plan: Plan, start: int) -> Workload:
    """Return the work of the first block with work from `start` on, doubling the search range."""
    stop, count = plan.launch.n_blocks, 1
    while not len(work := plan.workload(start, min(start + count, stop))) and start + count < stop:
        start, count = start + count, min(2 * count, SLICE_BLOCKS)
    if not len(work) or count == 1:
        return work
    first = int(work.block.min())
    return plan.workload(first, first + 1)


def _row_blocks(walked_row: int, slices: Iterable[Workload]) -> tuple[tuple[int, ...], int]:
    """Return the blocks that handle a row, and the number of its nonzeros that they handle."""
    blocks: list[int] = []
    covered = 0
    for work in slices:
        is_row = work.row == walked_row
        blocks += np.unique(work.block[is_row]).tolist()
        covered += int(work.nz_count[is_row].sum())
    return tuple(blocks), covered
