"""The base class of layers, and `Linear`.

A layer has named parameters. `forward` returns its result and a `Context`; `backward` returns the
gradients with respect to each parameter and to X. There is no automatic differentiation: each layer
implements its gradient. Dense operations are in `layers.dense`.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from accelviz.errors import ArgumentError, checked_choice, checked_integer, is_number
from accelviz.graph import Graph
from accelviz.layers import dense
from accelviz.layers.affine import ActivationGradient, affine, input_gradient, weight_gradients
from accelviz.layers.dense import Epilogue, Noise
from accelviz.layers.products import Matrix, Products
from accelviz.strategies.dense.operation import ACTIVATIONS

Parameters = dict[str, Any]


@dataclass
class Context:
    """Operands and results of one forward pass of a layer, for its backward pass.

    Attributes
    ----------
    matrix : Matrix or None
        The layer's sparse matrix, from `Layer.prepared`.
    X : array of float32, shape (n_nodes, n_in), or Matrix
        Input features; a Matrix holds sparse ones.
    parameters : dict of str to array
    epilogue : Epilogue
        Bias, activation and dropout, which `Layer.linear` applies.
    Y : array of float32, shape (n_nodes, width)
        Result of the layer.
    saved_for_backward
        Intermediate results that the gradient needs.
    """

    matrix: Any
    X: Any
    parameters: Parameters
    epilogue: Epilogue
    Y: Any = None
    saved_for_backward: Any = None


class Layer:
    """Base class of layers.

    Parameters
    ----------
    n_in, n_out : int
        Columns of the input and of the result, at least 1.
    activation : {"none", "relu", "elu"}
        Applied after the bias.
    dropout : float
        Share of the result that is dropped in training, 0 to below 1.
    bias : bool

    Attributes
    ----------
    operations : tuple of str, or None
        Names of the operations that it runs on the graph, forward and backward; None: any.
    needs_input_gradient : bool
        Whether `backward` returns the gradient with respect to X. False for a network's first
        layer.
    input_rate : float or None
        A layer can apply the gradient of the previous layer's ReLU and dropout in its own gradient
        kernel. If it does, this is the rate of that dropout, else None.
    next_layer_applies_activation : bool
        Whether the next layer does that for this layer's ReLU and dropout.
    """

    operations: tuple[str, ...] | None = None
    #: Function that returns the layer's matrix for a graph; None for a layer without a matrix.
    matrix_of: Any = None
    #: Whether the class supports `input_rate`.
    applies_input_activation: ClassVar[bool] = False
    needs_input_gradient = True
    input_rate: float | None = None
    next_layer_applies_activation = False
    _call: tuple[tuple[Any, ...], dict[str, Any]]

    def __new__(cls, *args: Any, **options: Any) -> Self:
        """Store the constructor's arguments for `arguments`."""
        layer = super().__new__(cls)
        layer._call = args, options
        return layer

    def __init__(
        self,
        n_in: int,
        n_out: int,
        *,
        activation: str = "none",
        dropout: float = 0.0,
        bias: bool = True,
    ) -> None:
        self.n_in = checked_integer("n_in", n_in, error=ArgumentError)
        self.n_out = checked_integer("n_out", n_out, error=ArgumentError)
        self.activation = checked_choice("activation", activation, ACTIVATIONS)
        self.dropout = checked_rate("dropout", dropout)
        self.bias = bool(bias)

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments by name that made this layer and make an equal one: `GCN(**arguments)`."""
        args, options = self._call
        names = [*inspect.signature(type(self).__init__).parameters][1:]
        values = {**dict(zip(names, args, strict=False)), **options}
        return {k: v.item() if isinstance(v, np.generic) else v for k, v in values.items()}

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        return f"{type(self).__name__}({arguments})"

    @property
    def width(self) -> int:
        """Number of columns of the result."""
        return self.n_out

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the parameters by name; the last one is "b", the bias."""
        return {"W": (self.n_in, self.n_out), **self._bias()}

    def composed(self) -> Layer:
        """Return the layer with separate operations, if a fused one has these; else itself."""
        return self

    def _bias(self) -> dict[str, tuple[int, ...]]:
        return {"b": (self.width,)} if self.bias else {}

    def prepared(self, graph: Graph, products: Products) -> Matrix | None:
        """Return the layer's matrix (None if it has none), made once and stored with the graph."""
        matrix_of = self.matrix_of
        if matrix_of is None:
            return None
        key = "layer", matrix_of.__name__
        return products.matrix(graph.weighted_store.get(key, lambda: matrix_of(graph)))

    def forward(
        self, matrix: Any, X: Any, parameters: Parameters, noise: Noise | None = None
    ) -> tuple[Any, Context]:
        """Return the layer's result, and the context that `backward` needs.

        Parameters
        ----------
        matrix, X, parameters
            As in `Context`.
        noise : Noise, optional
            Random numbers of dropout. Without them there is no dropout.
        """
        epilogue = Epilogue(parameters.get("b"), self.activation, self.dropout, noise)
        context = Context(matrix, X, parameters, epilogue)
        context.Y = self.linear(context)
        return context.Y, context

    def backward(self, dY: Any, context: Context) -> tuple[Parameters, Any]:
        """Return the gradients of the parameters by name, and that of X or None, given `dY`."""
        if not self.next_layer_applies_activation:
            dY = context.epilogue.gradient(dY, context.Y)
        gradients, dX = self.linear_gradient(dY, context)
        if self.bias and gradients.get("b") is None:
            gradients["b"] = dense.column_sums(dY)
        return {name: gradients[name] for name in self.shapes()}, dX

    def input_activation(self, context: Context) -> ActivationGradient | None:
        """Return the gradient of the ReLU and dropout before this layer, None without it."""
        if self.input_rate is None or not self.needs_input_gradient:
            return None
        training = context.epilogue.noise is not None
        return ActivationGradient(context.X, 1 / (1 - self.input_rate) if training else 1.0)

    def linear(self, context: Context) -> Any:
        """Return the layer's result after the epilogue; may set `context.saved_for_backward`."""
        raise NotImplementedError

    def linear_gradient(self, dZ: Any, context: Context) -> tuple[Parameters, Any]:
        """Return the gradients of the parameters by name, and that of X, given `dZ`.

        `dZ` is the gradient with respect to the result before the epilogue. If the gradient of the
        bias is missing or None, `backward` sums `dZ` over the nodes. The gradient of X includes
        `input_activation`.
        """
        raise NotImplementedError


