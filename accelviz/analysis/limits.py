"""How fast an SpMM could be on a machine: two limits, from what the machine was measured to do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from accelviz.executors.base import Limits
from accelviz.graph import Graph

FLOAT_BYTES = 4
#: A nonzero is a 4-byte value and a 4-byte column index; a row pointer has 4 bytes as well.
NONZERO_BYTES, POINTER_BYTES = 8, 4


@dataclass(frozen=True)
class SpmmLimits:
    """Two times that an SpMM is held against, and what they are made of.

    Attributes
    ----------
    compulsory_bytes : int
        Every input read once and every output written once:
        8 nnz + 4 (rows + 1) + 4 d (distinct columns + rows).
    gather_bytes : int
        A row of X read anew for each nonzero: 4 d nnz, or 2 d nnz where X is kept in 16 bits.
    copy_bandwidth, gather_bandwidth : float
        Of the machine, in bytes per second; the latter for random rows of an X of this shape.
    floor_seconds : float
        The compulsory bytes at copy speed, not below a launch. Physical for any order of columns.
    gather_seconds : float
        The random-gather limit: the gather bytes at gather speed plus the rest at copy speed, not
        below a launch. What columns in no order allow; locality can go past it.
    """

    compulsory_bytes: int
    gather_bytes: int
    copy_bandwidth: float
    gather_bandwidth: float
    floor_seconds: float
    gather_seconds: float


def distinct_columns(graph: Graph) -> int:
    """Count the columns that have a nonzero: the rows of X that are read at all."""
    used = np.zeros(graph.shape[1], dtype=np.bool_)
    used[graph.column_indices] = True
    return int(used.sum())


def spmm_limits(
    graph: Graph, n_cols: int, machine: Limits, distinct: int, feature_bytes: int = FLOAT_BYTES
) -> SpmmLimits:
    """Work out both limits of a graph and a column count.

    Parameters
    ----------
    graph : Graph
    n_cols : int
        Columns of X, d.
    machine : Limits
        Measured in the same run as the times that will be held against the limits.
    distinct : int
        `distinct_columns(graph)`.
    feature_bytes : int
        Bytes of an element of X, 4 or 2; an element of Y has four.
    """
    own = NONZERO_BYTES * graph.nnz + POINTER_BYTES * (graph.n_rows + 1)
    row, read = FLOAT_BYTES * n_cols, feature_bytes * n_cols
    compulsory = own + read * distinct + row * graph.n_rows
    gather = read * graph.nnz
    bandwidth = machine.gather_bandwidth(graph.shape[1], -(-read // FLOAT_BYTES))
    streamed = own + row * graph.n_rows
    return SpmmLimits(
        compulsory_bytes=compulsory,
        gather_bytes=gather,
        copy_bandwidth=machine.copy_bandwidth,
        gather_bandwidth=bandwidth,
        floor_seconds=max(compulsory / machine.copy_bandwidth, machine.launch_seconds),
        gather_seconds=max(
            gather / bandwidth + streamed / machine.copy_bandwidth, machine.launch_seconds
        ),
    )
