"""Layers that multiply with one matrix: GCN, GIN, SAGE."""

from __future__ import annotations

from typing import Any

import numpy as np

from accelviz.errors import ArgumentError, checked_choice, checked_integer
from accelviz.graph import Graph
from accelviz.layers import dense
from accelviz.layers.adjacency import gcn_matrix, mean_matrix, sum_matrix
from accelviz.layers.affine import (
    End,
    Slope,
    affine,
    apart,
    input_gradient,
    weight_gradients,
    weighted,
)
from accelviz.layers.dense import Noise
from accelviz.layers.layer import Layer, Parameters
from accelviz.layers.maximum import row_max, row_max_gradient
from accelviz.layers.products import Matrix


class Propagation:
    """Which of `A (X W)` and `(A X) W` is cheaper, and the first layers' gradients of both.

    `A (X W)` gathers rows of `n_out` columns, forward and backward; `(A X) W` rows of `n_in`
    columns, and backward only if the gradient by X is needed. Dense products cost the same, and
    what follows them is free, so that the matrix comes first if both gather as much. Features that
    never change (`Matrix.fix`) are gathered once, which is nothing in a step: the matrix comes
    first, and `A X` stays in memory. Sparse features are always multiplied with W first.

    Parameters
    ----------
    n_in, n_out : int
    order : {"auto", "weights first", "matrix first"}
    """

    ORDERS = ("auto", "weights first", "matrix first")

    def __init__(self, n_in: int, n_out: int, order: str = "auto") -> None:
        self.n_in, self.n_out = n_in, n_out
        self.order = checked_choice("order", order, self.ORDERS)

    def gathered(self, needs_input_gradient: bool, fixed: bool = False) -> dict[str, int]:
        """Return the columns that a step gathers in each order, forward and backward together."""
        passes = int(not fixed) + int(needs_input_gradient)
        return {"weights first": 2 * self.n_out, "matrix first": self.n_in * passes}

    def matrix_first(self, X: Any, needs_input_gradient: bool, fixed: bool = False) -> bool:
        """Say whether `(A X) W` is taken; `fixed` says that X never changes."""
        if isinstance(X, Matrix | Graph):
            return False
        if self.order != "auto":
            return self.order == "matrix first"
        columns = self.gathered(needs_input_gradient, fixed)
        return columns["matrix first"] <= columns["weights first"]

    def forward(
        self, matrix: Matrix, X: Any, W: Any, end: End, needs_input_gradient: bool
    ) -> tuple[Any, Any]:
        """Return `end` of `A X W`, and what `backward` needs."""
        if self.matrix_first(X, needs_input_gradient, matrix.is_fixed(X)):
            AX = matrix.times(X)
            return affine([AX], [W], end), (X, AX)
        return end.of(matrix.times(affine([X], [W]))), (X, None)

    def backward(
        self, matrix: Matrix, dZ: Any, kept: Any, W: Any, needed: bool, slope: Slope | None
    ) -> tuple[Any, Any, Any]:
        """Return the gradients by W, by the bias, and, if `needed`, by X times a slope."""
        X, AX = kept
        if AX is not None:
            (dW,), db = weight_gradients([AX], [dZ])
            if not needed:
                return dW, db, None
            dX = matrix.transposed_times(input_gradient([dZ], [W]))
            return dW, db, dX if slope is None else slope.of(dX)
        dXW = matrix.transposed_times(dZ)
        (dW,), _ = weight_gradients([X], [dXW], sums=False)
        dX = input_gradient([dXW], [W], slope) if needed else None
        return dW, dense.column_sums(dZ), dX


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
    takes_slope = True

    def __init__(self, n_in: int, n_out: int, *, order: str = "auto", **options: Any) -> None:
        super().__init__(n_in, n_out, **options)
        self.propagation = Propagation(n_in, n_out, order)

    def linear(self, matrix: Matrix, X: Any, parameters: Parameters, end: End) -> tuple[Any, Any]:
        """Propagate; see `Layer`."""
        return self.propagation.forward(matrix, X, parameters["W"], end, self.needs_input_gradient)

    def linear_gradient(
        self, matrix: Matrix, dZ: Any, kept: Any, parameters: Parameters, noise: Noise | None
    ) -> tuple[Parameters, Any]:
        """Propagate back; see `Layer`."""
        W, needed, slope = (
            parameters["W"],
            self.needs_input_gradient,
            self.input_slope(kept[0], noise),
        )
        dW, db, dX = self.propagation.backward(matrix, dZ, kept, W, needed, slope)
        return {"W": dW, **({"b": db} if self.bias else {})}, dX


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
    takes_slope = True

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
        return matrix.with_values(matrix.weights + eps * (matrix.rows == matrix.columns))

    def linear(self, matrix: Matrix, X: Any, parameters: Parameters, end: End) -> tuple[Any, Any]:
        """Propagate, then the MLP; see `Layer`."""
        needed, middle = self.needs_input_gradient, End(parameters["b1"], "relu")
        matrix = self._matrix(matrix, parameters)
        H, kept = self.propagation.forward(matrix, X, parameters["W1"], middle, needed)
        return affine([H], [parameters["W"]], end), (kept, H)

    def linear_gradient(
        self, matrix: Matrix, dZ: Any, kept: Any, parameters: Parameters, noise: Noise | None
    ) -> tuple[Parameters, Any]:
        """Go back through the MLP and propagate back; see `Layer`."""
        kept, H = kept
        W1, needed, slope = (
            parameters["W1"],
            self.needs_input_gradient,
            self.input_slope(kept[0], noise),
        )
        (dW,), db = weight_gradients([H], [dZ])
        dZ1 = input_gradient([dZ], [parameters["W"]], Slope(H))
        matrix = self._matrix(matrix, parameters)
        dW1, db1, dX = self.propagation.backward(matrix, dZ1, kept, W1, needed, slope)
        gradients = {"W1": dW1, "b1": db1, "W": dW}
        if self.bias:
            gradients["b"] = db
        if self.train_eps:  # eps multiplies X, so its gradient is a product with X W1
            gradients["eps"] = (dZ1 * weighted(kept[0], W1)).sum().reshape(1)
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
    takes_slope = True

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

    def linear(self, matrix: Matrix, X: Any, parameters: Parameters, end: End) -> tuple[Any, Any]:
        """Add up the neighbors' part and the node's own; see `Layer`."""
        weights, share = [parameters["W"], parameters["Wr"]], None
        if self.aggregate == "max":
            full = X.dense() if isinstance(X, Matrix) else X
            neighbors, share = row_max(matrix, full)
        elif self.propagation.matrix_first(X, self.needs_input_gradient, matrix.is_fixed(X)):
            full, neighbors = X, matrix.times(X)
        else:
            XW, own = apart(X, weights)
            return end.of(matrix.times(XW), own), (X, None, None, None)
        return affine([neighbors, X], weights, end), (X, full, neighbors, share)

    def linear_gradient(
        self, matrix: Matrix, dZ: Any, kept: Any, parameters: Parameters, noise: Noise | None
    ) -> tuple[Parameters, Any]:
        """Go back to the neighbors, and to the node itself; see `Layer`."""
        X, full, neighbors, share = kept
        weights, slope = [parameters["W"], parameters["Wr"]], self.input_slope(X, noise)
        if neighbors is None:
            both = [matrix.transposed_times(dZ), dZ]
            (dW, dWr), db = weight_gradients([X], both)
            needed = self.needs_input_gradient
            dX = input_gradient(both, weights, slope) if needed else None
        else:
            (dW, dWr), db = weight_gradients([neighbors, X], [dZ])
            dX = None
            if self.needs_input_gradient:
                d_neighbors, dX = (input_gradient([dZ], [W]) for W in weights)
                if share is None:
                    dX += matrix.transposed_times(d_neighbors)
                else:
                    dX += row_max_gradient(matrix, full, neighbors, d_neighbors * share)
                dX = dX if slope is None else slope.of(dX)
        return {"W": dW, "Wr": dWr, **({"b": db} if self.bias else {})}, dX
