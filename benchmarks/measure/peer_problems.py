"""Inputs, and results in float64, of the operations that `peers.py` compares; all on the GPU.

The float64 results come from peer_references.cu.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import cupy
import numpy as np

from accelviz import bits
from accelviz.graph import Graph

SLOPE = 0.2
#: Elements after a matrix, since kernels for multiples of 32 columns read beyond narrower ones.
SLACK = 4096
#: Distinct values of a column of a maximum's features, which has at most as many rows.
_STEPS = 1 << 22
#: Steps of 1 to which features of attention's scores are rounded.
_APART = 1 << 16
_THREADS = 256
_SOURCE = Path(__file__).with_name("peer_references.cu")


@functools.cache
def _module() -> Any:
    return cupy.RawModule(code=_SOURCE.read_text("utf-8"))


def launch(name: str, count: int, *arguments: Any) -> None:
    """Run a kernel of peer_references.cu with a thread for each of `count` elements."""
    if count:
        grid = (-(-count // _THREADS),)
        _module().get_function(name)(grid, (_THREADS,), (np.int64(count), *arguments))


def padded(shape: tuple[int, ...], dtype: Any = np.float32) -> Any:
    """Return an uninitialised array with `SLACK` elements of memory after it."""
    count = int(np.prod(shape))
    memory = cupy.empty(count + SLACK, dtype)
    memory[count:] = 0
    return memory[:count].reshape(shape)


class DeviceGraph:
    """A graph's arrays on the GPU with 32-bit indices, and what peers' preprocessing derives."""

    def __init__(self, graph: Graph) -> None:
        self.graph, (self.n_rows, self.n_columns) = graph, graph.shape
        self.nnz, self.max_degree = graph.nnz, int(graph.degrees.max(initial=0))
        self.pointers = cupy.asarray(graph.row_pointers).astype(np.int32)
        self.columns = padded((graph.nnz,), np.int32)
        self.values = padded((graph.nnz,))
        self.columns[...] = cupy.asarray(graph.column_indices)
        self.values[...] = cupy.asarray(graph.values)
        self.degrees = cupy.diff(self.pointers)
        self._windows: dict[int, tuple[Any, Any, Any]] = {}

    @functools.cached_property
    def ones(self) -> Any:
        """One for each nonzero, in condensed of weights."""
        ones = padded((self.nnz,))
        ones[...] = 1
        return ones

    @functools.cached_property
    def rows(self) -> Any:
        """Row of each nonzero."""
        return repeated(self.degrees)

    @functools.cached_property
    def transposed(self) -> tuple[Any, Any, Any]:
        """Pointers, rows and positions in the caller's order of the nonzeros of each column."""
        order = cupy.argsort(self.columns.astype(np.int64) * self.n_rows + self.rows)
        counts = cupy.bincount(self.columns, minlength=self.n_columns)
        pointers = cupy.zeros(self.n_columns + 1, np.int32)
        pointers[1:] = cupy.cumsum(counts)
        return pointers, self.rows[order], order.astype(np.int32)

    @functools.cached_property
    def packed(self) -> bits.BitTensor:
        """The pattern with a bit for each element, as the left operand of a product."""
        A = bits.batches.pack_pattern(self.graph)
        return replace(A, words=cupy.asarray(A.words))

    @functools.cached_property
    def by_degree(self) -> Any:
        """Rows in descending order of their degrees."""
        return cupy.argsort(-self.degrees).astype(np.int32)

    def windows(self, rows: int) -> tuple[Any, Any, Any]:
        """Return pointers, distinct columns, and the index of each nonzero's column in its window.

        A window is `rows` consecutive rows.
        """
        if rows not in self._windows:
            self._windows[rows] = self._window_columns(rows)
        return self._windows[rows]

    def _window_columns(self, rows: int) -> tuple[Any, Any, Any]:
        n_windows = -(-self.n_rows // rows)
        window = self.rows.astype(np.int64) // rows
        keys, condensed = cupy.unique(window * self.n_columns + self.columns, return_inverse=True)
        pointers = cupy.searchsorted(keys, cupy.arange(n_windows + 1) * self.n_columns)
        condensed = (condensed.reshape(-1) - pointers[window]).astype(np.int32)
        columns = (keys % self.n_columns).astype(np.int32)
        return pointers.astype(np.int32), columns, condensed

    def buckets(self, quantile: float, transposed: bool = False) -> tuple[Any, Any]:
        """Return the rows below a quantile of the degrees, and the others; -1 is no bound."""
        degrees = cupy.diff(self.transposed[0]) if transposed else self.degrees
        bound = (
            self.nnz + 1
            if quantile == -1
            else float(cupy.quantile(degrees.astype(np.float64), quantile))
        )
        light = degrees < bound
        return tuple(cupy.flatnonzero(one).astype(np.int32) for one in (light, ~light))


def repeated(counts: Any) -> Any:
    """Return `counts[i]` times i for each i, int32."""
    ends = cupy.cumsum(counts)
    starts = cupy.zeros(int(ends[-1]) if ends.size else 0, np.int32)
    begun = ends[:-1][ends[:-1] < starts.size]
    cupy.add.at(starts, begun, 1)
    return cupy.cumsum(starts, dtype=np.int32)


class Problem:
    """An operation on a graph with random inputs: `inputs`, and `expected` in float64.

    Attributes
    ----------
    inputs : dict of str to array
        Float32, by the names of the operation in accelviz.
    expected : dict of str to (array, scale)
        Float64 results; an error is divided by its scale, an array or a number.
    """

    def __init__(self, operation: str, on_gpu: DeviceGraph, heads: int, n_cols: int) -> None:
        self.operation, self.on_gpu = operation, on_gpu
        self.heads, self.n_cols = heads, n_cols
        self.random = cupy.random.default_rng(n_cols + 1000 * heads)
        self.inputs: dict[str, Any] = {}
        self.expected: dict[str, tuple[Any, Any]] = {}
        getattr(self, f"_{operation}")()

    def _features(self, rows: int, *shape: int, scale: float = 1.0) -> Any:
        array = padded((rows, *shape))
        array[...] = self.random.standard_normal(array.shape, dtype=np.float32)
        array *= np.float32(scale)
        return array

    def _distinct(self, rows: int) -> Any:
        """Return features without equal ones in a column: each maximum is of one row."""
        array = padded((rows, self.n_cols))
        rows_by_columns = cupy.arange(rows)[:, None] * 2654435761
        # A product with an odd number is a permutation of the 22 low bits.
        steps = (rows_by_columns + cupy.arange(self.n_cols) * 40503) % _STEPS
        array[...] = steps / (_STEPS / 2) - 1
        return array

    def _apart(self, array: Any, is_odd: bool) -> Any:
        """Round features to odd or to even multiples of a step.

        The sum of an odd and an even multiple is exact in float32 and never 0, where LeakyReLU has
        two derivatives: PyTorch and ours take the slope, dgNN and Turbo-GNN 1.
        """
        array[...] = 2 * cupy.rint(array * (_APART / 2)) + is_odd
        array /= np.float32(_APART)
        return array

    def _spmm(self) -> None:
        on_gpu, X = self.on_gpu, self._features(self.on_gpu.n_columns, self.n_cols)
        self.inputs = {"X": X}
        self.expected = {"Y": self.product(on_gpu.values)}

    def product(self, values: Any) -> tuple[Any, Any]:
        """Return the product of weights and X, and the sums of its terms' magnitudes."""
        on_gpu, X = self.on_gpu, self.inputs["X"]
        Y, terms = cupy.empty((2, on_gpu.n_rows, self.n_cols))
        arrays = on_gpu.pointers, on_gpu.columns, values, X, Y, terms
        launch("spmm", Y.size, np.int32(self.n_cols), *arrays)
        terms[terms == 0] = 1
        return Y, terms

    def _bits(self) -> None:
        """Make X, of `heads` bits, and the whole numbers of the pattern times X, and their levels.

        Levels are at most the largest number of `heads` bits. QGTC makes 2^bits the level 0.
        """
        on_gpu, limit = self.on_gpu, 1 << self.heads
        X = padded((on_gpu.n_columns, self.n_cols))
        X[...] = self.random.integers(0, limit, X.shape)
        packed = bits.quantize(X, self.heads, "right", low=0, high=limit)
        self.inputs = {"X": X}
        self.bit_tensors = on_gpu.packed, replace(packed, scale=None)
        sums, _ = self.product(on_gpu.ones)
        levels = cupy.minimum(sums, limit - 1)
        self.expected = {"whole": (sums, 1.0), "packed": (levels, 1.0)}
        self.expected["packed by QGTC"] = cupy.where(sums == limit, 0, levels), 1.0

    def _sddmm(self) -> None:
        on_gpu = self.on_gpu
        U = self._features(on_gpu.n_rows, 1, self.n_cols)
        V = self._features(on_gpu.n_columns, 1, self.n_cols)
        self.inputs = {"U": U, "V": V}
        Z, terms = cupy.empty((2, on_gpu.nnz, 1))
        sizes = np.int32(1), np.int32(self.n_cols)
        launch("dots", Z.size, *sizes, on_gpu.rows, on_gpu.columns, U, V, Z, terms)
        self.expected = {"scores": (Z, terms)}

    def _max(self) -> None:
        on_gpu, d = self.on_gpu, np.int32(self.n_cols)
        X, dY = self._distinct(on_gpu.n_columns), self._features(on_gpu.n_rows, self.n_cols)
        self.inputs = {"X": X, "dY": dY}
        Y, dX = cupy.empty(dY.shape), cupy.empty(X.shape)
        launch("maximum", Y.size, d, on_gpu.pointers, on_gpu.columns, X, Y)
        pointers, rows, _ = on_gpu.transposed
        launch("maximum_gradient", dX.size, d, pointers, rows, X, Y, dY, dX)
        self.expected = {"Y": (Y, 1.0), "dX": (dX, float(abs(dX).max()))}

    def _gat(self) -> None:
        on_gpu, heads = self.on_gpu, self.heads
        receiver = self._apart(self._features(on_gpu.n_rows, heads), False)
        sender = self._apart(self._features(on_gpu.n_columns, heads), True)
        scores = cupy.empty((on_gpu.nnz, heads))
        arrays = on_gpu.rows, on_gpu.columns, receiver, sender, np.float64(SLOPE), scores
        launch("gat_scores", scores.size, np.int32(heads), *arrays)
        d_scores = self._attend(scores, {"receiver": receiver, "sender": sender})
        walks = (on_gpu.pointers, on_gpu.columns, None), on_gpu.transposed
        pairs = (receiver, sender), (sender, receiver)
        for name, walk, pair in zip(("d_receiver", "d_sender"), walks, pairs, strict=True):
            sums = cupy.empty(pair[0].shape)
            arrays = (*_or_null(walk), d_scores, *pair, np.float64(SLOPE), sums)
            launch("gat_sums", sums.size, np.int32(heads), *arrays)
            self.expected[name] = sums, float(abs(sums).max())

    def _gatv2(self) -> None:
        on_gpu, sizes = self.on_gpu, (np.int32(self.heads), np.int32(self.n_cols))
        R = self._apart(self._features(on_gpu.n_rows, self.heads, self.n_cols), False)
        V = self._apart(self._features(on_gpu.n_columns, self.heads, self.n_cols), True)
        a = self._features(self.heads, self.n_cols, scale=self.n_cols**-0.5)
        scores, slope = cupy.empty((on_gpu.nnz, self.heads)), np.float64(SLOPE)
        edges = on_gpu.rows, on_gpu.columns
        launch("gatv2_scores", scores.size, *sizes, *edges, R, V, a, slope, scores)
        d_scores = self._attend(scores, {"R": R, "a": a}, V)
        (dR, by_row), dV = cupy.zeros((2, *R.shape)), self.expected["dV"][0]
        walk = _or_null((on_gpu.pointers, on_gpu.columns, None))
        launch("gatv2_sums", dR.size, *sizes, *walk, d_scores, R, V, a, slope, dR, by_row)
        arrays = *on_gpu.transposed, d_scores, V, R, a, slope, dV, np.uint64(0)
        launch("gatv2_sums", dV.size, *sizes, *arrays)
        for name, array in (("dR", dR), ("dV", dV), ("da", by_row.sum(axis=0))):
            self.expected[name] = array, float(abs(array).max())

    def _attend(self, scores: Any, inputs: Mapping[str, Any], V: Any = None) -> Any:
        """Set the inputs, Y and the part of dV through Y; return the gradient of the scores."""
        on_gpu, sizes = self.on_gpu, (np.int32(self.heads), np.int32(self.n_cols))
        if V is None:
            V = self._features(on_gpu.n_columns, self.heads, self.n_cols)
        dY = self._features(on_gpu.n_rows, self.heads, self.n_cols)
        self.inputs = {**inputs, "V": V, "dY": dY}
        statistics = on_gpu.n_rows * self.heads
        launch("softmax", statistics, sizes[0], on_gpu.pointers, scores)
        Y, dV, d_scores = cupy.empty(dY.shape), cupy.empty(V.shape), cupy.empty(scores.shape)
        walk = _or_null((on_gpu.pointers, on_gpu.columns, None))
        launch("weighted", Y.size, *sizes, *walk, scores, V, Y)
        launch("weighted", dV.size, *sizes, *on_gpu.transposed, scores, dY, dV)
        edges = on_gpu.rows, on_gpu.columns
        launch("dots", d_scores.size, *sizes, *edges, dY, V, d_scores, np.uint64(0))
        launch("softmax_gradient", statistics, sizes[0], on_gpu.pointers, scores, d_scores)
        for name, array in (("Y", Y), ("dV", dV)):
            self.expected[name] = array, float(abs(array).max())
        return d_scores

    def errors(self, results: Mapping[str, Any], per_term: float = 0.0) -> dict[str, float]:
        """Return the largest error of each result over its scale; infinite for a NaN.

        `per_term` is added to the scale of an SpMM for each of a row's terms.
        """
        errors = {}
        for name, result in results.items():
            expected, scale = self.expected[name]
            if per_term:
                scale = scale + per_term * self.on_gpu.degrees[:, None]
            ratio = abs(result.reshape(expected.shape).astype(np.float64) - expected) / scale
            worst = float(ratio.max()) if ratio.size else 0.0
            errors[name] = worst if worst < np.inf else np.inf
        return errors


def _or_null(walk: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
    """Return a walk with a null pointer in condensed of a missing order."""
    pointers, others, order = walk
    return pointers, others, np.uint64(0) if order is None else order
