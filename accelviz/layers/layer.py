"""What a layer is, and those that multiply with one matrix: linear, GCN, GIN, SAGE.

A layer has parameters by name, `forward`, which returns its result and what backward needs, and
`backward`, which returns a gradient for each parameter and for X. There is no tape: each gradient
is written down. A result of sparse operations alone; dense steps are those of `layers.dense`.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from accelviz.errors import ArgumentError, checked_choice, checked_integer
from accelviz.graph import Graph
from accelviz.layers import dense
from accelviz.layers.adjacency import gcn_matrix, mean_matrix, sum_matrix
from accelviz.layers.dense import Noise
from accelviz.layers.maximum import row_max, row_max_gradient
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
    """

    matrix_of: ClassVar[Any] = None
    needs_input_gradient = True

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
        return Matrix(made, products)

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
        Z, kept = self.linear(matrix, X, parameters, noise)
        Y = dense.finish(Z, parameters.get("b"), self.activation, self.dropout, noise)
        return Y, (kept, Y)

    def backward(
        self, matrix: Any, dY: Any, kept: Any, parameters: Parameters, noise: Noise | None = None
    ) -> tuple[Parameters, Any]:
        """Return the gradients by parameter, and by X or None, of that by the result.

        `noise` is the one that `forward` was given.
        """
        kept, Y = kept
        dZ = dense.finish_gradient(dY, Y, self.activation, self.dropout, noise)
        gradients, dX = self.linear_gradient(matrix, dZ, kept, parameters, noise)
        if self.bias:
            gradients["b"] = dense.column_sums(dZ)
        return gradients, dX

    def linear(
        self, matrix: Any, X: Any, parameters: Parameters, noise: Noise | None
    ) -> tuple[Any, Any]:
        """Return what comes before bias and activation, and what its gradient needs."""
        raise NotImplementedError

    def linear_gradient(
        self, matrix: Any, dZ: Any, kept: Any, parameters: Parameters, noise: Noise | None
    ) -> tuple[Parameters, Any]:
        """Return the gradients of `linear`."""
        raise NotImplementedError


def checked_rate(name: str, rate: Any) -> float:
    """Return a rate of dropout from 0 to below 1.

    Raises
    ------
    ArgumentError
        If it is not.
    """
    if not isinstance(rate, int | float) or not 0 <= rate < 1:
        raise ArgumentError(name, f"got {rate!r}", "0 to below 1")
    return float(rate)


def weighted(X: Any, W: Any, onto: Any = None) -> Any:
    """Return `X W`, of dense X or of sparse features; added to `onto`, if that is given."""
    if not isinstance(X, Matrix):
        return dense.matmul(X, W, onto=onto)
    return X.times(W) if onto is None else onto + X.times(W)


def weight_gradient(X: Any, dZ: Any) -> Any:
    """Return `X^T dZ`, the gradient of `X W` by W."""
    return X.transposed_times(dZ) if isinstance(X, Matrix) else dense.matmul(X, dZ, transposed="A")


class Propagation:
    """`A X W` in the cheaper order, and its gradients.

    `A (X W)` gathers rows of `n_out` columns, forward and backward; `(A X) W` rows of `n_in`
    columns, and backward only if the gradient by X is needed. Dense products cost the same. Sparse
    features are always multiplied with W first.

    Parameters
    ----------
    n_in, n_out : int
    order : {"auto", "weights first", "matrix first"}
    """

    ORDERS = ("auto", "weights first", "matrix first")

    def __init__(self, n_in: int, n_out: int, order: str = "auto") -> None:
        self.n_in, self.n_out = n_in, n_out
        self.order = checked_choice("order", order, self.ORDERS)

    def gathered(self, needs_input_gradient: bool) -> dict[str, int]:
        """Return the columns that a step gathers in each order, forward and backward together."""
        return {
            "weights first": 2 * self.n_out,
            "matrix first": self.n_in * (2 if needs_input_gradient else 1),
        }

    def matrix_first(self, X: Any, needs_input_gradient: bool) -> bool:
        """Say whether `(A X) W` is taken."""
        if isinstance(X, Matrix):
            return False
        if self.order != "auto":
            return self.order == "matrix first"
        columns = self.gathered(needs_input_gradient)
        return columns["matrix first"] < columns["weights first"]

    def forward(self, matrix: Matrix, X: Any, W: Any, needs_input_gradient: bool) -> Any:
        """Return `A X W` and what `backward` needs."""
        if self.matrix_first(X, needs_input_gradient):
            AX = matrix.times(X)
            return dense.matmul(AX, W), (X, AX, None)
        XW = weighted(X, W)
        return matrix.times(XW), (X, None, XW)

    def backward(
        self, matrix: Matrix, dZ: Any, kept: Any, W: Any, needs_input_gradient: bool
    ) -> tuple[Any, Any]:
        """Return the gradients by W and, if it is needed, by X."""
        X, AX, _ = kept
        if AX is not None:
            dW = dense.matmul(AX, dZ, transposed="A")
            if not needs_input_gradient:
                return dW, None
            return dW, matrix.transposed_times(dense.matmul(dZ, W, transposed="B"))
        dXW = matrix.transposed_times(dZ)
        dX = dense.matmul(dXW, W, transposed="B") if needs_input_gradient else None
        return weight_gradient(X, dXW), dX


