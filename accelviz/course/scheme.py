"""Base class of the partition schemes of assignment A3.

A kernel finds its work from the number of its block, the matrix and the metadata. A scheme is
written likewise, as two methods: one partitions, and one reads the result. So the metadata that
cross from one to the other can be counted in bytes, and no object of a student's has to cross.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from accelviz.course.checks.common import graph_from, require
from accelviz.errors import PartitionError
from accelviz.graph import Graph, Pattern
from accelviz.ordering import Permutation
from accelviz.plans import Buffers, Call, LaunchConfig, Layout, Plan, Provenance, Strategy
from accelviz.plans.plan import Widths
from accelviz.strategies import SPMM
from accelviz.workload import COLUMNS, Workload


class Partition(NamedTuple):
    """What is known of a graph's work before the launch.

    Attributes
    ----------
    blocks, warps : int
        Number of blocks, and of warps of each block.
    metadata : array of integers, optional
        What the warps have to know beside the matrix.
    order : Permutation, or array of int of shape (rows,), optional
        Row `i` of the walked matrix is row `order[i]` of the graph's; by default they are the same.
    zero_output : bool
        Whether Y is set to zero first, because several blocks add to a row, or none writes it.
    """

    blocks: int
    warps: int
    metadata: Any = None
    order: Any = None
    zero_output: bool = False


class Scheme(Strategy):
    """A partition scheme, which distributes the nonzeros of a graph over blocks and warps."""

    operation = SPMM

    @abstractmethod
    def partition(self, graph: Graph) -> Partition:
        """Return the Partition of a graph."""

    @abstractmethod
    def workload(self, matrix: Pattern, metadata: Any, start: int, stop: int) -> Workload:
        """Return the Workload of blocks `start` to `stop` - 1.

        Parameters
        ----------
        matrix : Pattern
            The graph's pattern with its rows in the order of the partition.
        metadata : array of integers or None
            Those of the partition.
        start, stop : int
        """

    def build(self, graph: Graph, widths: Widths, settings: Any) -> Plan:
        """Return the plan of this partition."""
        blocks, warps, metadata, order, zero_output = partitioned(self, graph)
        permutation, walked, nonzero_order = walked_by(graph, order)
        workload = partial(worked, self, walked, metadata)
        return Plan(
            Layout(graph.pattern, workload, walked, permutation, nonzero_order, metadata),
            (Call(LaunchConfig((blocks, 1, 1), warps)),),
            Buffers(zero_outputs=("Y",) if zero_output else ()),
            Provenance(self, graph.values, widths, settings),
        )


def partitioned(scheme: Scheme, graph: Graph) -> Partition:
    """Return a scheme's partition, with arrays; raises PartitionError if it is none."""
    result = scheme.partition(graph)
    try:
        blocks, warps, metadata, order, zero_output = Partition(*tuple(result))
        metadata = None if metadata is None else np.asarray(metadata)
        if metadata is not None and metadata.dtype == np.int64:  # of a list, say
            narrow = metadata.astype(np.int32)
            metadata = narrow if np.array_equal(narrow, metadata) else metadata
        order = None if order is None else np.asarray(getattr(order, "order", order))
        return Partition(int(blocks), int(warps), metadata, order, bool(zero_output))
    except (TypeError, ValueError) as error:
        text = " ".join(repr(result).split())  # one line, as a table of grades shows the first
        reason = f"partition returns {text:.200} ({error})"
        raise PartitionError("scheme", reason, "a Partition of numbers and arrays") from error


def worked(scheme: Scheme, *arguments: Any) -> Workload:
    """Return the result of a scheme's `workload`; raises PartitionError if it is no Workload."""
    work = scheme.workload(*arguments)
    if not isinstance(work, Workload):
        raise PartitionError("workload", f"it returns a {type(work).__name__}", "a Workload")
    return work


def walked_by(graph: Graph, order: Any) -> tuple[Permutation | None, Pattern, Any]:
    """Return the permutation of an order, the pattern in it, and the order of its nonzeros."""
    if order is None:
        return None, graph.pattern, None
    permutation = Permutation(order)
    return permutation, *permutation.apply_to_pattern(graph.pattern)


def exported(scheme: Any, data: Any) -> dict[str, Any]:
    """Return name and partition of a student's scheme for a graph as plain data.

    `data` is the graph's (`graph_data`). Raises AssertionError if it is no scheme or has no name.
    """
    require(isinstance(scheme, Scheme), f"{scheme!r} is no object of a class of Scheme")
    has_name = isinstance(scheme.name, str) and scheme.name.strip()
    require(has_name, "the scheme has no name")
    return {"name": scheme.name, **partitioned(scheme, graph_from(data))._asdict()}


def slices(
    scheme: Scheme, data: Any, order: Any, metadata: Any, ranges: list[tuple[int, int]]
) -> list[npt.NDArray[np.int64]]:
    """Return the workload of each range of blocks, shape (5, records); see `exported`."""
    matrix = walked_by(graph_from(data), order)[1]
    works = (worked(scheme, matrix, metadata, start, stop) for start, stop in ranges)
    return [np.stack([work[name].astype(np.int64) for name in COLUMNS]) for work in works]
