"""Runs of consecutive nonzeros, whatever their rows: perfect balance, nothing to sort.

With several heads a nonzero stands for several products. Runs are cut by products then, and a
nonzero counts for the worker that has its first product.
"""

from __future__ import annotations

import math
import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.arrays import Ints, Longs
from accelviz.errors import PartitionError
from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.partition.scheme import Scheme
from accelviz.partition.summary import Loads, PartitionSummary
from accelviz.store import Stopwatch
from accelviz.workload import Workload

#: Results of `numbers_32` that somebody holds, by what they are made of.
_NUMBERS: weakref.WeakValueDictionary[int, npt.NDArray[np.uint32]] = weakref.WeakValueDictionary()
#: Nonzeros that 32 bits can number.
MOST_NONZEROS = (1 << 32) - 1


def check_numbers(nnz: int) -> None:
    """Refuse more nonzeros than 32 bits can number.

    Raises
    ------
    PartitionError
    """
    if nnz > MOST_NONZEROS:
        raise PartitionError("graph", f"{nnz:,} nonzeros", f"at most {MOST_NONZEROS:,}")


def numbers_32(order: npt.NDArray[Any]) -> npt.NDArray[np.uint32]:
    """Return which nonzeros these are as kernels read it, without a copy where it has 32 bits.

    The same array gives the same result, of which a GPU then has one copy for all plans.
    """
    if order.itemsize != 4:
        return order.astype(np.uint32)
    numbers = _NUMBERS.get(id(order))
    if numbers is None or (numbers.ctypes.data, numbers.size) != (order.ctypes.data, order.size):
        numbers = _NUMBERS[id(order)] = order.view(np.uint32)
    return numbers


def rows_of_nonzeros(graph: Graph) -> tuple[Ints, dict[str, float]]:
    """Spell out the row of each nonzero, as in COO, once for each graph; and say what it took."""
    pointers = graph.row_pointers

    def convert(clock: Stopwatch) -> Ints:
        with clock.step("CSR to COO"):
            rows = np.repeat(np.arange(pointers.size - 1, dtype=np.int32), np.diff(pointers))
        rows.setflags(write=False)
        return rows

    return graph.store.prepared("coo rows", convert)


def run_workload(
    row_pointers: Longs, run: int, heads: int, workers: int, start: int, stop: int
) -> Workload:
    """Return blocks `start` to `stop` - 1 of `workers` workers, with a run of `run` products each.

    A nonzero has `heads` products. There is a record for each piece of a row in a run.
    """
    nnz = int(row_pointers[-1])
    first, last = (min(-(-block * workers * run // heads), nnz) for block in (start, stop))
    nonzeros = np.arange(first, last)
    worker = nonzeros * heads // run
    row = np.searchsorted(row_pointers, nonzeros, side="right") - 1
    new = np.ones(nonzeros.size, dtype=np.bool_)
    new[1:] = (worker[1:] != worker[:-1]) | (row[1:] != row[:-1])
    begins = np.flatnonzero(new)
    count = np.diff(np.append(begins, nonzeros.size))
    block, in_block = np.divmod(worker[begins], workers)
    return Workload(block, in_block, row[begins], nonzeros[begins], count)


@dataclass(frozen=True)
class Products(Scheme):
    """Runs of products, as `run_workload` deals them out.

    Attributes
    ----------
    run, heads, warps : int
        As of `run_workload`, whose `workers` are the `warps` of a block.
    atomics : int
        Floats of each column that the kernel adds to global memory by atomics for a nonzero.
    """

    kind = "products"
    run: int
    heads: int
    warps: int
    atomics: int

    def summary(self, rows: RowDegrees, n_cols: int) -> PartitionSummary:
        """Count the runs; see `Scheme`."""
        run, heads, warps = self.run, self.heads, self.warps
        nnz = rows.histogram.nnz
        blocks = -(-nnz * heads // (run * warps))
        # The pattern of loads repeats after so many workers, whole blocks of them.
        period = math.lcm(heads // math.gcd(heads, run), warps)
        cuts = -(-np.arange(period + 1) * run // heads)
        many, rest = divmod(nnz, int(cuts[-1]))
        loads = [np.diff(cuts), np.diff(np.minimum(cuts, rest))]
        times = np.repeat([many, 1], period)
        busiest = [int(load.reshape(-1, warps).max(axis=1).sum()) for load in loads]
        shared = cut = None
        if rows.row_pointers is not None:
            begin, end = rows.row_pointers[:-1], rows.row_pointers[1:]
            work = end > begin
            ends = np.stack([begin[work], end[work] - 1])
            # Workers and blocks that no nonzero counts for do not count either.
            worker = ends * heads // run if heads < run else ends
            block = ends * heads // (run * warps) if heads < run * warps else ends
            boundaries = block[1] - block[0]
            cut = int(np.count_nonzero(boundaries))
            shared = int(np.count_nonzero(worker[1] - worker[0] > boundaries))
        return PartitionSummary(
            blocks=blocks,
            warps=blocks * warps,
            slots=(busiest[0] * many + busiest[1]) * warps,
            loads=Loads.gathered(np.concatenate(loads), times),
            metadata_bytes=0,
            rows_shared=shared,
            rows_cut=cut,
            shared_atomics=0,
            global_atomics=self.atomics * nnz * n_cols,
        )
