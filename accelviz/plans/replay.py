"""Replays of a plan's workload on the CPU, in Numba: records by row, and work for all cores."""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.plans.operation import Arrays
from accelviz.plans.plan import Plan
from accelviz.workload import Workload

#: Number of pieces of work per thread, to balance the load of fast and slow cores.
_PIECES_PER_THREAD = 8
#: Number of products below which one thread is faster than several.
_PRODUCTS_OF_ONE_THREAD = 1 << 22


@dataclass(eq=False)
class Records:
    """A plan's workload, with the records grouped by row.

    Attributes
    ----------
    walk : tuple of arrays
        (first record of each row, shape (n_rows + 1,); first nonzero of each record; number of
        nonzeros of each record; column of each nonzero of `Plan.walked`; output row of each row).
        The records of a row are in workload order.
    cost : array of int64, shape (n_rows + 1,)
        Cumulative cost before each row. The cost of a row is its number of nonzeros plus 1.
    """

    walk: tuple[npt.NDArray[Any], ...]
    cost: npt.NDArray[np.int64]

    @classmethod
    def by_row(cls, plan: Plan) -> Records:
        """Group the records of a plan's workload by row."""
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
        """Boundaries, as row numbers, of pieces of about equal cost."""
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
    """Return a replay that runs a compiled function on ranges of rows, on all cores.

    Parameters
    ----------
    plan : Plan
    function : callable
        `function(first, last, walk, *arrays)` computes rows `first` to `last` - 1 from
        `Records.walk`, without the GIL.
    operands : callable
        `operands(inputs, outputs)` returns (arrays, number of products per nonzero).
    """
    records = Records.by_row(plan)

    def run(inputs: Arrays, outputs: Arrays) -> None:
        arrays, products = operands(inputs, outputs)
        in_pieces(lambda *rows: function(*rows, records.walk, *arrays), records, products)

    return run


def in_pieces(
    compute: Callable[[int, int], None],
    records: Records,
    products: int,
    threads: int | None = None,
) -> None:
    """Call `compute(first, last)` on ranges of rows, on all cores or on a number of threads.

    `products` is the number of products per nonzero.
    """
    if records.cost[-1] * products < _PRODUCTS_OF_ONE_THREAD:
        compute(0, records.cost.size - 1)
    else:
        in_threads(compute, records.pieces, threads or os.cpu_count() or 1)


def in_threads(compute: Callable[[int, int], None], bounds: Sequence[int], threads: int) -> None:
    """Call `compute(first, last)` for each two adjacent bounds, on this and other threads."""
    pieces = iter([*itertools.pairwise(bounds)])

    def work() -> None:
        for piece in pieces:
            compute(*piece)

    others = [_threads().submit(work) for _ in range(threads - 1)]
    work()
    for other in others:
        if not other.cancel():  # it has begun
            other.result()


@functools.cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count())


if hasattr(os, "register_at_fork"):  # a forked process does not have its parent's threads
    os.register_at_fork(after_in_child=_threads.cache_clear)
