"""Permutations of rows, and their application to arrays and graphs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from accelviz.arrays import Ints
from accelviz.errors import GraphError
from accelviz.graph import Graph, Pattern
from accelviz.immutable import Immutable, frozen, taken_over


@dataclass(frozen=True, eq=False)
class Permutation(Immutable):
    """A permutation of rows: row `i` of the new order is row `order[i]` of the old one.

    Parameters
    ----------
    order : array of int32, shape (n,)
        Each integer from 0 to n - 1 exactly once.

    Raises
    ------
    GraphError
        If `order` is not a permutation.
    """

    order: Ints

    def __post_init__(self) -> None:
        order = np.asarray(self.order)
        if order.ndim != 1 or order.dtype.kind not in "iu":
            problem = f"a {order.ndim}-D array of {order.dtype}"
            raise GraphError("order", problem, "a 1-D array of integers")
        if not np.array_equal(np.sort(order), np.arange(order.size)):
            expected = f"each of 0 to {order.size - 1} exactly once"
            raise GraphError("order", "some rows are missing, repeated or out of range", expected)
        order = np.ascontiguousarray(order, dtype=np.int32)
        object.__setattr__(self, "order", frozen(order))

    @classmethod
    def trusted(cls, order: Ints) -> Permutation:
        """Wrap an order without checking that it is a permutation; makes it read-only."""
        permutation = object.__new__(cls)
        object.__setattr__(permutation, "order", taken_over(order))
        return permutation

    def __len__(self) -> int:
        return self.order.size

    @cached_property
    def inverse(self) -> Ints:
        """Position of each old row in the new order, int32, shape (n,)."""
        inverse = np.empty_like(self.order)
        inverse[self.order] = np.arange(self.order.size, dtype=np.int32)
        return taken_over(inverse)

    def apply(self, array: npt.ArrayLike, axis: int = 0) -> npt.NDArray[Any]:
        """Permute `array` from the old order to the new order along `axis`."""
        return np.take(self._checked(array, axis), self.order, axis=axis)

    def invert(self, array: npt.ArrayLike, axis: int = 0) -> npt.NDArray[Any]:
        """Permute `array` from the new order to the old order along `axis`."""
        return np.take(self._checked(array, axis), self.inverse, axis=axis)

    def apply_to_graph(self, graph: Graph, *, columns: bool = False) -> Graph:
        """Return `graph` with its rows and, optionally, its columns in the new order.

        Parameters
        ----------
        graph : Graph
            A graph of `len(self)` rows.
        columns : bool
            Whether to permute the columns too (the symmetric permutation P A P^T), which needs a
            square matrix. All layers of a network can then work in the new order.

        Returns
        -------
        Graph
            Row `i` is row `order[i]` of `graph`, with column `c` renamed `inverse[c]` if `columns`.

        Raises
        ------
        GraphError
            If the sizes do not match.
        """
        pattern, order = self.apply_to_pattern(graph.pattern, columns=columns)
        return replace(
            graph,
            row_pointers=pattern.row_pointers,
            column_indices=pattern.column_indices,
            values=taken_over(graph.values[order]),
        )

    def apply_to_pattern(
        self, pattern: Pattern, *, columns: bool = False
    ) -> tuple[Pattern, npt.NDArray[Any]]:
        """Permute a pattern as `apply_to_graph` does, with the same errors.

        Returns
        -------
        Pattern
        array of int32 (int64 from 2^31 nonzeros on), shape (nnz,)
            Nonzero `k` of the result is nonzero `array[k]` of `pattern`.
        """
        if pattern.n_rows != len(self):
            problem = f"{pattern.n_rows} rows for a permutation of {len(self)}"
            raise GraphError("graph", problem, "as many")
        if columns and pattern.shape[1] != len(self):
            problem = f"{pattern.shape[0]} x {pattern.shape[1]} is not square"
            expected = "a square matrix when columns are relabelled with the rows"
            raise GraphError("graph", problem, expected)
        permuted = pattern.numbered()[self.order]
        if columns:
            arrays = permuted.data, self.inverse[permuted.indices], permuted.indptr
            permuted = sparse.csr_array(arrays, shape=pattern.shape)
            permuted.sort_indices()
        pointers = taken_over(permuted.indptr.astype(np.int64))
        indices = taken_over(permuted.indices.astype(np.int32, copy=False))
        return Pattern(pointers, indices, pattern.shape, pattern.name), taken_over(permuted.data)

    def _checked(self, array: npt.ArrayLike, axis: int) -> npt.NDArray[Any]:
        array = np.asarray(array)
        if not -array.ndim <= axis < array.ndim or array.shape[axis] != len(self):
            problem = f"shape {array.shape} along axis {axis} for a permutation of {len(self)}"
            raise GraphError("array", problem, f"length {len(self)} along that axis")
        return array
