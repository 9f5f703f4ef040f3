"""Sparse operations of a network on one device: strategies, times, matrices."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from accelviz.devices import choose
from accelviz.devices.planning import plan_of
from accelviz.devices.ready_plan import ready
from accelviz.errors import ArgumentError
from accelviz.graph import Graph, Transpose, taken_over
from accelviz.layers.adjacency import rows_of
from accelviz.plans import Operation, Strategy
from accelviz.plans.program import Program
from accelviz.strategies import (
    OPERATIONS,
    SDDMM,
    SPMM,
    find_strategy,
)


class Products:
    """The device and the strategies of a network's operations, and the seconds that they take.

    Parameters
    ----------
    strategy : str, Strategy, (strategy, parameters), or mapping of operation to one, optional
        Such as "accel_gcn", which is of "spmm", or `{"spmm": ("gnnadvisor", {"ngs": 32}),
        "sddmm": "row_warp"}`. Instead of parameters, a function of `n_cols` that returns them. An
        operation that is not named takes its fastest.
    device : {"auto", "cuda", "cpu", "emulator"}
        "auto" takes the GPU where there is one.

    Attributes
    ----------
    executor : Device
        Where sparse products run.
    device : str
        Its name.
    xp : module
        What computes dense steps, on the device or, if it only runs plans, on the host.
    seconds : dict of str to float
        Times of `clock` since `reset`, by name.

    Raises
    ------
    ArgumentError
        If there is no such strategy, operation or device.
    DeviceUnavailable
        If the device cannot be used here.
    """

    def __init__(self, strategy: Any = None, device: str = "auto") -> None:
        self.executor = choose(device)
        self.executor.require()
        self.device = self.executor.name
        named = strategy if isinstance(strategy, Mapping) else {"spmm": strategy}
        sparse = [name for name in OPERATIONS if not name.startswith("dense")]
        for name in named:
            if name not in sparse:
                problem = f"there is no sparse operation {name!r}"
                raise ArgumentError("strategy", problem, f"one of {', '.join(sparse)}")
        self._chosen = {name: _chosen(name, named.get(name)) for name in sparse}
        self.seconds: dict[str, float] = {}
        self.xp = self.executor.xp
        self._clock: Any = self.executor.clock(self.seconds)
        #: Everything is launched on one stream of a GPU, as capturing needs it.
        self.stream = self.executor.stream()

    def placed(self, array: Any) -> Any:
        """Return a host array where dense steps run."""
        return self.executor.to_device(array) if self.executor.computes else array

    def matrix(self, graph: Graph) -> Matrix:
        """Return a graph as a matrix that multiplies here."""
        return Matrix(graph, self)

    def clock(self, name: str) -> contextlib.AbstractContextManager[None]:
        """Time a block under `name`."""
        return self._clock(name)

    def reset(self) -> dict[str, float]:
        """Return the seconds so far by name, and begin anew."""
        self._clock.settle()
        seconds = dict(self.seconds)
        self.seconds.clear()
        return seconds

    def captured(self, program: Program) -> Callable[[], dict[str, Any]]:
        """Return a function that runs a program of this device; see `Device.captured`."""
        return self.executor.captured(program, {}, self._clock)

    def run(
        self, operation: Operation, graph: Graph, operands: dict[str, Any], label: str = ""
    ) -> dict[str, Any]:
        """Run an operation on a graph; return its outputs by name.

        Weights that are missing are the graph's. The plan is stored with the graph. `label` follows
        the operation's name in `seconds`.
        """
        strategy, parameters = self._chosen[operation.name]
        widths = operation.widths_of(operands)
        settings = parameters(widths.get("n_cols", 1))
        plan = plan_of(graph, strategy, {**widths, **settings})
        with self.clock(operation.name + label):
            outputs = ready(plan, self.executor).run(operands)
        if self.executor.computes:
            return outputs
        return {name: self.executor.to_host(array) for name, array in outputs.items()}


def _chosen(operation: str, choice: Any) -> tuple[Strategy, Callable[[int], Mapping[str, Any]]]:
    """Return a strategy, and a function that returns its parameters for a number of columns."""
    strategy, parameters = choice if isinstance(choice, tuple) else (choice, {})
    strategy = OPERATIONS[operation].fastest if strategy is None else strategy
    known = find_strategy(strategy, operation)
    return known, parameters if callable(parameters) else lambda n_cols: parameters


class Matrix:
    """A sparse matrix whose weights are an operand: its products, and those of its transpose.

    Parameters
    ----------
    graph : Graph
    products : Products
    values : array of float32, shape (nnz,), optional
        Weights in place of the graph's own, on the device of `products`.
    label : str
        Follows an operation's name in `Products.seconds`.
    """

    def __init__(
        self, graph: Graph, products: Products, values: Any = None, label: str = ""
    ) -> None:
        self.graph, self.products, self.values, self.label = graph, products, values, label
        #: Follows from the pattern, whatever the weights: arrays on the device, and graphs.
        self._of_pattern: dict[str, Any] = {}
        self._fixed: Any = None
        self._product_of_fixed: Any = None

    def _once(self, name: str, make: Callable[[], Any]) -> Any:
        if name not in self._of_pattern:
            self._of_pattern[name] = make()
        return self._of_pattern[name]

    @property
    def _turned(self) -> Transpose:
        turned: Transpose = self._once("transposed", self.graph.transposed)
        return turned

    def _run(self, operation: Operation, graph: Graph, **operands: Any) -> dict[str, Any]:
        return self.products.run(operation, graph, operands, self.label)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.graph.shape

    def with_values(self, values: Any) -> Matrix:
        """Return the same pattern with other weights."""
        other = type(self)(self.graph, self.products, values, self.label)
        other._of_pattern = self._of_pattern
        return other

    def fix(self, X: Any) -> None:
        """Promise that this array never changes: `times` multiplies it once and stores the result.

        None takes the promise back. It does not hold for other weights (`with_values`).
        """
        self._fixed, self._product_of_fixed = X, None

    def is_fixed(self, X: Any) -> bool:
        """Say whether `fix` was called with this very array."""
        return X is not None and X is self._fixed

    def times(self, X: Any, values: Any = None) -> Any:
        """Return `A @ X`, X of shape (columns, n_cols)."""
        if values is not None or not self.is_fixed(X):
            return self._times(X, self.values if values is None else values)
        if self._product_of_fixed is None:
            self._product_of_fixed = self._times(X, self.values)
        return self._product_of_fixed

    def _times(self, X: Any, values: Any) -> Any:
        return self._run(SPMM, self.graph, X=X, values=values)["Y"]

    def transposed_times(self, Y: Any, values: Any = None) -> Any:
        """Return `A.T @ Y`, Y of shape (rows, n_cols): the gradient of `A @ X` by X."""
        turned, values = self._turned, self.values if values is None else values
        if values is not None:
            values = values[self._once("order", lambda: self.products.placed(turned.nonzeros))]
        return self._run(SPMM, turned.graph, X=Y, values=values)["Y"]

    def dots(self, U: Any, V: Any) -> Any:
        """Return the dot product of each nonzero, of U (rows, heads, n_cols) and V, (nnz, heads).

        With the gradient of `A @ X` as U, and X as V: the gradient by the weights.
        """
        return self._run(SDDMM, self.graph, U=U, V=V)["scores"]

    # Sums over nonzeros are products with an incidence matrix of rows and nonzeros.

    def row_sums(self, edges: Any) -> Any:
        """Add up an array of shape (nnz, n_cols) over the nonzeros of each row."""
        incidence = self._once("rows of nonzeros", lambda: _incidence(self.graph))
        return self._run(SPMM, incidence, X=edges)["Y"]

    def column_sums(self, edges: Any) -> Any:
        """Add up an array of shape (nnz, n_cols) over the nonzeros of each column."""
        turned = self._turned
        incidence = self._once(
            "columns of nonzeros", lambda: _incidence(turned.graph, turned.nonzeros)
        )
        return self._run(SPMM, incidence, X=edges)["Y"]

    def run(self, operation: str, **operands: Any) -> dict[str, Any]:
        """Run any operation on the graph; return its outputs by name."""
        return self._run(OPERATIONS[operation], self.graph, **operands)

    def dense(self) -> Any:
        """Return the matrix as a dense array, on the device."""
        array = self.products.xp.zeros(self.shape, np.float32)
        array[self.rows, self.columns] = self.weights
        return array

    @cached_property
    def weights(self) -> Any:
        """Its weights, (nnz,), on the device: placed once, as a captured step needs."""
        return self.products.placed(self.graph.values) if self.values is None else self.values

    @property
    def rows(self) -> Any:
        """Row of each nonzero, int32, on the device."""
        return self._once("rows", lambda: self.products.placed(taken_over(rows_of(self.graph))))

    @property
    def columns(self) -> Any:
        """Column of each nonzero, int32, on the device."""
        return self._once("columns", lambda: self.products.placed(self.graph.column_indices))


def _incidence(graph: Graph, nonzeros: Any = None) -> Graph:
    nonzeros = np.arange(graph.nnz) if nonzeros is None else nonzeros
    columns, ones = taken_over(nonzeros.astype(np.int32)), np.ones(graph.nnz, np.float32)
    shape = (graph.n_rows, graph.nnz)
    name = f"nonzeros of {graph.name}"
    return Graph(graph.row_pointers, columns, taken_over(ones), shape, name)
