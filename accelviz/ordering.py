"""Vertex orders: degree sorting (Accel-GCN, section III-C) and the permutation it gives."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from accelviz.datasets import load_graph
from accelviz.errors import GraphError
from accelviz.graph import Graph

#: A counting table may hold this many entries for each row before a comparison sort is cheaper.
_COUNTERS_PER_ROW = 4
_SMALL_TABLE = 1 << 16


@dataclass(frozen=True, eq=False)
class DegreeHistogram:
    """How many rows have each degree: all that a partition of degree-sorted rows depends on.

    Parameters
    ----------
    degrees : array of int64, shape (k,)
        The degrees that occur, ascending.
    rows : array of int64, shape (k,)
        How many rows have each of them.
    """

    degrees: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]

    @classmethod
    def of(cls, row_pointers: npt.NDArray[np.int64]) -> DegreeHistogram:
        """Count the degrees of a matrix from its row pointers, int64, shape (n + 1,)."""
        return _histogram(row_pointers, _degree_counts(row_pointers))

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
class Permutation:
    """A new order of rows: place `i` of the new order holds row `order[i]` of the old one.

    Parameters
    ----------
    order : array of int32, shape (n,)
        Each of 0 to n - 1 exactly once.

    Raises
    ------
    GraphError
        If `order` is not a permutation.
    """

    order: npt.NDArray[np.int32]

    def __post_init__(self) -> None:
        order = np.asarray(self.order)
        if order.ndim != 1 or order.dtype.kind not in "iu":
            raise GraphError(
                "order", f"a {order.ndim}-D array of {order.dtype}", "a 1-D array of integers"
            )
        if not _is_permutation(order):
            raise GraphError(
                "order",
                "some rows are missing, repeated or out of range",
                f"each of 0 to {order.size - 1} exactly once",
            )
        order = np.ascontiguousarray(order, dtype=np.int32).view()
        order.setflags(write=False)
        object.__setattr__(self, "order", order)

    @classmethod
    def trusted(cls, order: npt.NDArray[np.int32]) -> Permutation:
        """Wrap an order that is a permutation by construction, without checking it again."""
        permutation = object.__new__(cls)
        order.setflags(write=False)
        object.__setattr__(permutation, "order", order)
        return permutation

    def __len__(self) -> int:
        return self.order.size

    @cached_property
    def inverse(self) -> npt.NDArray[np.int32]:
        """Place of each old row in the new order, int32, shape (n,)."""
        inverse = np.empty_like(self.order)
        inverse[self.order] = np.arange(self.order.size, dtype=np.int32)
        inverse.setflags(write=False)
        return inverse

    def apply(self, array: npt.ArrayLike, axis: int = 0) -> npt.NDArray[Any]:
        """Bring `array` from the old order into the new one along `axis`."""
        return np.take(self._matching(array, axis), self.order, axis=axis)

    def invert(self, array: npt.ArrayLike, axis: int = 0) -> npt.NDArray[Any]:
        """Bring `array` from the new order back into the old one along `axis`."""
        return np.take(self._matching(array, axis), self.inverse, axis=axis)

    def apply_to_graph(self, graph: Graph, *, columns: bool = False) -> Graph:
        """Return `graph` with its rows, and on request its columns, in the new order.

        Parameters
        ----------
        graph : Graph
            As many rows as the permutation is long.
        columns : bool
            Relabel the columns too (the symmetric permutation P A P^T). A stack of layers can
            then stay in the new order from one layer to the next. Needs a square matrix.

        Returns
        -------
        Graph
            Row `i` is row `order[i]` of `graph`, with column `c` renamed `inverse[c]` if `columns`.

        Raises
        ------
        GraphError
            If the sizes do not match.
        """
        if graph.n_rows != len(self):
            raise GraphError(
                "graph", f"{graph.n_rows} rows for a permutation of {len(self)}", "as many"
            )
        if columns and graph.shape[1] != len(self):
            raise GraphError(
                "graph",
                f"{graph.shape[0]} x {graph.shape[1]} is not square",
                "a square matrix when columns are relabelled with the rows",
            )
        row_pointers = permuted_row_pointers(graph.row_pointers, self.order)
        column_indices = np.empty_like(graph.column_indices)
        values = np.empty_like(graph.values)
        _gather_rows(
            graph.row_pointers,
            graph.column_indices,
            graph.values,
            self.order,
            row_pointers,
            column_indices,
            values,
        )
        if columns:
            column_indices = self.inverse[column_indices]
            _sort_each_row(row_pointers, column_indices, values)
        return Graph(row_pointers, column_indices, values, graph.shape, graph.name, graph.source)

    def _matching(self, array: npt.ArrayLike, axis: int) -> npt.NDArray[Any]:
        array = np.asarray(array)
        if not -array.ndim <= axis < array.ndim or array.shape[axis] != len(self):
            raise GraphError(
                "array",
                f"shape {array.shape} along axis {axis} for a permutation of {len(self)}",
                f"length {len(self)} along that axis",
            )
        return array


def degree_sort(graph: Any) -> Permutation:
    """Sort the rows by ascending degree, equal degrees in their old order, in O(n).

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
    A stable counting sort, as section III-C of Accel-GCN asks for: one pass counts the rows of each
    degree, a prefix sum turns counts into places, a second pass puts each row in its place. Besides
    the result it needs one 8-byte counter for each degree up to the largest. Where that table would
    outgrow the rows (a few rows with millions of nonzeros), NumPy's stable sort takes over.
    """
    return sort_by_degree(load_graph(graph).row_pointers)[0]


def sort_by_degree(
    row_pointers: npt.NDArray[np.int64],
) -> tuple[Permutation, DegreeHistogram]:
    """Sort rows by degree and count the rows of each degree in the same passes.

    Parameters
    ----------
    row_pointers : array of int64, shape (n + 1,)
        Of a valid CSR matrix.

    Returns
    -------
    Permutation
        As `degree_sort` gives it.
    DegreeHistogram
        Of the same rows.
    """
    counts = _degree_counts(row_pointers)
    if counts is None:
        order = np.argsort(np.diff(row_pointers), kind="stable").astype(np.int32)
    else:
        order = _place_by_degree(row_pointers, counts)
    return Permutation.trusted(order), _histogram(row_pointers, counts)


def _degree_counts(row_pointers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64] | None:
    """Rows of each degree from 0 up, or None where that table would outgrow the rows."""
    largest = _largest_degree(row_pointers)
    if largest > max(_SMALL_TABLE, _COUNTERS_PER_ROW * (row_pointers.size - 1)):
        return None
    counts: npt.NDArray[np.int64] = _count_degrees(row_pointers, largest)
    return counts


def _histogram(
    row_pointers: npt.NDArray[np.int64], counts: npt.NDArray[np.int64] | None
) -> DegreeHistogram:
    if counts is None:
        return DegreeHistogram(*np.unique(np.diff(row_pointers), return_counts=True))
    present = np.flatnonzero(counts)
    return DegreeHistogram(present, counts[present])


@numba.njit(cache=True, nogil=True)
def _largest_degree(row_pointers: npt.NDArray[np.int64]) -> int:
    largest = 0
    for row in range(row_pointers.size - 1):
        largest = max(largest, row_pointers[row + 1] - row_pointers[row])
    return largest


@numba.njit(cache=True, nogil=True)
def _count_degrees(row_pointers: npt.NDArray[np.int64], largest: int) -> npt.NDArray[np.int64]:
    counts = np.zeros(largest + 1, dtype=np.int64)
    for row in range(row_pointers.size - 1):
        counts[row_pointers[row + 1] - row_pointers[row]] += 1
    return counts


@numba.njit(cache=True, nogil=True)
def _place_by_degree(
    row_pointers: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]
) -> npt.NDArray[np.int32]:
    place = np.empty(counts.size, dtype=np.int64)
    total = 0
    for degree in range(counts.size):
        place[degree] = total
        total += counts[degree]
    order = np.empty(row_pointers.size - 1, dtype=np.int32)
    for row in range(row_pointers.size - 1):
        degree = row_pointers[row + 1] - row_pointers[row]
        order[place[degree]] = row
        place[degree] += 1
    return order


@numba.njit(cache=True, nogil=True)
def _is_permutation(order: npt.NDArray[np.integer[Any]]) -> bool:
    seen = np.zeros(order.size, dtype=np.bool_)
    for row in order:
        if row < 0 or row >= order.size or seen[row]:
            return False
        seen[row] = True
    return True


@numba.njit(cache=True, nogil=True)
def permuted_row_pointers(
    row_pointers: npt.NDArray[np.int64], order: npt.NDArray[np.int32]
) -> npt.NDArray[np.int64]:
    """Row pointers, int64 (n + 1,), of the matrix whose row `i` is row `order[i]`."""
    permuted = np.empty(row_pointers.size, dtype=np.int64)
    permuted[0] = 0
    for place in range(order.size):
        row = order[place]
        permuted[place + 1] = permuted[place] + row_pointers[row + 1] - row_pointers[row]
    return permuted


@numba.njit(cache=True, nogil=True, parallel=True)
def _gather_rows(
    row_pointers: npt.NDArray[np.int64],
    column_indices: npt.NDArray[np.int32],
    values: npt.NDArray[np.float32],
    order: npt.NDArray[np.int32],
    new_pointers: npt.NDArray[np.int64],
    new_columns: npt.NDArray[np.int32],
    new_values: npt.NDArray[np.float32],
) -> None:
    for place in numba.prange(order.size):
        source = row_pointers[order[place]]
        target = new_pointers[place]
        for k in range(new_pointers[place + 1] - target):
            new_columns[target + k] = column_indices[source + k]
            new_values[target + k] = values[source + k]


@numba.njit(cache=True, nogil=True, parallel=True)
def _sort_each_row(
    row_pointers: npt.NDArray[np.int64],
    column_indices: npt.NDArray[np.int32],
    values: npt.NDArray[np.float32],
) -> None:
    for row in numba.prange(row_pointers.size - 1):
        start, stop = row_pointers[row], row_pointers[row + 1]
        places = np.argsort(column_indices[start:stop])
        column_indices[start:stop] = column_indices[start:stop][places]
        values[start:stop] = values[start:stop][places]