class Linear(Layer):
    """`X W`, of every node by itself."""

    def linear(
        self, matrix: Any, X: Any, parameters: Parameters, noise: Noise | None
    ) -> tuple[Any, Any]:
        """Multiply; see `Layer`."""
        return weighted(X, parameters["W"]), X

    def linear_gradient(
        self, matrix: Any, dZ: Any, kept: Any, parameters: Parameters, noise: Noise | None
    ) -> tuple[Parameters, Any]:
        """Multiply with the transposed factors; see `Layer`."""
        dX = None
        if self.needs_input_gradient:
            dX = dense.matmul(dZ, parameters["W"], transposed="B")
        return {"W": weight_gradient(kept, dZ)}, dX


class GCN(Layer):
    """Graph convolution (Kipf and Welling, ICLR 2017): `D^-1/2 (A + I) D^-1/2 X W`.

    Parameters
    ----------
    n_in, n_out, activation, dropout, bias
        As of `Layer`.
    order : {"auto", "weights first", "matrix first"}
        As of `Propagation`.
    """

    matrix_of = staticmethod(gcn_matrix)

    def __init__(self, n_in: int, n_out: int, *, order: str = "auto", **options: Any) -> None:
        super().__init__(n_in, n_out, **options)
        self.propagation = Propagation(n_in, n_out, order)

    def linear(
        self, matrix: Matrix, X: Any, parameters: Parameters, noise: Noise | None
    ) -> tuple[Any, Any]:
        """Propagate; see `Layer`."""
        return self.propagation.forward(matrix, X, parameters["W"], self.needs_input_gradient)

    def linear_gradient(
        self, matrix: Matrix, dZ: Any, kept: Any, parameters: Parameters, noise: Noise | None
    ) -> tuple[Parameters, Any]:
        """Propagate back; see `Layer`."""
        W, needed = parameters["W"], self.needs_input_gradient
        dW, dX = self.propagation.backward(matrix, dZ, kept, W, needed)
        return {"W": dW}, dX


