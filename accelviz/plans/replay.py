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
_PRODUCTS_OF_ONE_THREAD = 1 << 21
#: Number of products (15 ms of one core) from which several threads pay on busy cores, too. With
#: fewer, the result waits for a thread that waits for a core: beside two busy processes on two
#: cores, at 6 to 30 M products, two threads took up to 3 times as long as one.
_PRODUCTS_OF_BUSY_CORES = 1 << 27


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

    def csr_walk(self, zeroed: bool) -> tuple[npt.NDArray[Any], ...] | None:
        """Return `walk` with one record a row, if the records of each row follow one another.

        Otherwise return None. `zeroed` tells whether rows without a record have been set to 0.
        """
        first_record, nz_start, nz_count, columns, output_rows = self.walk
        stop = nz_start + nz_count
        if not (stop.size and np.array_equal(nz_start[1:], stop[:-1])):
            return None
        if not (zeroed or np.diff(first_record).all()):
            return None
        row_pointers = np.append(nz_start, stop[-1])[first_record]
        rows = np.arange(row_pointers.size)
        return rows, row_pointers[:-1], np.diff(row_pointers), columns, output_rows

    @cached_property
    def pieces(self) -> list[int]:
        """Boundaries, as row numbers, of pieces of about equal cost."""
        threads = usable_cores()
        bounds = np.linspace(0, self.cost[-1], threads * _PIECES_PER_THREAD + 1)
        rows = np.searchsorted(self.cost, bounds)
        rows[-1] = self.cost.size - 1
        return [int(row) for row in np.unique(rows)]

    def pieces_within(self, first: int, last: int) -> list[tuple[int, int]]:
        """Return (first row, last row + 1) of each piece in a range that `in_pieces` computes.

        Sums over rows that are kept by piece have the same bits with any number of threads.
        """
        return [piece for piece in itertools.pairwise(self.pieces) if first <= piece[0] < last]


def rowwise(
    plan: Plan,
    function: Callable[..., None],
    operands: Callable[[Arrays, Arrays], tuple[tuple[Any, ...], int]],
    threads: int | None = None,
    of_csr: Callable[..., None] | None = None,
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
    threads : int, optional
        1 if rows write to the same elements; by default as many as pay.
    of_csr : callable, optional
        A faster function for `Records.csr_walk`, which has all outputs of the plan.
    """
    records = Records.by_row(plan)
    if of_csr is not None and (csr_walk := records.csr_walk(bool(plan.zero_outputs))) is not None:
        function, records = of_csr, Records(csr_walk, records.cost)

    def run(inputs: Arrays, outputs: Arrays) -> None:
        arrays, products = operands(inputs, outputs)
        in_pieces(lambda *rows: function(*rows, records.walk, *arrays), records, products, threads)

    return run


def in_pieces(
    compute: Callable[[int, int], None],
    records: Records,
    products: int,
    threads: int | None = None,
) -> None:
    """Call `compute(first, last)` on ranges of rows, on all cores or on a number of threads.

    `products` is the number of products per nonzero. Cores that run something else are only used
    if the work is worth waiting for them.
    """
    total = records.cost[-1] * products
    if total < _PRODUCTS_OF_ONE_THREAD:
        threads = 1
    elif total < _PRODUCTS_OF_BUSY_CORES:
        threads = min(threads or usable_cores(), idle_cores())
    if threads == 1:
        compute(0, records.cost.size - 1)
    else:
        in_threads(compute, records.pieces, threads or usable_cores())


def usable_cores() -> int:
    """Return the number of cores on which this process may run."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def idle_cores() -> int:
    """Return the number of usable cores without a running task, and 1 for this thread's own.

    All usable ones where the system does not tell.
    """
    cores, file = usable_cores(), _load_file()
    if file is None:
        return cores
    running = int(os.pread(file, 64, 0).split()[3].partition(b"/")[0])
    return min(cores, max(1, cores - running + 1))  # this thread is running, too


@functools.cache
def _load_file() -> int | None:
    """Open Linux's file with the number of running tasks; None on another system."""
    try:
        return os.open("/proc/loadavg", os.O_RDONLY)
    except OSError:
        return None


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
    return ThreadPoolExecutor(usable_cores())


if hasattr(os, "register_at_fork"):  # a forked process does not have its parent's threads
    os.register_at_fork(after_in_child=_threads.cache_clear)
