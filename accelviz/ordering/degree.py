"""Degree sorting of all rows (Accel-GCN, section III-C) or within windows; degree histograms."""

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
    """The number of rows of each degree. It determines a partition of degree-sorted rows.

    Parameters
    ----------
    degrees : array of int64, shape (k,)
        Distinct degrees, ascending.
    rows : array of int64, shape (k,)
        Number of rows of each degree.
    """

    degrees: Longs
    rows: Longs

    @classmethod
    def of(cls, row_pointers: Longs) -> DegreeHistogram:
        """Count the degrees of a matrix from its row pointers, int64, shape (n + 1,)."""
        degrees = np.diff(row_pointers)
        if degrees.max(initial=0) > degrees.size:  # bincount would allocate more than n entries
            return cls(*np.unique(degrees, return_counts=True))
        counts = np.bincount(degrees)
        distinct = np.flatnonzero(counts)
        return cls(distinct, counts[distinct])

    @classmethod
    def counted(cls, counts: Mapping[int, int]) -> DegreeHistogram:
        """Convert a mapping `{degree: rows}`, in any order.

        Raises
        ------
        ArgumentError
            If a degree or a number of rows is not an integer of at least 0.
        """
        for label, numbers in (("degree", counts.keys()), ("number of rows", counts.values())):
            for number in numbers:
                integer = isinstance(number, int | np.integer) and not isinstance(number, bool)
                if not integer or number < 0:
                    problem = f"got a {label} of {number!r}"
                    raise ArgumentError("degrees", problem, "integers of 0 or more")
        pairs = sorted((int(degree), int(rows)) for degree, rows in counts.items() if rows)
        return cls(*np.array(pairs, np.int64).reshape(-1, 2).T)

    @property
    def n_rows(self) -> int:
        """Total number of rows."""
        return int(self.rows.sum())

    @property
    def nnz(self) -> int:
        """Total number of nonzeros."""
        return int(self.degrees @ self.rows)

    @property
    def largest(self) -> int:
        """Largest degree; 0 if there are no rows."""
        return int(self.degrees[-1]) if self.degrees.size else 0


@dataclass(frozen=True, eq=False)
class RowDegrees:
    """The degrees of a graph's rows, with or without the order of the rows.

    Parameters
    ----------
    histogram : DegreeHistogram
    row_pointers : array of int64, shape (n + 1,), optional
        Row pointers of the graph, which contain the degrees in row order.
    """

    histogram: DegreeHistogram
    row_pointers: Longs | None = None

    @classmethod
    def of(cls, graph: Graph) -> RowDegrees:
        """Return the degrees of a graph. The histogram is cached in the graph's store."""
        pointers = graph.row_pointers
        return cls(graph.store.get("histogram", lambda: DegreeHistogram.of(pointers)), pointers)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.histogram.n_rows

    @property
    def nnz(self) -> int:
        """Number of nonzeros."""
        return self.histogram.nnz

    @property
    def shape(self) -> tuple[int, int]:
        """`(n_rows, n_rows)`: the matrix is assumed to be square."""
        return self.n_rows, self.n_rows


@dataclass(frozen=True, eq=False)
class SortedRows:
    """A pattern with its rows sorted by ascending degree.

    Attributes
    ----------
    permutation : Permutation
        The order of the rows.
    histogram : DegreeHistogram
    pattern : Pattern
        The sorted pattern.
    nonzero_order : array of int, shape (nnz,)
        Nonzero `k` of `pattern` is nonzero `nonzero_order[k]` of the graph.
    """

    permutation: Permutation
    histogram: DegreeHistogram
    pattern: Pattern
    nonzero_order: Longs

    @classmethod
    def of(cls, graph: Graph) -> tuple[SortedRows, dict[str, float]]:
        """Sort a graph's rows, once per graph; return them and the seconds of each step."""

        def make(clock: Stopwatch) -> SortedRows:
            with clock.step("degree sort"):
                permutation, histogram = sort_by_degree(graph.row_pointers)
            with clock.step("permute rows"):
                pattern, nonzero_order = permutation.apply_to_pattern(graph.pattern)
            return cls(permutation, histogram, pattern, nonzero_order)

        return graph.store.prepared("rows by degree", make)


def degree_sort(graph: Any) -> Permutation:
    """Sort the rows by ascending degree; rows of equal degree keep their order.

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
        Number of rows per window. 1 keeps all rows in place; n or more is `degree_sort`.

    Returns
    -------
    Permutation
        Every row moves by less than `window` rows, which preserves most locality of the old order.
        Rows of equal degree in a window keep their order.

    Raises
    ------
    GraphError
        If `graph` is not a valid sparse matrix.
    ArgumentError
        If `window` is not an integer of at least 1.

    Notes
    -----
    `window` is the sorting scope sigma of SELL-C-sigma (Kreutzer et al., 2014).
    """
    window = checked_integer("window", window, error=ArgumentError)
    degrees = load_graph(graph).degrees
    order = np.lexsort((degrees, np.arange(degrees.size) // min(window, max(degrees.size, 1))))
    return Permutation.trusted(order.astype(np.int32))


def sort_by_degree(row_pointers: Longs) -> tuple[Permutation, DegreeHistogram]:
    """Sort rows as `degree_sort` does, and return the degree histogram too."""
    histogram, degrees = DegreeHistogram.of(row_pointers), np.diff(row_pointers)
    n_rows = degrees.size
    if histogram.largest > n_rows:  # rank the degrees, so that the counting sort is in O(n)
        degrees = np.searchsorted(histogram.degrees, degrees)
    # SciPy transposes by a counting sort: row `i` has one nonzero, in column `degrees[i]`.
    arrays = np.ones(n_rows, np.int8), degrees.astype(np.int32), np.arange(n_rows + 1, dtype="i4")
    shape = (n_rows, int(degrees.max(initial=0)) + 1)
    by_degree = sparse.csr_array(arrays, shape=shape).tocsc()
    return Permutation.trusted(by_degree.indices), histogram
