"""How much of a graph's features a cache could serve again: the locality of its columns.

SpMM reads one row of X for each nonzero, in the order of the matrix. How fast that goes depends on
how soon the same row is wanted again, which the column indices alone tell.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from accelviz.arrays import Longs
from accelviz.card import average_edge_span
from accelviz.errors import ArgumentError, checked_integer
from accelviz.graph import Graph, Pattern
from accelviz.ordering import Permutation
from accelviz.plans import Plan

#: Rows that an SM has in hand at a time, roughly: a few blocks of 12 warps.
WINDOW = 64


@dataclass(frozen=True)
class Locality:
    """Four statistics of a graph's columns that matter to SpMM.

    Attributes
    ----------
    average_edge_span : float
        AES in ids, GNNAdvisor's Equation 3.4; about a third of the rows for a random order.
    neighbor_overlap : float
        Jaccard similarity of the neighbors of row i and row i + 1, mean over all pairs of rows
        with nonzeros; 0 to 1.
    median_reuse_distance : float
        How many other rows of X are read between two reads of the same one, median over all
        repeated reads; NaN if none repeats.
    distinct_share : float
        Distinct columns over nonzeros in a window of rows, mean over windows weighted by
        nonzeros: 1 if no column repeats inside a window, small where neighbors are shared.
    shape : tuple of int
        Rows and columns of the matrix.
    """

    average_edge_span: float
    neighbor_overlap: float
    median_reuse_distance: float
    distinct_share: float
    shape: tuple[int, int]

    @property
    def relative(self) -> dict[str, float]:
        """The four statistics by name, in units that graphs of any size share.

        The edge span as a share of a random order's, which is a third of the rows; the median reuse
        distance as a share of the rows of X.
        """
        rows, columns = self.shape
        return {
            "edge span": self.average_edge_span / (rows / 3) if rows else float("nan"),
            "neighbor overlap": self.neighbor_overlap,
            "reuse distance": self.median_reuse_distance / columns if columns else float("nan"),
            "distinct columns": self.distinct_share,
        }


def locality(graph: Graph) -> Locality:
    """Measure the locality of a graph in its present order of rows and columns.

    Parameters
    ----------
    graph : Graph

    Returns
    -------
    Locality

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
    one, other = graph.degrees[:-1], graph.degrees[1:]
    both = (one > 0) & (other > 0)
    jaccard = shared[both] / (one + other - shared)[both]
    return float(jaccard.mean()) if jaccard.size else 0.0


def distinct_share(graph: Graph, *, window: int = WINDOW) -> float:
    """Return distinct columns over nonzeros, counted in windows of `window` rows; 0 for no nonzero.

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

    Parameters
    ----------
    graph : Graph

    Returns
    -------
    array of int64, shape (nnz,)
        Distinct other columns read since this column was last read; -1 at its first read. A cache
        of C rows of X with least-recently-used replacement serves exactly the reads with a
        distance from 0 to C - 1.

    Notes
    -----
    A Fenwick tree over positions marks where each column was read last; the marks after a
    column's last read are the distinct columns since. O(nnz log nnz) time, 24 bytes a nonzero.
    """
    distances: Longs = _stack_distances(graph.column_indices, graph.shape[1])
    return distances


def served_share(graph: Graph, cache_rows: int = 1024) -> float:
    """Return the share of the reads of X that a cache of so many rows of X serves, 0 to 1.

    The cache throws out what was not used for longest (LRU); nonzeros are read one after the other.
    """
    distances = reuse_distances(graph)
    return float(((distances >= 0) & (distances < cache_rows)).mean()) if distances.size else 0.0


@numba.njit(cache=True, nogil=True)
def _stack_distances(column_indices: npt.NDArray[np.int32], n_cols: int) -> npt.NDArray[np.int64]:
    distances = np.empty(column_indices.size, dtype=np.int64)
    marks = np.zeros(column_indices.size + 1, dtype=np.int64)  # the Fenwick tree, from 1
    last = np.full(n_cols, -1, dtype=np.int64)
    marked = 0
    for now in range(column_indices.size):
        before = last[column_indices[now]]
        if before < 0:
            distances[now] = -1
            marked += 1
        else:
            until, i = 0, before + 1
            while i > 0:
                until += marks[i]
                i -= i & -i
            distances[now] = marked - until
            i = before + 1
            while i < marks.size:
                marks[i] -= 1
                i += i & -i
        i = now + 1
        while i < marks.size:
            marks[i] += 1
            i += i & -i
        last[column_indices[now]] = now
    return distances


def in_block_order(plan: Plan) -> Pattern:
    """Return the matrix that a plan's kernel walks, its rows in the order of the blocks.

    A row that several blocks share stands where the first of them does; rows without a block
    come last.
    """
    rows = np.concatenate([part.row for part in plan.workload_slices()] or [np.empty(0, int)])
    order = pd.unique(rows)
    rest = np.setdiff1d(np.arange(plan.walked.n_rows), order, assume_unique=True)
    return Permutation(np.concatenate([order, rest])).apply_to_pattern(plan.walked)[0]
