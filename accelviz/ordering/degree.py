"""Degree sorting (Accel-GCN, section III-C), of all rows or window by window.

The degree histogram is counted on the way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from accelviz.arrays import Longs
from accelviz.datasets import load_graph
from accelviz.errors import ArgumentError, checked_integer
from accelviz.graph import Graph, Pattern
from accelviz.ordering.permutation import Permutation
from accelviz.store import Stopwatch


@dataclass(frozen=True, eq=False)
class DegreeHistogram:
    """How many rows have each degree. A partition of degree-sorted rows depends on nothing else.

    Parameters
    ----------
    degrees : array of int64, shape (k,)
        The degrees that occur, ascending.
    rows : array of int64, shape (k,)
        How many rows have each of them.
    """

    degrees: Longs
    rows: Longs

    @classmethod
    def of(cls, row_pointers: Longs) -> DegreeHistogram:
        """Count the degrees of a matrix from its row pointers, int64, shape (n + 1,)."""
        degrees = np.diff(row_pointers)
        if degrees.max(initial=0) > degrees.size:  # a table of counts would be longer than it
            return cls(*np.unique(degrees, return_counts=True))
        counts = np.bincount(degrees)
        occurring = np.flatnonzero(counts)
        return cls(occurring, counts[occurring])

    @classmethod
    def counted(cls, counts: Mapping[int, int]) -> DegreeHistogram:
        """Take `{degree: rows}`, in any order.

        Raises
        ------
        ArgumentError
            If a degree or a number of rows is not an integer of at least 0.
        """
        for label, numbers in (("degree", counts.keys()), ("number of rows", counts.values())):
            for number in numbers:
                whole = isinstance(number, int | np.integer) and not isinstance(number, bool)
                if not whole or number < 0:
                    problem = f"got a {label} of {number!r}"
                    raise ArgumentError("degrees", problem, "integers of 0 or more")
        degrees = sorted(int(degree) for degree, rows in counts.items() if rows)
        rows = [int(counts[degree]) for degree in degrees]
        return cls(np.array(degrees, np.int64), np.array(rows, np.int64))

    @property
    def n_rows(self) -> int:
        """Number of rows in all."""
        return int(self.rows.sum())

    @property
    def nnz(self) -> int:
        """Number of nonzeros in all."""
        return int(self.degrees @ self.rows)

    @property
    def largest(self) -> int:
        """The largest degree, 0 where there is no row."""
        return int(self.degrees[-1]) if self.degrees.size else 0


@dataclass(frozen=True, eq=False)
class RowDegrees:
    """The degrees of a graph's rows: how many rows have each and, perhaps, in which order.

    Parameters
    ----------
    histogram : DegreeHistogram
    row_pointers : array of int64, shape (n + 1,), optional
        Those of the graph, if it is at hand: they give the degrees in the order of the rows.
    """

    histogram: DegreeHistogram
    row_pointers: Longs | None = None

    @classmethod
    def of(cls, graph: Graph) -> RowDegrees:
        """Count the degrees of a graph, once."""
        pointers = graph.row_pointers
        return cls(graph.store.get("histogram", lambda: DegreeHistogram.of(pointers)), pointers)

    @property
    def n_rows(self) -> int:
        """Rows of the graph."""
        return self.histogram.n_rows

    @property
    def nnz(self) -> int:
        """Nonzeros of the graph."""
        return self.histogram.nnz

    @property
    def shape(self) -> tuple[int, int]:
        """Rows, and as many columns: degrees do not tell how many there are."""
        return self.n_rows, self.n_rows


@dataclass(frozen=True, eq=False)
class SortedRows:
    """A pattern with its rows in ascending order of degree.

    Attributes
    ----------
    permutation : Permutation
        The order.
    histogram : DegreeHistogram
    pattern : Pattern
        The rows in that order.
    nonzero_order : array of int, shape (nnz,)
        Nonzero `k` of `pattern` is that nonzero of the graph.
    """

    permutation: Permutation
    histogram: DegreeHistogram
    pattern: Pattern
    nonzero_order: Longs

    @classmethod
    def of(cls, graph: Graph) -> tuple[SortedRows, dict[str, float]]:
        """Sort a graph's rows, once for all plans of it, and tell the seconds of each step."""

        def make(clock: Stopwatch) -> SortedRows:
            with clock.step("degree sort"):
                permutation, histogram = sort_by_degree(graph.row_pointers)
            with clock.step("permute rows"):
                moved = permutation.apply_to_pattern(graph.pattern)
            return cls(permutation, histogram, *moved)

        return graph.store.prepared("rows by degree", make)


def degree_sort(graph: Any) -> Permutation:
    """Sort the rows by ascending degree, equal degrees in their old order.

    Parameters
    ----------
    graph : Graph, or anything `load_graph` takes
        Only its row pointers are read.

    Returns
    -------
    Permutation
        `order[i]` is the row with the i-th smallest degree.

    Raises
    ------
    GraphError
        If `graph` is not a valid sparse matrix.

    Notes
    -----
    The counting sort of Accel-GCN's section III-C, stable and in O(n).
    """
    return sort_by_degree(load_graph(graph).row_pointers)[0]


def windowed_degree_sort(graph: Any, *, window: int = 8192) -> Permutation:
    """Sort the rows by ascending degree inside windows of `window` rows each.

    Parameters
    ----------
    graph : Graph, or anything `load_graph` takes
        Only its row pointers are read.
    window : int
        Rows 0 to `window - 1` are sorted among themselves, then the next as many, and so on. 1
        keeps every row in place; n or more is `degree_sort`.

    Returns
    -------
    Permutation
        No row moves by `window` places or more, so that the locality of the old order is kept
        between the windows. Equal degrees keep their old order.

    Raises
    ------
    GraphError
        If `graph` is not a valid sparse matrix.
    ArgumentError
        If `window` is not an integer of at least 1.

    Notes
    -----
    What SELL-C-sigma (Kreutzer et al., 2014) calls its sorting scope.
    """
    window = checked_integer("window", window, error=ArgumentError)
    degrees = load_graph(graph).degrees
    order = np.lexsort((degrees, np.arange(degrees.size) // min(window, max(degrees.size, 1))))
    return Permutation.trusted(order.astype(np.int32))


def sort_by_degree(row_pointers: Longs) -> tuple[Permutation, DegreeHistogram]:
    """Sort rows as `degree_sort` does, and count the rows of each degree on the way."""
    histogram, degrees = DegreeHistogram.of(row_pointers), np.diff(row_pointers)
    n_rows = degrees.size
    if histogram.largest > n_rows:  # counting takes no longer table than the rows
        degrees = np.searchsorted(histogram.degrees, degrees)
    # SciPy transposes by a counting sort. Here row `i` has its one nonzero in column `degrees[i]`.
    arrays = np.ones(n_rows, np.int8), degrees.astype(np.int32), np.arange(n_rows + 1, dtype="i4")
    shape = (n_rows, int(degrees.max(initial=0)) + 1)
    by_degree = sparse.csr_array(arrays, shape=shape).tocsc()
    return Permutation.trusted(by_degree.indices), histogram
