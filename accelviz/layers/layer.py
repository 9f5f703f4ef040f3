"""The contract of a layer, and the simplest one.

A layer has parameters by name, `forward`, which returns its result and a `Context`, and `backward`,
which returns a gradient for each parameter and for X. There is no tape: each gradient is written by
hand. A layer runs its sparse products itself; dense steps are in `layers.dense`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from accelviz.errors import ArgumentError, checked_choice, checked_integer, is_number
from accelviz.graph import Graph
from accelviz.layers import dense
from accelviz.layers.affine import (
    ActivationGradient,
    affine,
    input_gradient,
    weight_gradients,
)
from accelviz.layers.dense import Epilogue, Noise
from accelviz.layers.products import Matrix, Products
from accelviz.strategies.dense.operation import ACTIVATIONS

Parameters = dict[str, Any]


@dataclass
class Context:
    """A forward pass of a layer, for its gradient.

    Attributes
    ----------
    matrix : Matrix or None
        As `Layer.prepared` returns it.
    X : array of float32, shape (n_nodes, n_in), or Matrix
        A Matrix holds sparse features.
    parameters : dict of str to array
    epilogue : Epilogue
        Bias, activation and dropout, which `Layer.linear` applies.
    Y : array
        The result.
    saved_for_backward
        Whatever else the gradient needs.
    """

    matrix: Any
    X: Any
    parameters: Parameters
    epilogue: Epilogue
    Y: Any = None
    saved_for_backward: Any = None


class Layer:
    """A layer from `n_in` to `n_out` columns, both at least 1.

    Parameters
    ----------
    n_in, n_out : int
    activation : {"none", "relu", "elu"}
        Applied after the bias.
    dropout : float
        Share of the result that is dropped while training, 0 to below 1.
    bias : bool

    Attributes
    ----------
    needs_input_gradient : bool
        Whether `backward` returns the gradient by X. A network's first layer does not.
    input_rate : float or None
        Not None if `backward` applies the gradient of the ReLU and dropout that made X: the rate of
        that dropout.
    next_layer_applies_activation : bool
        Whether the next layer's `backward` does so for this layer's ReLU and dropout.
    """

    matrix_of: ClassVar[Any] = None
    #: Whether `backward` may be given an `input_rate`.
    applies_input_activation: ClassVar[bool] = False
    needs_input_gradient = True
    input_rate: float | None = None
    next_layer_applies_activation = False

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
    def width(self) -> int:
        """Columns of the result."""
        return self.n_out

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the parameters by name; "b" is the bias, and the last."""
        return {"W": (self.n_in, self.n_out), **self._bias()}

    def _bias(self) -> dict[str, tuple[int, ...]]:
        return {"b": (self.width,)} if self.bias else {}

    def prepared(self, graph: Graph, products: Products) -> Matrix | None:
        """Return the matrix that the layer multiplies with, made once and stored with the graph."""
        make = type(self).matrix_of
        if make is None:
            return None
        return products.matrix(graph.store.get(("layer", make.__name__), lambda: make(graph)))

    def forward(
        self, matrix: Any, X: Any, parameters: Parameters, noise: Noise | None = None
    ) -> tuple[Any, Context]:
        """Return the layer's result, and the context that `backward` needs.

        Parameters
        ----------
        matrix, X, parameters
            As of `Context`.
        noise : Noise, optional
            For dropout; None where nothing is dropped.
        """
        epilogue = Epilogue(parameters.get("b"), self.activation, self.dropout, noise)
        context = Context(matrix, X, parameters, epilogue)
        context.Y = self.linear(context)
        return context.Y, context

    def backward(self, dY: Any, context: Context) -> tuple[Parameters, Any]:
        """Return the gradients by parameter, and by X or None, given that by the result."""
        if not self.next_layer_applies_activation:
            dY = context.epilogue.gradient(dY, context.Y)
        gradients, dX = self.linear_gradient(dY, context)
        if self.bias and gradients.get("b") is None:
            gradients["b"] = dense.column_sums(dY)
        return {name: gradients[name] for name in self.shapes()}, dX

    def input_activation(self, context: Context) -> ActivationGradient | None:
        """Return the gradient of the ReLU and dropout that made X, or None, by `input_rate`."""
        if self.input_rate is None or not self.needs_input_gradient:
            return None
        training = context.epilogue.noise is not None
        return ActivationGradient(context.X, 1 / (1 - self.input_rate) if training else 1.0)

    def linear(self, context: Context) -> Any:
        """Return the layer's result after the epilogue; may save something for backward."""
        raise NotImplementedError

    def linear_gradient(self, dZ: Any, context: Context) -> tuple[Parameters, Any]:
        """Return the gradients by parameter and by X, given that by the result before the epilogue.

        The gradient by the bias may be missing, or None: it is the sum of `dZ` over the nodes. The
        gradient by X includes `input_activation`.
        """
        raise NotImplementedError


def checked_rate(name: str, rate: Any) -> float:
    """Return a rate of dropout, 0 to below 1.

    Raises
    ------
    ArgumentError
        If it is not.
    """
    if not is_number(rate) or not 0 <= rate < 1:
        raise ArgumentError(name, f"got {rate!r}", "0 to below 1")
    return float(rate)


class Linear(Layer):
    """`X W`, without the graph."""

    applies_input_activation = True

    def linear(self, context: Context) -> Any:
        """Multiply; see `Layer`."""
        return affine([context.X], [context.parameters["W"]], context.epilogue)

    def linear_gradient(self, dZ: Any, context: Context) -> tuple[Parameters, Any]:
        """Multiply with the transposed factors; see `Layer`."""
        (dW,), db = weight_gradients([context.X], [dZ])
        dX, W = None, context.parameters["W"]
        if self.needs_input_gradient:
            dX = input_gradient([dZ], [W], self.input_activation(context))
        return {"W": dW, "b": db}, dX
