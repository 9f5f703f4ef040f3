"""Layers that multiply with one matrix: GCN, GIN, SAGE."""

from __future__ import annotations

from typing import Any

import numpy as np

from accelviz.errors import ArgumentError, checked_choice, checked_integer
from accelviz.graph import Graph
from accelviz.layers import dense
from accelviz.layers.adjacency import gcn_matrix, mean_matrix, sum_matrix
from accelviz.layers.affine import (
    ActivationGradient,
    affine,
    input_gradient,
    times_both,
    times_weights,
    weight_gradients,
)
from accelviz.layers.dense import Epilogue
from accelviz.layers.layer import Context, Layer, Parameters
from accelviz.layers.products import Matrix


class Propagation:
    """`A X W` in the cheaper order, `A (X W)` or `(A X) W`, and its gradients.

    `A (X W)` gathers rows of `n_out` columns, forward and backward. `(A X) W` gathers rows of
    `n_in` columns, backward only if the gradient by X is needed. Dense products cost the same, and
    the epilogue is free, so that the matrix comes first if both gather as much. Features that never
    change (`Matrix.fix`) are gathered once in a training: then the matrix comes first, and `A X`
    stays in memory. Sparse features are always multiplied with W first.

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
        """Tell whether `(A X) W` is cheaper; `fixed` if X never changes."""
        if isinstance(X, Matrix | Graph):
            return False
        if self.order != "auto":
            return self.order == "matrix first"
        columns = self.gathered(needs_input_gradient, fixed)
        return columns["matrix first"] <= columns["weights first"]


class _Propagating(Layer):
    """A layer that computes `A X W`, of a matrix A of its own, in the cheaper order."""

    applies_input_activation = True
    propagation: Propagation

    def _propagate(self, context: Context, matrix: Matrix, W: Any, epilogue: Epilogue) -> Any:
        """Return `epilogue` of `A X W`, and `A X` or None."""
        X = context.X
        if self.propagation.matrix_first(X, self.needs_input_gradient, matrix.is_fixed(X)):
            AX = matrix.times(X)
            return affine([AX], [W], epilogue), AX
        return epilogue.apply(matrix.times(affine([X], [W]))), None

    def _propagate_back(self, context: Context, matrix: Matrix, dZ: Any, W: Any, AX: Any) -> Any:
        """Return the gradients by W, by the bias or None, and by X or None."""
        activation, dX = self.input_activation(context), None
        if AX is None:
            dXW = matrix.transposed_times(dZ)
            (dW,), _ = weight_gradients([context.X], [dXW], sums=False)
            if self.needs_input_gradient:
                dX = input_gradient([dXW], [W], activation)
            return dW, None, dX
        (dW,), db = weight_gradients([AX], [dZ])
        if self.needs_input_gradient:
            dX = matrix.transposed_times(input_gradient([dZ], [W]))
            dX = dX if activation is None else activation.apply(dX)
        return dW, db, dX


class GCN(_Propagating):
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

    def linear(self, context: Context) -> Any:
        """Propagate; see `Layer`."""
        W, epilogue = context.parameters["W"], context.epilogue
        Y, context.saved_for_backward = self._propagate(context, context.matrix, W, epilogue)
        return Y

    def linear_gradient(self, dZ: Any, context: Context) -> tuple[Parameters, Any]:
        """Propagate back; see `Layer`."""
        W, AX = context.parameters["W"], context.saved_for_backward
        dW, db, dX = self._propagate_back(context, context.matrix, dZ, W, AX)
        return {"W": dW, "b": db}, dX


class GIN(_Propagating):
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

    def _matrix(self, context: Context) -> Matrix:
        """Return the matrix with 1 + eps on its diagonal."""
        matrix: Matrix = context.matrix
        if not self.train_eps and self.eps == 0:
            return matrix
        eps = context.parameters["eps"] if self.train_eps else np.float32(self.eps)
        return matrix.with_values(matrix.weights + eps * (matrix.rows == matrix.columns))

    def linear(self, context: Context) -> Any:
        """Propagate, then the MLP; see `Layer`."""
        hidden, W1 = Epilogue(context.parameters["b1"], "relu"), context.parameters["W1"]
        H, AX = self._propagate(context, self._matrix(context), W1, hidden)
        context.saved_for_backward = AX, H
        return affine([H], [context.parameters["W"]], context.epilogue)

    def linear_gradient(self, dZ: Any, context: Context) -> tuple[Parameters, Any]:
        """Go back through the MLP and propagate back; see `Layer`."""
        (AX, H), W1 = context.saved_for_backward, context.parameters["W1"]
        (dW,), db = weight_gradients([H], [dZ])
        dZ1 = input_gradient([dZ], [context.parameters["W"]], ActivationGradient(H))
        dW1, db1, dX = self._propagate_back(context, self._matrix(context), dZ1, W1, AX)
        db1 = dense.column_sums(dZ1) if db1 is None else db1
        gradients = {"W1": dW1, "b1": db1, "W": dW, "b": db}
        if self.train_eps:  # eps multiplies X, so that its gradient is a product with X W1
            gradients["eps"] = (dZ1 * times_weights(context.X, W1)).sum().reshape(1)
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
    applies_input_activation = True

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

    def linear(self, context: Context) -> Any:
        """Add up the neighbors' part and the node's own; see `Layer`."""
        matrix, X, share = context.matrix, context.X, None
        weights = [context.parameters["W"], context.parameters["Wr"]]
        if self.aggregate == "max":
            full = X.dense() if isinstance(X, Matrix) else X
            neighbors, share = matrix.run("spmm_max", X=full).values()
        elif self.propagation.matrix_first(X, self.needs_input_gradient, matrix.is_fixed(X)):
            full, neighbors = X, matrix.times(X)
        else:
            XW, XWr = times_both(X, weights)
            return context.epilogue.apply(matrix.times(XW), XWr)
        context.saved_for_backward = full, neighbors, share
        return affine([neighbors, X], weights, context.epilogue)

    def linear_gradient(self, dZ: Any, context: Context) -> tuple[Parameters, Any]:
        """Go back to the neighbors, and to the node itself; see `Layer`."""
        matrix, X, dX = context.matrix, context.X, None
        weights = [context.parameters["W"], context.parameters["Wr"]]
        activation = self.input_activation(context)
        if context.saved_for_backward is None:
            both = [matrix.transposed_times(dZ), dZ]
            (dW, dWr), db = weight_gradients([X], both)
            if self.needs_input_gradient:
                dX = input_gradient(both, weights, activation)
        else:
            full, neighbors, share = context.saved_for_backward
            (dW, dWr), db = weight_gradients([neighbors, X], [dZ])
            if self.needs_input_gradient:
                d_neighbors, dX = (input_gradient([dZ], [W]) for W in weights)
                if share is None:
                    dX += matrix.transposed_times(d_neighbors)
                else:
                    operands = {"X": full, "Y": neighbors, "dY": d_neighbors * share}
                    dX += matrix.run("spmm_extremum_gradient", **operands)["dX"]
                dX = dX if activation is None else activation.apply(dX)
        return {"W": dW, "Wr": dWr, "b": db}, dX