class GIN(Layer):
    """Graph isomorphism layer (Xu et al., ICLR 2019): an MLP of the sum over neighbors and oneself.

    `relu((A + (1 + eps) I) X W1 + b1) W`, then bias and activation. Weights do not count.

    Parameters
    ----------
    n_in, n_out, activation, dropout, bias, order
        As of `GCN`.
    n_hidden : int, optional
        Columns between the two products; `n_out` if not given.
    eps : float
        Of the paper.
    train_eps : bool
        Whether `eps` is a parameter too, which begins at that value.
    """

    matrix_of = staticmethod(sum_matrix)

    def __init__(
        self,
        n_in: int,
        n_out: int,
        *,
        n_hidden: int | None = None,
        eps: float = 0.0,
        train_eps: bool = False,
        order: str = "auto",
        **options: Any,
    ) -> None:
        super().__init__(n_in, n_out, **options)
        hidden = n_out if n_hidden is None else n_hidden
        self.n_hidden = checked_integer("n_hidden", hidden, error=ArgumentError)
        self.eps, self.train_eps = float(eps), train_eps
        self.propagation = Propagation(n_in, self.n_hidden, order)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of W1, b1, W, perhaps eps, and b."""
        hidden = {"W1": (self.n_in, self.n_hidden), "b1": (self.n_hidden,)}
        eps = {"eps": (1,)} if self.train_eps else {}
        return {**hidden, "W": (self.n_hidden, self.n_out), **eps, **self._bias()}

    def _matrix(self, matrix: Matrix, parameters: Parameters) -> Matrix:
        """Return the matrix with 1 + eps on its diagonal."""
        if not self.train_eps and self.eps == 0:
            return matrix
        eps = parameters["eps"] if self.train_eps else np.float32(self.eps)
        own = matrix.products.placed(matrix.graph.values)
        return matrix.with_values(own + eps * (matrix.rows == matrix.columns))

    def linear(
        self, matrix: Matrix, X: Any, parameters: Parameters, noise: Noise | None
    ) -> tuple[Any, Any]:
        """Propagate, then the MLP; see `Layer`."""
        needed = self.needs_input_gradient
        matrix = self._matrix(matrix, parameters)
        Z1, kept = self.propagation.forward(matrix, X, parameters["W1"], needed)
        H = dense.finish(Z1, parameters["b1"], "relu", 0, None)
        return dense.matmul(H, parameters["W"]), (kept, H)

    def linear_gradient(
        self, matrix: Matrix, dZ: Any, kept: Any, parameters: Parameters, noise: Noise | None
    ) -> tuple[Parameters, Any]:
        """Go back through the MLP and propagate back; see `Layer`."""
        kept, H = kept
        W, W1, needed = parameters["W"], parameters["W1"], self.needs_input_gradient
        dH = dense.matmul(dZ, W, transposed="B")
        dZ1 = dense.finish_gradient(dH, H, "relu", 0, None)
        matrix = self._matrix(matrix, parameters)
        dW1, dX = self.propagation.backward(matrix, dZ1, kept, W1, needed)
        gradients = {"W1": dW1, "b1": dense.column_sums(dZ1)}
        gradients["W"] = dense.matmul(H, dZ, transposed="A")
        if self.train_eps:  # eps multiplies X, so its gradient is a product with X W1
            X, _, XW = kept
            XW = weighted(X, W1) if XW is None else XW
            gradients["eps"] = (dZ1 * XW).sum().reshape(1)
        return gradients, dX


class SAGE(Layer):
    """GraphSAGE (Hamilton et al., NeurIPS 2017): the neighbors' mean or maximum, and the node.

    `D^-1 A X W + X Wr`, or with "max" the largest of each column over the neighbors in place of
    `D^-1 A X`. Weights do not count. A node without neighbors keeps its own part only.

    Parameters
    ----------
    n_in, n_out, activation, dropout, bias, order
        As of `GCN`; a maximum is always taken first.
    aggregate : {"mean", "max"}
    """

    matrix_of = staticmethod(mean_matrix)

    def __init__(
        self,
        n_in: int,
        n_out: int,
        *,
        aggregate: str = "mean",
        order: str = "auto",
        **options: Any,
    ) -> None:
        super().__init__(n_in, n_out, **options)
        self.aggregate = checked_choice("aggregate", aggregate, ("mean", "max"))
        self.propagation = Propagation(n_in, n_out, order)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of W, of the neighbors, Wr, of the node itself, and b."""
        shape = (self.n_in, self.n_out)
        return {"W": shape, "Wr": shape, **self._bias()}

    def linear(
        self, matrix: Matrix, X: Any, parameters: Parameters, noise: Noise | None
    ) -> tuple[Any, Any]:
        """Add up the neighbors' part and the node's own; see `Layer`."""
        W, kept = parameters["W"], None
        if self.aggregate == "max":
            full = X.dense() if isinstance(X, Matrix) else X
            largest, share = row_max(matrix, full)
            Z, kept = dense.matmul(largest, W), (X, full, largest, share)
        else:
            Z, kept = self.propagation.forward(matrix, X, W, self.needs_input_gradient)
        return weighted(X, parameters["Wr"], onto=Z), kept

    def linear_gradient(
        self, matrix: Matrix, dZ: Any, kept: Any, parameters: Parameters, noise: Noise | None
    ) -> tuple[Parameters, Any]:
        """Go back to the neighbors, and to the node itself; see `Layer`."""
        needed, X, W, dX = self.needs_input_gradient, kept[0], parameters["W"], None
        if self.aggregate == "max":
            _, full, largest, share = kept
            dW = dense.matmul(largest, dZ, transposed="A")
            if needed:
                d_largest = dense.matmul(dZ, W, transposed="B") * share
                dX = row_max_gradient(matrix, full, largest, d_largest)
        else:
            dW, dX = self.propagation.backward(matrix, dZ, kept, W, needed)
        if needed:
            dX = dense.matmul(dZ, parameters["Wr"], transposed="B", onto=dX)
        return {"W": dW, "Wr": weight_gradient(X, dZ)}, dX
