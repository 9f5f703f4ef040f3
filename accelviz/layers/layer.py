"""What a layer is, and the simplest one.

A layer has parameters by name, `forward`, which returns its result and what backward needs, and
`backward`, which returns a gradient for each parameter and for X. There is no tape: each gradient
is written down. A result of sparse operations alone; dense steps are those of `layers.dense`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from accelviz.errors import ArgumentError, checked_choice, checked_integer, is_number
from accelviz.graph import Graph
from accelviz.layers import dense
from accelviz.layers.affine import End, Slope, affine, input_gradient, weight_gradients
from accelviz.layers.dense import Noise
from accelviz.layers.products import Matrix, Products

Parameters = dict[str, Any]


class Layer:
    """A layer from `n_in` to `n_out` columns, both at least 1.

    Parameters
    ----------
    n_in, n_out : int
    activation : {"none", "relu", "elu"}
        What follows the bias.
    dropout : float
        The share of the result that is dropped while training, 0 to below 1.
    bias : bool

    Attributes
    ----------
    needs_input_gradient : bool
        Whether `backward` returns the gradient by X; a network's first layer need not.
    input_rate : float or None
        If X comes from a ReLU and dropout at this rate: `backward` goes back through those too.
    is_met_half_way : bool
        Whether the next layer's `backward` does so for this layer's own ReLU and dropout.
    """

    matrix_of: ClassVar[Any] = None
    #: Whether `backward` knows `input_rate`.
    takes_slope: ClassVar[bool] = False
    needs_input_gradient = True
    input_rate: float | None = None
    is_met_half_way = False

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
        self.activation = checked_choice("activation", activation, dense.ACTIVATIONS)
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
        """Return the matrix that the layer multiplies with, made once and kept with the graph."""
        make = type(self).matrix_of
        if make is None:
            return None
        made = graph.store.get(("layer", make.__name__), lambda: make(graph))
        return products.matrix(made)

    def forward(
        self, matrix: Any, X: Any, parameters: Parameters, noise: Noise | None = None
    ) -> tuple[Any, Any]:
        """Return the layer's result and what `backward` needs.

        Parameters
        ----------
        matrix : Matrix
            As `prepared` gives it.
        X : array of float32, shape (n_nodes, n_in), or Matrix
            A Matrix holds sparse features.
        parameters : dict of str to array
        noise : Noise, optional
            For dropout; None where nothing is dropped.
        """
        end = End(parameters.get("b"), self.activation, self.dropout, noise)
        Y, kept = self.linear(matrix, X, parameters, end)
        return Y, (kept, Y)

    def backward(
        self, matrix: Any, dY: Any, kept: Any, parameters: Parameters, noise: Noise | None = None
    ) -> tuple[Parameters, Any]:
        """Return the gradients by parameter, and by X or None, of that by the result.

        `noise` is the one that `forward` was given.
        """
        kept, dZ = kept[0], dY if self.is_met_half_way else self._before_end(dY, kept[1], noise)
        gradients, dX = self.linear_gradient(matrix, dZ, kept, parameters, noise)
        if self.bias and "b" not in gradients:
            gradients["b"] = dense.column_sums(dZ)
        return gradients, dX

    def _before_end(self, dY: Any, Y: Any, noise: Noise | None) -> Any:
        return dense.finish_gradient(dY, Y, self.activation, self.dropout, noise)

    def input_slope(self, X: Any, noise: Noise | None) -> Slope | None:
        """Return what the gradient by X is to be multiplied with, by `input_rate`."""
        if self.input_rate is None or not self.needs_input_gradient:
            return None
        return Slope(X, 1.0 if noise is None else 1 / (1 - self.input_rate))

    def linear(self, matrix: Any, X: Any, parameters: Parameters, end: End) -> tuple[Any, Any]:
        """Return the result, `end` of what the layer computes, and what its gradient needs."""
        raise NotImplementedError

    def linear_gradient(
        self, matrix: Any, dZ: Any, kept: Any, parameters: Parameters, noise: Noise | None
    ) -> tuple[Parameters, Any]:
        """Return the gradients by parameter and by X, of that by what was there before `end`.

        That by the bias may be missing: it is the sum of `dZ` over the nodes.
        """
        raise NotImplementedError


def checked_rate(name: str, rate: Any) -> float:
    """Return a rate of dropout from 0 to below 1.

    Raises
    ------
    ArgumentError
        If it is not.
    """
    if not is_number(rate) or not 0 <= rate < 1:
        raise ArgumentError(name, f"got {rate!r}", "0 to below 1")
    return float(rate)


class Linear(Layer):
    """`X W`, of every node by itself."""

    takes_slope = True

    def linear(self, matrix: Any, X: Any, parameters: Parameters, end: End) -> tuple[Any, Any]:
        """Multiply; see `Layer`."""
        return affine([X], [parameters["W"]], end), X

    def linear_gradient(
        self, matrix: Any, dZ: Any, kept: Any, parameters: Parameters, noise: Noise | None
    ) -> tuple[Parameters, Any]:
        """Multiply with the transposed factors; see `Layer`."""
        (dW,), db = weight_gradients([kept], [dZ])
        dX = None
        if self.needs_input_gradient:
            dX = input_gradient([dZ], [parameters["W"]], self.input_slope(kept, noise))
        return {"W": dW, **({"b": db} if self.bias else {})}, dX
