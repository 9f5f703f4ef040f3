"""Locality: how soon an SpMM reads the same row of X again, from the column indices alone.

SpMM reads one row of X per nonzero, in the order of the matrix. The sooner a row is read again, the
likelier a cache still holds it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from accelviz.arrays import Longs
from accelviz.card import average_edge_span
from accelviz.compiled import njit
from accelviz.errors import ArgumentError, checked_integer
from accelviz.graph import Graph, Pattern
from accelviz.ordering import Permutation
from accelviz.plans import Plan

#: Rows that an SM processes at a time, roughly: a few blocks of 12 warps.
WINDOW = 64


@dataclass(frozen=True)
class Locality:
    """Four statistics of the locality of a graph's column indices.

    Attributes
    ----------
    average_edge_span : float
        AES in ids, GNNAdvisor's Equation 3.4; about a third of the rows for a random order.
    neighbor_overlap : float
        Jaccard similarity of the neighbors of row i and row i + 1, mean over all pairs of rows
        with nonzeros, 0 to 1.
    median_reuse_distance : float
        Number of other rows of X read between two reads of the same row, median over all repeated
        reads; NaN if no row is read twice.
    distinct_share : float
        Distinct columns over nonzeros in a window of rows, mean over the windows weighted by
        nonzeros; 1 if no column repeats inside a window.
    shape : tuple of int
        Number of rows and columns of the matrix.
    """

    average_edge_span: float
    neighbor_overlap: float
    median_reuse_distance: float
    distinct_share: float
    shape: tuple[int, int]

    @property
    def relative(self) -> dict[str, float]:
        """The four statistics by name, independent of the size of the graph.

        The edge span is divided by that of a random order, a third of the rows; the median reuse
        distance is divided by the number of rows of X.
        """
        rows, columns = self.shape
        return {
            "edge span": self.average_edge_span / (rows / 3) if rows else float("nan"),
            "neighbor overlap": self.neighbor_overlap,
            "reuse distance": self.median_reuse_distance / columns if columns else float("nan"),
            "distinct columns": self.distinct_share,
        }


def locality(graph: Graph) -> Locality:
    """Compute the locality of a graph in its present order of rows and columns.

    Notes
    -----
    Exact, in O(nnz log nnz): the reuse distances take a second for a million nonzeros.
    """
    distances = reuse_distances(graph)
    repeated = distances[distances >= 0]
    return Locality(
        average_edge_span=average_edge_span(graph),
        neighbor_overlap=neighbor_overlap(graph),
        median_reuse_distance=float(np.median(repeated)) if repeated.size else float("nan"),
        distinct_share=distinct_share(graph),
        shape=graph.shape,
    )


def neighbor_overlap(graph: Graph) -> float:
    """Return the mean Jaccard similarity of adjacent rows; 0 where no pair has nonzeros."""
    ones = np.ones(graph.nnz, dtype=np.int64)
    arrays = (ones, graph.column_indices, graph.row_pointers)
    pattern = sparse.csr_array(arrays, shape=graph.shape)
    shared = pattern[:-1].multiply(pattern[1:]).sum(axis=1)
    upper, lower = graph.degrees[:-1], graph.degrees[1:]
    both = (upper > 0) & (lower > 0)
    jaccard = shared[both] / (upper + lower - shared)[both]
    return float(jaccard.mean()) if jaccard.size else 0.0


def distinct_share(graph: Graph, *, window: int = WINDOW) -> float:
    """Return distinct columns over nonzeros, in windows of `window` rows; 0 without nonzeros.

    Raises
    ------
    ArgumentError
        If `window` is below 1.
    """
    checked_integer("window", window, error=ArgumentError)
    windows = np.repeat(np.arange(graph.n_rows) // window, graph.degrees)
    ones = np.ones(graph.nnz, dtype=np.int64)
    shape = graph.n_rows // window + 1, graph.shape[1]
    distinct = sparse.coo_array((ones, (windows, graph.column_indices)), shape).tocsr().nnz
    return distinct / graph.nnz if graph.nnz else 0.0


def reuse_distances(graph: Graph) -> npt.NDArray[np.int64]:
    """Return the LRU stack distance of every nonzero's column, in the order of the matrix.

    Returns
    -------
    array of int64, shape (nnz,)
        Number of distinct other columns read since the last read of this column; -1 at its first
        read. A cache of C rows of X with least-recently-used (LRU) replacement serves exactly the
        reads with a distance from 0 to C - 1.

    Notes
    -----
    A Fenwick tree over positions marks where each column was read last; the marks after a
    column's last read are the distinct columns since. O(nnz log nnz) time, 24 bytes a nonzero.
    """
    distances: Longs = _stack_distances(graph.column_indices, graph.shape[1])
    return distances


def served_share(graph: Graph, cache_rows: int = 1024) -> float:
    """Return the share of the reads of X that an LRU cache of `cache_rows` rows serves, 0 to 1.

    Nonzeros are read sequentially, in the order of the matrix. O(nnz).
    """
    if cache_rows < 1 or not graph.nnz:
        return 0.0
    served: int = _served(graph.column_indices, graph.shape[1], cache_rows)
    return served / graph.nnz


@njit(nogil=True)
def _served(column_indices: npt.NDArray[np.int32], n_cols: int, cache_rows: int) -> int:
    """Count the reads served by an LRU cache, a ring of the cached columns."""
    older = np.full(n_cols + 1, -1, dtype=np.int64)  # -1 if not in the cache
    newer = np.full(n_cols + 1, -1, dtype=np.int64)
    older[n_cols] = newer[n_cols] = n_cols  # between the newest column and the oldest
    cached = served = 0
    for column in column_indices:
        if older[column] >= 0:
            served += 1
            newer[older[column]], older[newer[column]] = newer[column], older[column]
        elif cached < cache_rows:
            cached += 1
        else:
            oldest = newer[n_cols]
            newer[n_cols] = newer[oldest]
            older[newer[oldest]] = n_cols
            older[oldest] = -1
        newest = older[n_cols]
        older[column], newer[column] = newest, n_cols
        newer[newest] = older[n_cols] = column
    return served


@njit(nogil=True)
def _stack_distances(column_indices: npt.NDArray[np.int32], n_cols: int) -> npt.NDArray[np.int64]:
    distances = np.empty(column_indices.size, dtype=np.int64)
    tree = np.zeros(column_indices.size + 1, dtype=np.int64)  # Fenwick tree, 1-based
    last_read = np.full(n_cols, -1, dtype=np.int64)
    n_marks = 0
    for now in range(column_indices.size):
        previous = last_read[column_indices[now]]
        if previous < 0:
            distances[now] = -1
            n_marks += 1
        else:
            marks_until, i = 0, previous + 1
            while i > 0:
                marks_until += tree[i]
                i -= i & -i
            distances[now] = n_marks - marks_until
            i = previous + 1
            while i < tree.size:
                tree[i] -= 1
                i += i & -i
        i = now + 1
        while i < tree.size:
            tree[i] += 1
            i += i & -i
        last_read[column_indices[now]] = now
    return distances


def in_block_order(plan: Plan) -> Pattern:
    """Return the matrix that a plan's kernel walks, with its rows in the order of the blocks.

    A row of several blocks is at the position of the first of them. Rows without a block are last.
    """
    rows = np.concatenate([part.row for part in plan.workload_slices()] or [np.empty(0, int)])
    order = pd.unique(rows)
    without_block = np.setdiff1d(np.arange(plan.walked.n_rows), order, assume_unique=True)
    return Permutation(np.concatenate([order, without_block])).apply_to_pattern(plan.walked)[0]
