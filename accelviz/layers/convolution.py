"""Convolutional layers, which multiply features with a fixed sparse matrix: GCN, GIN, SAGE."""

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


class Propagating(Layer):
    """Base class of layers that compute `A X W`, as `A (X W)` or as `(A X) W`.

    "weights first" gathers rows with the columns of `X W`, forward and backward. "matrix first"
    gathers rows of `n_in` columns, backward only if the gradient with respect to X is needed.
    "auto" takes the order that gathers fewer columns; the dense products cost the same in both. At
    a tie the matrix comes first, because the dense kernel then applies the epilogue. If the
    features never change (`Matrix.fix`), `A X` is computed once per training and stored. Sparse
    features are always multiplied with W first.

    Parameters
    ----------
    n_in, n_out, activation, dropout, bias
        As in `Layer`.
    order : {"auto", "weights first", "matrix first"}
    """

    applies_input_activation = True

    def __init__(self, n_in: int, n_out: int, *, order: str = "auto", **options: Any) -> None:
        super().__init__(n_in, n_out, **options)
        self.order = checked_choice("order", order, ("auto", "weights first", "matrix first"))

    @property
    def propagated(self) -> int:
        """Number of columns of `X W`."""
        return self.n_out

    def matrix_first(self, X: Any, fixed: bool = False) -> bool:
        """Return whether to compute `(A X) W`; `fixed` means that X never changes."""
        if isinstance(X, Matrix | Graph):
            return False
        if self.order != "auto":
            return self.order == "matrix first"
        passes = int(not fixed) + int(self.needs_input_gradient)
        return passes * self.n_in <= 2 * self.propagated

    def _propagate(self, context: Context, matrix: Matrix, W: Any, epilogue: Epilogue) -> Any:
        """Return `epilogue(A X W)`, and `A X` (None if W comes first)."""
        X = context.X
        if self.matrix_first(X, matrix.is_fixed(X)):
            AX = matrix.times(X)
            return affine([AX], [W], epilogue), AX
        return epilogue.apply(matrix.times(affine([X], [W]))), None

    def _propagate_back(self, context: Context, matrix: Matrix, dZ: Any, W: Any, AX: Any) -> Any:
        """Return the gradients with respect to W, to the bias (or None) and to X (or None)."""
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


class GCN(Propagating):
    """Graph convolution (Kipf and Welling, ICLR 2017): `D^-1/2 (A + I) D^-1/2 X W`.

    Parameters
    ----------
    n_in, n_out, activation, dropout, bias, order
        As in `Propagating`.
    """

    operations = ("spmm",)
    matrix_of = staticmethod(gcn_matrix)

    def linear(self, context: Context) -> Any:
        """Compute `A X W`; see `Layer`."""
        W, epilogue = context.parameters["W"], context.epilogue
        Y, context.saved_for_backward = self._propagate(context, context.matrix, W, epilogue)
        return Y

    def linear_gradient(self, dZ: Any, context: Context) -> tuple[Parameters, Any]:
        """Return the gradients of `linear`; see `Layer`."""
        W, AX = context.parameters["W"], context.saved_for_backward
        dW, db, dX = self._propagate_back(context, context.matrix, dZ, W, AX)
        return {"W": dW, "b": db}, dX


