"""The graph that every strategy reads: a validated sparse matrix in CSR form, with a name.

`Graph` has the matrix with its values. `Pattern` has the positions of the nonzeros only. Plans are
made from the pattern, so one plan works with any values. All arrays are read-only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from accelviz import markup
from accelviz.errors import ArgumentError, GraphError, check_fits
from accelviz.immutable import Immutable, frozen, taken_over
from accelviz.store import Store

#: Origin of a graph, and its description for users.
KINDS = {
    "real": "a published graph as it is",
    "given": "a file or object of yours",
    "twin": "made up, with the exact degrees of a published graph",
    "approximate twin": "made up, with degrees fitted to a few published figures",
    "random": "made up by a random model",
}

#: Largest number of rows or columns: kernels and metadata number them in 32 bits.
MAX_SIDE = int(np.iinfo(np.int32).max)


class _Csr(Immutable):
    """Base class of `Pattern` and `Graph`: read-only index arrays and a shape."""

    row_pointers: Any
    column_indices: Any
    shape: tuple[int, int]

    @property
    def n_rows(self) -> int:
        """Number of rows of the matrix (target nodes)."""
        return self.shape[0]

    @property
    def n_cols(self) -> int:
        """Number of columns of the matrix (source nodes)."""
        return self.shape[1]

    @property
    def nnz(self) -> int:
        """Number of stored nonzeros (edges)."""
        return int(self.column_indices.size)


@dataclass(frozen=True, eq=False)
class Pattern(_Csr):
    """The positions of a matrix's nonzeros: CSR without values.

    Parameters
    ----------
    row_pointers : array of int64, shape (n_rows + 1,)
    column_indices : array of int32, shape (nnz,)
        NumPy arrays, or CuPy arrays of a matrix on the GPU. Only `Graph` checks them.
    shape : tuple of int
        Rows and columns.
    name : str
        A short name for tables, pictures and messages.

    Notes
    -----
    A pattern is immutable. It copies NumPy arrays, except those of a graph or another pattern.
    """

    row_pointers: Any
    column_indices: Any
    shape: tuple[int, int]
    name: str = "graph"

    @cached_property
    def degrees(self) -> npt.NDArray[np.int32]:
        """Number of nonzeros of each row, int32, shape (n_rows,)."""
        return taken_over(np.diff(self.row_pointers).astype(np.int32))

    @cached_property
    def used_columns(self) -> int:
        """Number of columns with a nonzero, which is the number of rows of X that SpMM reads."""
        used = np.zeros(self.shape[1], dtype=np.bool_)
        used[self.column_indices] = True
        return int(used.sum())

    def numbered(self) -> sparse.csr_array:
        """Return a SciPy matrix whose values number the nonzeros: 0 to nnz - 1.

        Values and indices are int32, or int64 from 2^31 nonzeros on.
        """
        index = np.int32 if self.nnz <= MAX_SIDE else np.int64
        positions = np.arange(self.nnz, dtype=index)
        pointers = self.row_pointers.astype(index)
        arrays = (positions, self.column_indices, pointers)
        return sparse.csr_array(arrays, shape=self.shape, copy=False)


@dataclass(frozen=True, eq=False)
class Transpose(Immutable):
    """A transposed graph, and the permutation of its nonzeros.

    Attributes
    ----------
    graph : Graph
        The transposed matrix.
    nonzeros : array of int32 (int64 from 2^31 nonzeros on), shape (nnz,)
        Nonzero `k` of `graph` is nonzero `nonzeros[k]` of the original matrix, so
        `values[nonzeros]` are the original's values in the order of `graph`.
    """

    graph: Graph
    nonzeros: npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Graph(_Csr):
    """A sparse matrix in CSR form, validated at construction.

    Row `i` has a nonzero in column `j` for each edge from source node `j` to target node `i`, so
    `A @ X` sums the features of in-neighbors. Matrices may be rectangular (a mini-batch, a
    bipartite graph).

    Parameters
    ----------
    row_pointers : array of int64, shape (n_rows + 1,)
        Position of each row's first nonzero, and the number of nonzeros.
    column_indices : array of int32, shape (nnz,)
        Column of each nonzero, ascending and unique within a row.
    values : array of float32, shape (nnz,)
        Edge weights, all finite. An explicitly stored zero counts as a nonzero, as in SciPy.
    shape : tuple of int
        Rows and columns, each below 2^31.
    name : str
        A short name for tables and pictures.
    source : str
        Description of the graph's origin, such as the name of its file.
    kind : str
        One of `KINDS`.

    Raises
    ------
    GraphError
        If an array or argument violates the above. `load_graph` also accepts unsorted and duplicate
        columns and other dtypes, and converts them.

    Notes
    -----
    A graph is immutable, so plans made from it stay valid. It copies its arrays, except those of
    another graph. `==` compares identity, not nonzeros.
    """

    row_pointers: npt.NDArray[np.int64]
    column_indices: npt.NDArray[np.int32]
    values: npt.NDArray[np.float32]
    shape: tuple[int, int]
    name: str = "graph"
    source: str = "made in memory"
    kind: str = "given"

    def __post_init__(self) -> None:
        dtypes = {"row_pointers": np.int64, "column_indices": np.int32, "values": np.float32}
        for field, dtype in dtypes.items():
            array = getattr(self, field)
            if not isinstance(array, np.ndarray) or array.dtype != dtype or array.ndim != 1:
                problem = f"got a {type(array).__name__}"
                if isinstance(array, np.ndarray):
                    problem = f"got a {array.ndim}-D array of {array.dtype}"
                raise GraphError(field, problem, f"a 1-D array of {np.dtype(dtype).name}")
            object.__setattr__(self, field, frozen(np.ascontiguousarray(array)))
        object.__setattr__(self, "shape", checked_shape(self.shape))
        if self.kind not in KINDS:
            raise GraphError("kind", f"got {self.kind!r}", ", ".join(KINDS))
        check_csr(self.row_pointers, self.column_indices, self.values, self.shape)

    @cached_property
    def pattern(self) -> Pattern:
        """The positions of the nonzeros. Plans refer to the pattern, not to the graph."""
        return Pattern(self.row_pointers, self.column_indices, self.shape, self.name)

    @property
    def degrees(self) -> npt.NDArray[np.int32]:
        """Number of nonzeros of each row, int32, shape (n_rows,)."""
        return self.pattern.degrees

    @property
    def adjacency(self) -> sparse.csr_array:
        """The matrix as a new SciPy `csr_array` of float32; values and columns are not copied.

        SciPy requires one dtype for both index arrays, so the row pointers are converted to int32
        if there are fewer than 2^31 nonzeros.
        """
        index = np.int32 if self.nnz <= MAX_SIDE else np.int64
        pointers = self.row_pointers.astype(index, copy=False)
        matrix = sparse.csr_array(
            (self.values, self.column_indices, pointers), shape=self.shape, copy=False
        )
        matrix.has_sorted_indices = True
        matrix.has_canonical_format = True
        return matrix

    @property
    def T(self) -> Graph:  # noqa: N802
        """The transposed matrix: every edge is reversed. See `transposed`."""
        return self.transposed().graph

    def toarray(self) -> npt.NDArray[np.float32]:
        """Return the dense matrix, float32, shape (n_rows, n_cols).

        Raises
        ------
        GraphError
            If it exceeds the memory of this machine.
        """
        n_bytes = np.dtype(np.float32).itemsize * self.n_rows * self.n_cols
        problem = f"{self.n_rows:,} x {self.n_cols:,} as a dense matrix"
        check_fits("shape", problem, n_bytes, "a smaller graph", error=GraphError)
        return self.adjacency.toarray()

    #: NumPy leaves `X @ graph` to `__rmatmul__`.
    __array_ufunc__ = None

    def __matmul__(self, X: Any) -> npt.NDArray[Any]:
        """Return `A @ X`, computed by SciPy on the host; `accelviz.spmm` runs a strategy.

        Parameters
        ----------
        X : array, shape (n_cols, k) or (n_cols,)
            Any real dtype. The result has the larger precision of it and float32.
        """
        return self.adjacency @ _factor(X, 0, self.n_cols)

    def __rmatmul__(self, X: Any) -> npt.NDArray[Any]:
        """Return `X @ A` for X of shape (k, n_rows) or (n_rows,), computed by SciPy."""
        return _factor(X, -1, self.n_rows) @ self.adjacency

    @cached_property
    def store(self) -> Store:
        """Cache of plans and preprocessing results of this graph."""
        return Store()

    @cached_property
    def weighted_store(self) -> Store:
        """Cache of results that depend on the weights, which no copy shares."""
        return Store()

    def with_values(self, values: npt.NDArray[np.float32]) -> Graph:
        """Return the graph with other weights, float32, shape (nnz,), in the same order.

        The two graphs share their pattern and their store.
        """
        graph = replace(self, values=values)
        graph.__dict__.update(pattern=self.pattern, store=self.store)
        return graph

    def transposed(self) -> Transpose:
        """Transpose the matrix: every edge is reversed.

        Returns
        -------
        Transpose
            The transposed graph and the permutation of the nonzeros. It is computed once, in
            O(rows + columns + nonzeros), and cached.
        """
        return self._transpose

    @cached_property
    def _transpose(self) -> Transpose:
        by_column = self.pattern.numbered().tocsc()
        graph = replace(
            self,
            row_pointers=taken_over(by_column.indptr.astype(np.int64)),
            column_indices=taken_over(by_column.indices),
            values=taken_over(self.values[by_column.data]),
            shape=self.shape[::-1],
            name=f"{self.name} transposed",
        )
        return Transpose(graph, taken_over(by_column.data))

    def __repr__(self) -> str:
        sides = " x ".join(f"{side:,}" for side in self.shape)
        return f"Graph({self.name!r}: {sides}, {self.nnz:,} nonzeros, {self.source})"

    def _repr_html_(self) -> str:
        is_square = self.n_rows == self.n_cols
        row, rows, nonzeros = ("row", "rows", "nonzeros")
        sentence = f"{self.n_rows:,} x {self.n_cols:,}, {self.nnz:,} nonzeros"
        if is_square:
            row, rows, nonzeros = ("node", "nodes", "incoming edges")
            sentence = f"a graph of {self.n_rows:,} nodes and {self.nnz:,} edges"
        low, high = self.values.min(initial=np.inf), self.values.max(initial=-np.inf)
        weights = f"all {low:g}" if low == high else f"{low:g} to {high:g}"
        mean, most = self.nnz / max(1, self.n_rows), int(self.degrees.max(initial=0))
        facts = [
            (f"{nonzeros} of a {row}", f"{mean:,.1f} on average, {most:,} at most"),
            ("weights", weights if self.nnz else "none"),
            ("source", f"{self.source} ({KINDS[self.kind]})"),
        ]
        bars = markup.of_array(self.degrees)
        return markup.summary(self.name, sentence, facts, bars, f"{rows} by number of {nonzeros}")


def _factor(X: Any, axis: int, length: int) -> npt.NDArray[Any]:
    """Return an operand of `@` as a NumPy array of `length` along `axis`."""
    try:
        array = np.asarray(X)
    except (TypeError, ValueError, RuntimeError) as error:
        expected = "an array on the host, or accelviz.spmm(graph, X)"
        raise ArgumentError("X", f"a {type(X).__name__}: {error}", expected) from error
    if array.ndim not in (1, 2) or array.shape[axis] != length or array.dtype.kind not in "biuf":
        problem = f"shape {array.shape} of {array.dtype}"
        raise ArgumentError("X", problem, f"real numbers, 1-D or 2-D, {length} along axis {axis}")
    return array


def check_csr(
    row_pointers: npt.NDArray[Any],
    column_indices: npt.NDArray[Any],
    values: npt.NDArray[Any],
    shape: tuple[int, int],
    *,
    canonical: bool = True,
) -> None:
    """Check that CSR index arrays are consistent and in bounds, and that values are finite.

    Parameters
    ----------
    row_pointers, column_indices, values : array
        The three CSR arrays, of any integer and real dtype.
    shape : tuple of int
        Rows and columns.
    canonical : bool
        Whether to require ascending, unique columns in each row.

    Raises
    ------
    GraphError
        With the array, the first wrong entry and the expected value.
    """
    n_rows, n_cols = shape
    nnz = column_indices.size
    if row_pointers.size != n_rows + 1:
        problem = f"{row_pointers.size} entries for {n_rows} rows"
        raise GraphError("row_pointers", problem, f"{n_rows + 1}")
    if values.size != nnz:
        raise GraphError("values", f"{values.size} for {nnz} column indices", "as many")
    if row_pointers[0] != 0 or row_pointers[-1] != nnz:
        problem = f"they run from {row_pointers[0]} to {row_pointers[-1]}"
        raise GraphError("row_pointers", problem, f"from 0 to the number of nonzeros, {nnz}")
    decreasing = np.flatnonzero(row_pointers[1:] < row_pointers[:-1])
    if decreasing.size:
        raise GraphError("row_pointers", f"they fall after row {decreasing[0]}", "never falling")
    if nnz == 0:
        return
    for position in (int(np.argmin(column_indices)), int(np.argmax(column_indices))):
        column = int(column_indices[position])
        if not 0 <= column < n_cols:
            problem = f"{'the negative index ' * (column < 0)}{column} at position {position}"
            expected = f"0 to {n_cols - 1}{', from the shape' * (column >= 0)}"
            raise GraphError("column_indices", problem, expected)
    if canonical:
        ascending = column_indices[1:] > column_indices[:-1]
        row_starts = row_pointers[1:-1]
        ascending[row_starts[(row_starts > 0) & (row_starts < nnz)] - 1] = True
        if not ascending.all():
            position = int(np.argmin(ascending)) + 1
            row = int(np.searchsorted(row_pointers, position, side="right")) - 1
            raise GraphError(
                "column_indices",
                f"row {row} is unsorted or repeats a column at position {position}",
                "ascending, unique columns in each row; load_graph sorts rows and sums duplicates",
            )
    finite = np.isfinite(values)
    if not finite.all():
        position = int(np.argmin(finite))
        problem = f"{nnz - int(finite.sum())} of {nnz} are NaN or infinite in float32, the first "
        problem += f"({values[position]}) at position {position}"
        raise GraphError("values", problem, "finite values only")


def checked_shape(shape: object) -> tuple[int, int]:
    """Return a shape as two integers; raise a GraphError if it is invalid."""
    try:
        n_rows, n_cols = (int(side) for side in shape)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        raise GraphError("shape", f"got {shape!r}", "two integers, rows and columns") from None
    if min(n_rows, n_cols) < 0 or max(n_rows, n_cols) > MAX_SIDE:
        raise GraphError("shape", f"got {n_rows} x {n_cols}", f"0 to {MAX_SIDE} on each side")
    return n_rows, n_cols
