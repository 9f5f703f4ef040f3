"""Sparse operations of a network on one device.

`Products` has the device and the strategy of each operation, and times them. `Matrix` is a sparse
matrix that multiplies by these strategies.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from accelviz.devices import choose
from accelviz.devices.planning import plan_of
from accelviz.devices.ready_plan import ready
from accelviz.errors import ArgumentError
from accelviz.graph import Graph
from accelviz.immutable import taken_over
from accelviz.layers.adjacency import rows_of
from accelviz.plans import Operation, Strategy
from accelviz.plans.program import Program
from accelviz.strategies import OPERATIONS, REGISTRY, SDDMM, SPMM, find_strategy, strategies


class Products:
    """The device and the strategies of a network's sparse operations, and their times.

    Parameters
    ----------
    strategy : str, Strategy, (strategy, parameters), or mapping of operation to these, optional
        A single strategy, such as "fusegnn_gas", runs each operation that has it and these
        parameters. A mapping names the operations, as in
        `{"spmm": ("gnnadvisor", {"ngs": 32}), "sddmm": "row_warp"}`. `parameters` may be a function
        of `n_cols` that returns them, of "spmm" unless a mapping names the operation. Other
        operations use their fastest strategy. Attention runs scores, softmax and sums separately
        if the strategies are of `sddmm` and not of the fused attention.
    device : {"auto", "cuda", "cpu", "emulator"}
        "auto" is the GPU, or the CPU if there is no GPU.

    Attributes
    ----------
    executor : Device
        Device that runs the sparse operations.
    device : str
        Name of the device.
    xp : module
        NumPy or CuPy, which runs the dense operations: on the device, or on the host if the device
        (the emulator) only runs plans.
    seconds : dict of str to float
        Seconds measured by `clock` since `reset`, by name.

    Raises
    ------
    ArgumentError
        If there is no such strategy, operation or device.
    DeviceUnavailable
        If the device cannot be used.
    """

    def __init__(self, strategy: Any = None, device: str = "auto") -> None:
        self.executor = choose(device)
        self.executor.require()
        self.device = self.executor.name
        sparse = [name for name in OPERATIONS if not name.startswith("dense")]
        #: Whether a mapping names operations, each of which a network then has to run.
        self._by_operation = isinstance(strategy, Mapping)
        self._chosen = strategy if self._by_operation else _owners(strategy, sparse)
        for name in self._chosen:
            if name not in sparse:
                problem = f"there is no sparse operation {name!r}"
                raise ArgumentError("strategy", problem, f"one of {', '.join(sparse)}")
        self._strategies = {name: _strategy(name, self._chosen.get(name)) for name in sparse}
        self.seconds: dict[str, float] = {}
        self.xp = self.executor.xp
        self._clock: Any = self.executor.clock(self.seconds)
        #: The stream of all launches: capturing a CUDA graph needs a single one.
        self.stream = self.executor.stream()

    def placed(self, array: Any) -> Any:
        """Return a host array as an array of `xp`."""
        return self.executor.to_device(array) if self.executor.computes else array

    def check_effect(self, layers: Iterable[Any], sparse_features: bool) -> None:
        """Raise ArgumentError if the chosen strategies have no effect on a network's layers.

        Sparse features are multiplied by an spmm too, so that a mapping may name it.
        """
        layers = [self.suited(layer) for layer in layers]
        if not self._chosen or any(layer.operations is None for layer in layers):
            return
        used = [*dict.fromkeys(name for layer in layers for name in layer.operations)]
        effective = [*used, "spmm"] if sparse_features and self._by_operation else used
        idle = [name for name in self._chosen if name not in effective]
        if idle and (self._by_operation or len(idle) == len(self._chosen)):
            names = ", ".join(dict.fromkeys(type(layer).__name__ for layer in layers))
            problem = f"it is of {', '.join(idle)}, which a network of {names} does not run"
            known = dict.fromkeys(strategy for name in used for strategy in strategies(name))
            expected = f"strategies of {', '.join(used)}: {', '.join(known)}" if used else "None"
            raise ArgumentError("strategy", problem, expected)

    def suited(self, layer: Any) -> Any:
        """Return a layer, or its form of separate operations if the strategies are of these alone.

        An `sddmm` runs in the forward pass of a composed attention only.
        """
        is_of_parts = "sddmm" in self._chosen and {*self._chosen}.isdisjoint(layer.operations or ())
        return layer.composed() if is_of_parts else layer

    def matrix(self, graph: Graph) -> Matrix:
        """Return a graph as a `Matrix` of these products."""
        return Matrix(graph, self)

    def clock(self, name: str) -> contextlib.AbstractContextManager[None]:
        """Time a block under `name`."""
        return self._clock(name)

    def reset(self) -> dict[str, float]:
        """Return `seconds` and clear it."""
        self._clock.settle()
        seconds = dict(self.seconds)
        self.seconds.clear()
        return seconds

    def captured(self, program: Program) -> Callable[[], dict[str, Any]]:
        """Return a function that runs a program on this device; see `Device.captured`."""
        return self.executor.captured(program, {}, self._clock)

    def run(
        self, operation: Operation, graph: Graph, operands: dict[str, Any], label: str = ""
    ) -> dict[str, Any]:
        """Run an operation on a graph; return its outputs by name.

        Without weights in `operands`, those of the graph are used. The plan is stored with the
        graph. The time is added to `seconds[operation.name + label]`.
        """
        strategy, parameters_for = self._strategies[operation.name]
        widths = operation.widths_of(operands)
        parameters = parameters_for(widths.get("n_cols", 1))
        plan = plan_of(graph, strategy, {**widths, **parameters})
        with self.clock(operation.name + label):
            outputs = ready(plan, self.executor).run(operands)
        if self.executor.computes:
            return outputs
        return {name: self.executor.to_host(array) for name, array in outputs.items()}


def _owners(choice: Any, operations: Iterable[str]) -> dict[str, Any]:
    """Return a single choice for each operation that has the strategy and its parameters."""
    if choice is None:
        return {}
    strategy, parameters = choice if isinstance(choice, tuple) else (choice, {})
    if isinstance(strategy, Strategy):
        return {getattr(strategy, "operation", SPMM).name: choice}
    if callable(parameters):
        return {"spmm": choice}
    names = {*parameters}
    owners = [
        entry.operation.name
        for entry in REGISTRY
        if entry.name == strategy and names <= {*entry.parameters}
    ]
    return dict.fromkeys([name for name in owners if name in operations] or ["spmm"], choice)


def _strategy(operation: str, choice: Any) -> tuple[Strategy, Callable[[int], Mapping[str, Any]]]:
    """Return a strategy, and a function that returns its parameters for a number of columns."""
    strategy, parameters = choice if isinstance(choice, tuple) else (choice, {})
    name = OPERATIONS[operation].fastest if strategy is None else strategy
    parameters_for = parameters if callable(parameters) else lambda n_cols: parameters
    return find_strategy(name, operation), parameters_for


class Matrix:
    """A sparse matrix with operations on it and its transpose.

    Parameters
    ----------
    graph : Graph
        The pattern, and the weights unless `values` are given.
    products : Products
    values : array of float32, shape (nnz,), optional
        Weights in place of the graph's, on the device of `products`.
    label : str
        Suffix of the operations' names in `Products.seconds`.
    """

    def __init__(
        self, graph: Graph, products: Products, values: Any = None, label: str = ""
    ) -> None:
        self.graph, self.products, self.values, self.label = graph, products, values, label
        #: Device arrays and graphs that depend on the pattern alone; shared by `with_values`.
        self._pattern_cache: dict[str, Any] = {}
        self._fixed: Any = None
        self._product_with_fixed: Any = None

    def _cached(self, name: str, make: Callable[[], Any]) -> Any:
        if name not in self._pattern_cache:
            self._pattern_cache[name] = make()
        return self._pattern_cache[name]

    def _run(self, operation: Operation, graph: Graph, **operands: Any) -> dict[str, Any]:
        return self.products.run(operation, graph, operands, self.label)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.graph.shape

    def with_values(self, values: Any) -> Matrix:
        """Return a matrix with the same pattern and other weights."""
        matrix = type(self)(self.graph, self.products, values, self.label)
        matrix._pattern_cache = self._pattern_cache
        return matrix

    def fix(self, X: Any) -> None:
        """Declare that the array X never changes; `times(X)` is then computed once and stored.

        None withdraws the declaration. It does not extend to `with_values`.
        """
        self._fixed, self._product_with_fixed = X, None

    def is_fixed(self, X: Any) -> bool:
        """Return whether X is the array that was passed to `fix`."""
        return X is not None and X is self._fixed

    def times(self, X: Any, values: Any = None) -> Any:
        """Return `A @ X`, X of shape (columns, n_cols)."""
        if values is not None or not self.is_fixed(X):
            return self._times(X, self.values if values is None else values)
        if self._product_with_fixed is None:
            self._product_with_fixed = self._times(X, self.values)
        return self._product_with_fixed

    def _times(self, X: Any, values: Any) -> Any:
        return self._run(SPMM, self.graph, X=X, values=values)["Y"]

    def transposed_times(self, Y: Any, values: Any = None) -> Any:
        """Return `A.T @ Y`, Y of shape (rows, n_cols). It is the gradient step of `times`."""
        transpose, values = self.graph.transposed(), self.values if values is None else values
        if values is not None:
            order = self._cached("order", lambda: self.products.placed(transpose.nonzeros))
            values = values[order]
        return self._run(SPMM, transpose.graph, X=Y, values=values)["Y"]

    def dots(self, U: Any, V: Any) -> Any:
        """Return `U[i, h] . V[j, h]` for each nonzero (i, j) and head h, shape (nnz, heads).

        U has the shape (rows, heads, n_cols), V the shape (columns, heads, n_cols). If U is the
        gradient of `A @ X` and V is X, the result is the gradient with respect to the weights.
        """
        return self._run(SDDMM, self.graph, U=U, V=V)["scores"]

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
        """Weights, (nnz,), on the device: copied once, as a captured graph needs them."""
        return self.products.placed(self.graph.values) if self.values is None else self.values

    @property
    def rows(self) -> Any:
        """Row of each nonzero, int32, on the device."""
        return self._cached("rows", lambda: self.products.placed(taken_over(rows_of(self.graph))))

    @property
    def columns(self) -> Any:
        """Column of each nonzero, int32, on the device."""
        return self._cached("columns", lambda: self.products.placed(self.graph.column_indices))
