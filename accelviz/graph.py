"""The graph every strategy starts from: a validated CSR matrix with a name and an origin.

Its pattern says where the nonzeros are. Plans are made of the pattern; the values are weights that
a run may replace.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from scipy import sparse

from accelviz.errors import GraphError
from accelviz.store import Store

#: What a graph stands for, and what that means.
KINDS = {
    "real": "a published graph as it is",
    "given": "a file or object of yours",
    "twin": "made up, with the exact degrees of a published graph",
    "approximate twin": "made up, with degrees fitted to a few published figures",
    "random": "made up by a random model",
}

#: Column indices and row numbers are 32-bit in every kernel and every metadata format.
MAX_SIDE = int(np.iinfo(np.int32).max)


class _Csr:
    """What a pattern and a graph have in common: two arrays that nobody can write to."""

    row_pointers: Any
    column_indices: Any
    shape: tuple[int, int]

    def __reduce__(self) -> tuple[Any, ...]:
        # The default would unpickle arrays that can be written to.
        values = (getattr(self, field.name) for field in fields(cast(Any, self)))
        return type(self), tuple(values)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self

    @property
    def n_rows(self) -> int:
        """Number of rows of the matrix (target nodes)."""
        return self.shape[0]

    @property
    def nnz(self) -> int:
        """Number of stored nonzeros (edges)."""
        return int(self.column_indices.size)


@dataclass(frozen=True, eq=False)
class Pattern(_Csr):
    """Where a matrix has its nonzeros: CSR without the values.

    Parameters
    ----------
    row_pointers : array of int64, shape (n_rows + 1,)
    column_indices : array of int32, shape (nnz,)
        NumPy arrays, or CuPy arrays of a matrix that lies on the GPU. They are not checked here:
        `Graph` does that.
    shape : tuple of int
        Rows and columns.
    name : str
        A short name for tables, pictures and messages.

    Notes
    -----
    A pattern never changes: it copies NumPy arrays, unless they are a graph's or another pattern's.
    """

    row_pointers: Any
    column_indices: Any
    shape: tuple[int, int]
    name: str = "graph"

    def __post_init__(self) -> None:
        for field in ("row_pointers", "column_indices"):
            if isinstance(array := getattr(self, field), np.ndarray):
                object.__setattr__(self, field, frozen(array))

    @cached_property
    def degrees(self) -> npt.NDArray[np.int32]:
        """Nonzeros of each row, int32, shape (n_rows,)."""
        return taken_over(np.diff(self.row_pointers).astype(np.int32))

    @cached_property
    def used_columns(self) -> int:
        """Number of columns with a nonzero: the rows of X that an SpMM reads at all."""
        used = np.zeros(self.shape[1], dtype=np.bool_)
        used[self.column_indices] = True
        return int(used.sum())

    def numbered(self) -> sparse.csr_array:
        """Return the pattern as a SciPy matrix whose values are the positions of its nonzeros.

        They are int32, or int64 from 2^31 nonzeros on, as SciPy's index arrays are.
        """
        index = np.int32 if self.nnz <= MAX_SIDE else np.int64
        positions = np.arange(self.nnz, dtype=index)
        pointers = self.row_pointers.astype(index)
        arrays = (positions, self.column_indices, pointers)
        return sparse.csr_array(arrays, shape=self.shape, copy=False)


@dataclass(frozen=True, eq=False)
class Transpose:
    """A graph with its edges turned round, and where each nonzero came from.

    Attributes
    ----------
    graph : Graph
        The transposed matrix.
    nonzeros : array of int32 (int64 from 2^31 nonzeros on), shape (nnz,)
        Nonzero `k` of `graph` is nonzero `nonzeros[k]` of the matrix that was transposed, so
        `values[nonzeros]` brings weights, one for each nonzero, into the new order.
    """

    graph: Graph
    nonzeros: npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Graph(_Csr):
    """A sparse matrix in CSR form, checked once when it is made.

    Row `i` holds the in-neighbors of node `i`, so that `A @ X` sums their features. A graph is
    mostly square; rectangular matrices (a mini-batch, a bipartite graph) are welcome too.

    Parameters
    ----------
    row_pointers : array of int64, shape (n_rows + 1,)
        Position of each row's first nonzero. 64-bit, so that more than 2^31 nonzeros fit.
    column_indices : array of int32, shape (nnz,)
        Column of each nonzero, ascending and unique inside a row.
    values : array of float32, shape (nnz,)
        Edge weights, all finite. An explicitly stored zero counts as a nonzero, as in SciPy.
    shape : tuple of int
        Rows and columns, each below 2^31.
    name : str
        A short name for tables and pictures.
    source : str
        Where the graph came from.
    kind : str
        What it stands for, one of `KINDS`.

    Raises
    ------
    GraphError
        If any of the above does not hold. Nothing is mended here; `load_graph` mends what can be
        mended (unsorted and duplicate columns, other dtypes).

    Notes
    -----
    A graph never changes: it copies its arrays, unless they are another graph's. So plans made
    from it stay right.

    Two graphs are equal only if they are the same object; `==` does not compare nonzeros.
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
                expected = f"a 1-D array of {np.dtype(dtype).name}"
                raise GraphError(field, f"got {_describe(array)}", expected)
            object.__setattr__(self, field, frozen(np.ascontiguousarray(array)))
        object.__setattr__(self, "shape", checked_shape(self.shape))
        if self.kind not in KINDS:
            raise GraphError("kind", f"got {self.kind!r}", ", ".join(KINDS))
        check_csr(self.row_pointers, self.column_indices, self.values, self.shape)

    @cached_property
    def pattern(self) -> Pattern:
        """Where the nonzeros are; plans refer to it and not to the graph."""
        return Pattern(self.row_pointers, self.column_indices, self.shape, self.name)

    @property
    def degrees(self) -> npt.NDArray[np.int32]:
        """Nonzeros of each row, int32, shape (n_rows,)."""
        return self.pattern.degrees

    @property
    def adjacency(self) -> sparse.csr_array:
        """The matrix as a new SciPy `csr_array` of float32, sharing this graph's memory.

        SciPy wants one dtype for both index arrays, so the row pointers are 32-bit in this view
        unless there are 2^31 nonzeros or more.
        """
        narrow = np.int32 if self.nnz <= MAX_SIDE else np.int64
        pointers = self.row_pointers.astype(narrow, copy=False)
        matrix = sparse.csr_array(
            (self.values, self.column_indices, pointers), shape=self.shape, copy=False
        )
        matrix.has_sorted_indices = True
        matrix.has_canonical_format = True
        return matrix

    @cached_property
    def store(self) -> Store:
        """Plans and preprocessing of this graph, freed with it."""
        return Store()

    def with_values(self, values: npt.NDArray[np.float32]) -> Graph:
        """Return the graph with other weights, float32, shape (nnz,), in the same order.

        It shares the pattern, and with it all that was planned and prepared.
        """
        graph = replace(self, values=values)
        graph.__dict__.update(pattern=self.pattern, store=self.store)
        return graph

    def transposed(self) -> Transpose:
        """Turn every edge round: row `j` of the result holds what column `j` held.

        Returns
        -------
        Transpose
            The transposed graph, rectangular ones too, and the map between the orders of the
            nonzeros. It is made once, in O(rows + columns + nonzeros), and kept with the graph.
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
        order = by_column.data
        order.setflags(write=False)
        return Transpose(graph, order)

    def __repr__(self) -> str:
        sides = " x ".join(f"{side:,}" for side in self.shape)
        return f"Graph({self.name!r}: {sides}, {self.nnz:,} nonzeros, {self.source})"


#: Arrays that nobody but this module has ever been able to write to, by identity.
_FROZEN: weakref.WeakValueDictionary[int, npt.NDArray[Any]] = weakref.WeakValueDictionary()


def frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return an array that nobody can write to: itself if it came from here, else a copy."""
    return array if _FROZEN.get(id(array)) is array else taken_over(array.copy())


