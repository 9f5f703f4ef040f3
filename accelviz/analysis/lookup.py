"""Where a row went, without spelling out a whole workload."""

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
class RowPlace:
    """Where a row of the caller's graph is in a plan.

    Attributes
    ----------
    row : int
        Of the caller's graph.
    walked_row : int
        The same row of the matrix that the kernel walks (`Plan.walked`).
    degree : int
        Its nonzeros.
    first_nz : int
        Position of the first of them in that matrix's nonzero arrays.
    blocks : tuple of int
        The blocks that have some of it, ascending; none at all where a row without nonzeros is
        cleared beforehand.
    """

    row: int
    walked_row: int
    degree: int
    first_nz: int
    blocks: tuple[int, ...]


def find_row(plan: Plan, row: int) -> RowPlace:
    """Follow a row of the caller's graph, or of its transpose, to the walked matrix and its blocks.

    Parameters
    ----------
    plan : Plan
        With a workload.
    row : int
        A column of the graph, where the plan walks the transposed matrix.

    Raises
    ------
    ArgumentError
        If there is no such row.
    PartitionError
        If the plan is a library's.

    Notes
    -----
    Where the blocks go through the rows in order, as those of every strategy here do, a binary
    search looks at a few dozen of them; where they do not, all are read.
    """
    if not 0 <= row < plan.walked.n_rows:
        raise ArgumentError("row", f"got {row}", f"0 to {plan.walked.n_rows - 1}")
    walked_row = row if plan.permutation is None else int(plan.permutation.inverse[row])
    begin, end = map(int, plan.walked.row_pointers[walked_row : walked_row + 2])

    def first_block(reached: Callable[[Workload], bool]) -> int:
        """Search for the first block that has reached something; the last ones may be empty."""

        def after(block: int) -> bool:
            work = _next_records(plan, block)
            return not len(work) or reached(work)

        return bisect_left(range(plan.launch.n_blocks), True, key=after)

    first = first_block(lambda work: bool(work.row.max() >= walked_row))
    after = first_block(lambda work: bool(work.row.min() > walked_row))
    # In order, those between have some of the row or nothing at all.
    near = 0 < after - first <= max(end - begin, SLICE_BLOCKS)
    blocks, covered = _having(walked_row, [plan.workload(first, after)] if near else [])
    cleared = len(plan.zero_outputs) == len(plan.operation.outputs)
    if covered < end - begin or not (blocks or cleared):
        blocks, _ = _having(walked_row, plan.workload_slices())
    return RowPlace(row, walked_row, end - begin, begin, blocks)


def _next_records(plan: Plan, start: int) -> Workload:
    """Return those of the first block from `start` on that has any, looking ever further ahead."""
    stop, many = plan.launch.n_blocks, 1
    while not len(work := plan.workload(start, min(start + many, stop))) and start + many < stop:
        start, many = start + many, min(2 * many, SLICE_BLOCKS)
    first = int(work.block.min()) if len(work) else start
    return plan.workload(first, first + 1) if len(work) and many > 1 else work


def _having(walked_row: int, parts: Iterable[Workload]) -> tuple[tuple[int, ...], int]:
    """Return the blocks that have some of a row, and how many of its nonzeros they have."""
    blocks: list[int] = []
    covered = 0
    for part in parts:
        of_row = part.row == walked_row
        blocks += np.unique(part.block[of_row]).tolist()
        covered += int(part.nz_count[of_row].sum())
    return tuple(blocks), covered