class GIN(Propagating):
    """Graph isomorphism layer (Xu et al., ICLR 2019): an MLP of the sum over neighbors and node.

    `relu((A + (1 + eps) I) X W1 + b1) W`, then bias and activation. Edge weights are ignored.

    Parameters
    ----------
    n_in, n_out, activation, dropout, bias, order
        As in `Propagating`.
    n_hidden : int, optional
        Columns between the two products, `n_out` by default.
    eps : float
        The paper's epsilon.
    train_eps : bool
        Whether epsilon is a trainable parameter; its initial value is then `eps`.
    """

    operations = ("spmm",)
    matrix_of = staticmethod(sum_matrix)

    def __init__(
        self,
        n_in: int,
        n_out: int,
        *,
        n_hidden: int | None = None,
        eps: float = 0.0,
        train_eps: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(n_in, n_out, **options)
        hidden = n_out if n_hidden is None else n_hidden
        self.n_hidden = checked_integer("n_hidden", hidden, error=ArgumentError)
        self.eps, self.train_eps = float(eps), train_eps

    @property
    def propagated(self) -> int:
        """Number of columns of `X W1`."""
        return self.n_hidden

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of W1, b1, W, eps (with `train_eps`) and b."""
        hidden = {"W1": (self.n_in, self.n_hidden), "b1": (self.n_hidden,)}
        eps = {"eps": (1,)} if self.train_eps else {}
        return {**hidden, "W": (self.n_hidden, self.n_out), **eps, **self._bias()}

    def _matrix(self, context: Context) -> Matrix:
        """Return the context's matrix with eps added to its diagonal."""
        matrix: Matrix = context.matrix
        if not self.train_eps and self.eps == 0:
            return matrix
        eps = context.parameters["eps"] if self.train_eps else np.float32(self.eps)
        return matrix.with_values(matrix.weights + eps * (matrix.rows == matrix.columns))

    def linear(self, context: Context) -> Any:
        """Sum over the neighbors, then apply the MLP; see `Layer`."""
        hidden, W1 = Epilogue(context.parameters["b1"], "relu"), context.parameters["W1"]
        H, AX = self._propagate(context, self._matrix(context), W1, hidden)
        context.saved_for_backward = AX, H
        return affine([H], [context.parameters["W"]], context.epilogue)

    def linear_gradient(self, dZ: Any, context: Context) -> tuple[Parameters, Any]:
        """Return the gradients of `linear`; see `Layer`."""
        (AX, H), W1 = context.saved_for_backward, context.parameters["W1"]
        (dW,), db = weight_gradients([H], [dZ])
        dZ1 = input_gradient([dZ], [context.parameters["W"]], ActivationGradient(H))
        dW1, db1, dX = self._propagate_back(context, self._matrix(context), dZ1, W1, AX)
        db1 = dense.column_sums(dZ1) if db1 is None else db1
        gradients = {"W1": dW1, "b1": db1, "W": dW, "b": db}
        if self.train_eps:  # eps multiplies X W1, so that its gradient is the sum of dZ1 * X W1
            gradients["eps"] = (dZ1 * times_weights(context.X, W1)).sum().reshape(1)
        return gradients, dX


class SAGE(Propagating):
    """GraphSAGE (Hamilton et al., NeurIPS 2017): mean or maximum of the neighbors, and the node.

    "mean" computes `D^-1 A X W + X Wr`. "max" replaces `D^-1 A X` by the maximum of each column
    over the neighbors. Edge weights are ignored. A node without neighbors has `X Wr` only.

    Parameters
    ----------
    n_in, n_out, activation, dropout, bias, order
        As in `Propagating`; "max" ignores `order`: the maximum comes before the product with W.
    aggregate : {"mean", "max"}
    """

    matrix_of = staticmethod(mean_matrix)

    def __init__(self, n_in: int, n_out: int, *, aggregate: str = "mean", **options: Any) -> None:
        super().__init__(n_in, n_out, **options)
        self.aggregate = checked_choice("aggregate", aggregate, ("mean", "max"))
        extrema = ("spmm_max", "spmm_extremum_gradient")
        self.operations = extrema if aggregate == "max" else ("spmm",)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of W (for the neighbors), Wr (for the node itself) and b."""
        shape = (self.n_in, self.n_out)
        return {"W": shape, "Wr": shape, **self._bias()}

    def linear(self, context: Context) -> Any:
        """Return the sum of the products with W and Wr; see `Layer`."""
        matrix, X, source = context.matrix, context.X, None
        weights = [context.parameters["W"], context.parameters["Wr"]]
        if self.aggregate == "max":
            dense_X = X.dense() if isinstance(X, Matrix) else X
            neighbors, source = matrix.run("spmm_max", X=dense_X).values()
        elif self.matrix_first(X, matrix.is_fixed(X)):
            dense_X, neighbors = X, matrix.times(X)
        else:
            XW, XWr = times_both(X, weights)
            return context.epilogue.apply(matrix.times(XW), XWr)
        context.saved_for_backward = dense_X, neighbors, source
        return affine([neighbors, X], weights, context.epilogue)

    def linear_gradient(self, dZ: Any, context: Context) -> tuple[Parameters, Any]:
        """Return the gradients of `linear`; see `Layer`."""
        matrix, X, dX = context.matrix, context.X, None
        weights = [context.parameters["W"], context.parameters["Wr"]]
        activation = self.input_activation(context)
        if context.saved_for_backward is None:
            product_gradients = [matrix.transposed_times(dZ), dZ]  # of X W and X Wr
            (dW, dWr), db = weight_gradients([X], product_gradients)
            if self.needs_input_gradient:
                dX = input_gradient(product_gradients, weights, activation)
        else:
            dense_X, neighbors, source = context.saved_for_backward
            (dW, dWr), db = weight_gradients([neighbors, X], [dZ])
            if self.needs_input_gradient:
                d_neighbors, dX = (input_gradient([dZ], [W]) for W in weights)
                if source is None:
                    dX += matrix.transposed_times(d_neighbors)
                else:
                    operands = {"X": dense_X, "Y": neighbors, "dY": d_neighbors, "source": source}
                    dX += matrix.run("spmm_extremum_gradient", **operands)["dX"]
                dX = dX if activation is None else activation.apply(dX)
        return {"W": dW, "Wr": dWr, "b": db}, dX