def layer_name(layer_class: type[Layer]) -> str:
    """Return the name of a class in files: "accelviz.GCN", or "__main__.Mine"."""
    return f"{layer_class.__module__.partition('.')[0]}.{layer_class.__qualname__}"


def layer_classes(base: type[Layer] = Layer) -> Mapping[str, type[Layer]]:
    """Return all classes derived from `base` by `layer_name`; the last one defined of a name."""
    classes = {layer_name(base): base}
    for derived in base.__subclasses__():
        classes |= layer_classes(derived)
    return classes


def checked_rate(name: str, rate: Any) -> float:
    """Return a dropout rate as a float, or raise ArgumentError unless it is 0 to below 1."""
    if not is_number(rate) or not 0 <= rate < 1:
        raise ArgumentError(name, f"got {rate!r}", "0 to below 1")
    return float(rate)


class Linear(Layer):
    """Computes `X W`, without the graph."""

    operations = ()
    applies_input_activation = True

    def linear(self, context: Context) -> Any:
        """Compute `X W`; see `Layer`."""
        return affine([context.X], [context.parameters["W"]], context.epilogue)

    def linear_gradient(self, dZ: Any, context: Context) -> tuple[Parameters, Any]:
        """Return the gradients of `linear`; see `Layer`."""
        (dW,), db = weight_gradients([context.X], [dZ])
        dX, W = None, context.parameters["W"]
        if self.needs_input_gradient:
            dX = input_gradient([dZ], [W], self.input_activation(context))
        return {"W": dW, "b": db}, dX
