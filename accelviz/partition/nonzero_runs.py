"""Nonzero runs: every worker gets equally many consecutive nonzeros, regardless of their rows.

The load is balanced without sorting. With several attention heads, a nonzero has one product per
head, and workers get equally many products. In workloads, a nonzero belongs to the worker of its
first product; loads and statistics count all products.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.arrays import Ints, Longs
from accelviz.errors import PartitionError
from accelviz.graph import Graph
from accelviz.immutable import taken_over
from accelviz.ordering import RowDegrees
from accelviz.partition.hardware_warps import HardwareWarps
from accelviz.partition.scheme import Scheme
from accelviz.partition.summary import PartitionSummary, counted, launched
from accelviz.store import Stopwatch
from accelviz.workload import Workload

#: Live results of `numbers_32`, by the `id` of its argument.
_NUMBERS: weakref.WeakValueDictionary[int, npt.NDArray[np.uint32]] = weakref.WeakValueDictionary()
#: Largest number of nonzeros with 32-bit positions.
MAX_NONZEROS = (1 << 32) - 1


def check_numbers(nnz: int) -> None:
    """Raise a PartitionError for 2^32 nonzeros or more, which kernels cannot number in 32 bits."""
    if nnz > MAX_NONZEROS:
        raise PartitionError("graph", f"{nnz:,} nonzeros", f"at most {MAX_NONZEROS:,}")


def numbers_32(order: npt.NDArray[Any]) -> npt.NDArray[np.uint32]:
    """Return positions of nonzeros as uint32, without a copy if they have 32 bits.

    For the same array it returns the same object, so that all plans share one copy on the GPU.
    """
    if order.itemsize != 4:
        return order.astype(np.uint32)
    numbers = _NUMBERS.get(id(order))
    if numbers is None or (numbers.ctypes.data, numbers.size) != (order.ctypes.data, order.size):
        numbers = _NUMBERS[id(order)] = order.view(np.uint32)
    return numbers


def rows_of_nonzeros(graph: Graph) -> tuple[Ints, dict[str, float]]:
    """Return the row of each nonzero, int32, shape (nnz,), and the seconds of the conversion.

    The conversion from CSR to COO runs once per graph.
    """
    pointers = graph.row_pointers

    def convert(clock: Stopwatch) -> Ints:
        with clock.step("CSR to COO"):
            rows = np.repeat(np.arange(pointers.size - 1, dtype=np.int32), np.diff(pointers))
        return taken_over(rows)

    return graph.store.prepared("coo rows", convert)


def run_workload(
    row_pointers: Longs, run: int, heads: int, workers: int, start: int, stop: int
) -> Workload:
    """Return the workload of blocks `start` to `stop` - 1: one record per row and worker.

    A block has `workers` workers, a worker has `run` products, and a nonzero has `heads` products.
    """
    nnz = int(row_pointers[-1])
    first, last = (min(-(-block * workers * run // heads), nnz) for block in (start, stop))
    nonzeros = np.arange(first, last)
    worker = nonzeros * heads // run
    row = np.searchsorted(row_pointers, nonzeros, side="right") - 1
    is_first = np.ones(nonzeros.size, dtype=np.bool_)
    is_first[1:] = (worker[1:] != worker[:-1]) | (row[1:] != row[:-1])
    starts = np.flatnonzero(is_first)
    count = np.diff(np.append(starts, nonzeros.size))
    block, worker_in_block = np.divmod(worker[starts], workers)
    return Workload(block, worker_in_block, row[starts], nonzeros[starts], count)


def run_loads(nnz: int, run: int, heads: int, workers: int, start: int, stop: int) -> Longs:
    """Return the products of each worker of blocks `start` to `stop` - 1, of every head.

    Parameters are those of `run_workload`; the shape is (blocks, workers).
    """
    first = run * np.arange(start * workers, stop * workers).reshape(-1, workers)
    loads: Longs = (nnz * heads - first).clip(0, run)
    return loads


@dataclass(frozen=True)
class Products(Scheme):
    """One run of products per worker, as in `run_workload`.

    Attributes
    ----------
    run, heads, warps : int
        Products per worker, products per nonzero, workers per block.
    atomics : int
        Number of floats that the kernel adds by global atomics per nonzero and column of X.
    """

    kind = "products"
    run: int
    heads: int
    warps: int
    atomics: int

    def summary(self, rows: RowDegrees, n_cols: int, hardware: HardwareWarps) -> PartitionSummary:
        """Count the loads of `run_loads`, and the rows of `run_workload`; see `Scheme`."""
        run, heads, warps = self.run, self.heads, self.warps
        nnz = rows.histogram.nnz
        blocks = -(-nnz * heads // (run * warps))
        # All blocks have equal loads except the last.
        last = max(blocks - 1, 0)
        loads = np.concatenate([run_loads(nnz, run, heads, warps, i, i + 1) for i in (0, last)])
        repeats = np.array([last, min(blocks, 1)])
        rows_shared = rows_cut = None
        if rows.row_pointers is not None:
            start, stop = rows.row_pointers[:-1], rows.row_pointers[1:]
            nonempty = stop > start
            first_and_last = np.stack([start[nonempty], stop[nonempty] - 1])
            # With heads >= run, each worker has at most one nonzero: number workers by nonzeros.
            products = first_and_last * heads
            worker = products // run if heads < run else first_and_last
            block = products // (run * warps) if heads < run * warps else first_and_last
            boundaries = block[1] - block[0]
            rows_cut = int(np.count_nonzero(boundaries))
            rows_shared = int(np.count_nonzero(worker[1] - worker[0] > boundaries))
        return replace(
            launched(blocks, hardware),
            **counted(loads, hardware, repeats),
            metadata_bytes=0,
            rows_shared=rows_shared,
            rows_cut=rows_cut,
            shared_atomics=0,
            global_atomics=self.atomics * nnz * n_cols,
        )