def taken_over(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return an array that nobody else holds as one that nobody can write to, not copied."""
    owner = array.base if isinstance(array.base, np.ndarray) else array
    owner.setflags(write=False)
    array.setflags(write=False)
    view = array.view()  # whose flag cannot be turned back, as its owner's is off
    _FROZEN[id(view)] = view
    return view


def check_csr(
    row_pointers: npt.NDArray[Any],
    column_indices: npt.NDArray[Any],
    values: npt.NDArray[Any],
    shape: tuple[int, int],
    *,
    canonical: bool = True,
) -> None:
    """Refuse index arrays that would read out of bounds, and non-finite values.

    Parameters
    ----------
    row_pointers, column_indices, values : array
        The three CSR arrays, of any integer and real dtype.
    shape : tuple of int
        Rows and columns.
    canonical : bool
        Also require ascending, unique columns in each row.

    Raises
    ------
    GraphError
        Naming the array, the first offending place and what would be right.
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
    falling = np.flatnonzero(row_pointers[1:] < row_pointers[:-1])
    if falling.size:
        raise GraphError("row_pointers", f"they fall after row {falling[0]}", "never falling")
    if nnz == 0:
        return
    for where in (int(np.argmin(column_indices)), int(np.argmax(column_indices))):
        column = int(column_indices[where])
        if not 0 <= column < n_cols:
            problem = f"{'the negative index ' * (column < 0)}{column} at position {where}"
            expected = f"0 to {n_cols - 1}{', from the shape' * (column >= 0)}"
            raise GraphError("column_indices", problem, expected)
    if canonical:
        rising = column_indices[1:] > column_indices[:-1]
        starts = row_pointers[1:-1]
        rising[starts[(starts > 0) & (starts < nnz)] - 1] = True
        if not rising.all():
            where = int(np.argmin(rising)) + 1
            row = int(np.searchsorted(row_pointers, where, side="right")) - 1
            raise GraphError(
                "column_indices",
                f"row {row} is unsorted or repeats a column at position {where}",
                "ascending, unique columns in each row; load_graph sorts rows and sums duplicates",
            )
    finite = np.isfinite(values)
    if not finite.all():
        where = int(np.argmin(finite))
        raise GraphError(
            "values",
            f"{nnz - int(finite.sum())} of {nnz} are NaN or infinite in float32, the first "
            f"({values[where]}) at position {where}",
            "finite values only",
        )


def checked_shape(shape: object) -> tuple[int, int]:
    """Return a shape as two Python integers, or say what is wrong with it."""
    try:
        n_rows, n_cols = (int(side) for side in shape)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        raise GraphError("shape", f"got {shape!r}", "two integers, rows and columns") from None
    if min(n_rows, n_cols) < 0 or max(n_rows, n_cols) > MAX_SIDE:
        raise GraphError("shape", f"got {n_rows} x {n_cols}", f"0 to {MAX_SIDE} on each side")
    return n_rows, n_cols


def _describe(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"a {value.ndim}-D array of {value.dtype}"
    return f"a {type(value).__name__}"
