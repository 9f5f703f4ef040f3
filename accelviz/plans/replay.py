"""Shared by replays of plans on the CPU: records grouped by row, and work for threads."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.plans.operation import Arrays
from accelviz.plans.plan import Plan
from accelviz.workload import Workload

#: Pieces of work for each thread, so that one slow core does not hold up the others.
_PIECES_PER_THREAD = 8
#: Products below which one thread is faster, as the others take time to start and to wait for.
_PRODUCTS_OF_ONE_THREAD = 1 << 22


@dataclass(eq=False)
class Records:
    """A plan's workload, its records grouped by the row they belong to.

    Attributes
    ----------
    walk : tuple of arrays
        Where each row's records begin (n_rows + 1); of each record, in workload order inside its
        row, the first nonzero and how many; of each nonzero the column, as the plan walks them; and
        of each row that of the output.
    cost : array of int64, shape (n_rows + 1,)
        Work before each row: its nonzeros, and about one more for the row itself.
    """

    walk: tuple[npt.NDArray[Any], ...]
    cost: npt.NDArray[np.int64]

    @classmethod
    def by_row(cls, plan: Plan) -> Records:
        """Read the workload once."""
        work = Workload.concatenate(plan.workload_slices())
        row, nz_start, nz_count = work.row, work.nz_start, work.nz_count
        if np.any(row[1:] < row[:-1]):
            by_row = np.argsort(row, kind="stable")
            row, nz_start, nz_count = row[by_row], nz_start[by_row], nz_count[by_row]
        rows = np.arange(plan.walked.n_rows + 1)
        first = np.searchsorted(row, rows).astype(np.int64)
        walk = (first, nz_start, nz_count, plan.walked.column_indices, plan.output_rows)
        return cls(walk, plan.walked.row_pointers + rows)

    @cached_property
    def pieces(self) -> list[int]:
        """Rows at which the work is divided into pieces of about equal cost."""
        threads = os.cpu_count() or 1
        bounds = np.linspace(0, self.cost[-1], threads * _PIECES_PER_THREAD + 1)
        rows = np.searchsorted(self.cost, bounds)
        rows[-1] = self.cost.size - 1
        return [int(row) for row in np.unique(rows)]


def rowwise(
    plan: Plan,
    function: Callable[..., None],
    operands: Callable[[Arrays, Arrays], tuple[tuple[Any, ...], int]],
) -> Callable[[Arrays, Arrays], None]:
    """Return a replay that goes through the records of ranges of rows.

    Parameters
    ----------
    plan : Plan
    function : callable
        Compiled; `function(first, last, walk, *arrays)` does rows `first` to `last` - 1, given
        `Records.walk`.
    operands : callable
        `operands(inputs, outputs)` gives the arrays, and the products of a nonzero.
    """
    records = Records.by_row(plan)

    def run(inputs: Arrays, outputs: Arrays) -> None:
        arrays, n_cols = operands(inputs, outputs)
        in_pieces(lambda *rows: function(*rows, records.walk, *arrays), records, n_cols)

    return run


def in_pieces(do: Callable[[int, int], None], records: Records, n_cols: int) -> None:
    """Call `do(first, last)`, which releases the GIL, for ranges of rows that together are all."""
    if records.cost[-1] * n_cols < _PRODUCTS_OF_ONE_THREAD:
        do(0, records.cost.size - 1)
        return
    pieces = records.pieces
    list(_threads().map(do, pieces[:-1], pieces[1:]))


@functools.cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count())


if hasattr(os, "register_at_fork"):  # a process that was forked has none of the threads
    os.register_at_fork(after_in_child=_threads.cache_clear)
