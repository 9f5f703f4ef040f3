"""Attention layers, which weigh each neighbor by a score: GAT, GATv2, AGNN.

Nonzero k in row i and column j is an edge from node j, its sender, to node i, its receiver. It has
`score[k, h]` for head h. `alpha[:, h]` is the softmax of the scores over the nonzeros of a row, and
`Y[i, h]` is the sum of `alpha[k, h] V[j, h]` over row i. This is one fused operation; GAT and AGNN
with `fused=False` run scores, softmax and sums separately (`layers.composed`), and so they do for a
strategy of these operations alone, such as "tc_gnn".
"""

from __future__ import annotations

import copy
from typing import Any, ClassVar

import numpy as np

from accelviz.errors import ArgumentError, checked_integer
from accelviz.layers import composed, dense
from accelviz.layers.adjacency import attention_matrix
from accelviz.layers.affine import affine, input_gradient, times_both, weight_gradients
from accelviz.layers.cosines import cosine_gradient, cosine_operands
from accelviz.layers.dense import Noise
from accelviz.layers.layer import Context, Layer, Parameters, checked_rate

#: Slope of the LeakyReLU in the scores of GAT and GATv2, as published.
SLOPE = 0.2


def attend(context: Context, score: str, operands: Parameters, fused: bool = True) -> Any:
    """Return Y of an attention, and save operands and outputs for `attend_gradient`."""
    if fused:
        outputs = context.matrix.run(score, **operands)
        Y = outputs["Y"]
    else:
        Y, outputs = composed.forward(context.matrix, score, operands)
    context.saved_for_backward = operands, outputs
    return Y


def attend_gradient(context: Context, score: str, dY: Any, fused: bool = True) -> Parameters:
    """Return the gradients with respect to the operands of `attend`: "d_receiver", "dV", ..."""
    operands, outputs = context.saved_for_backward
    if fused:
        gradients: Parameters = context.matrix.run(
            f"{score}_gradient", **operands, **outputs, dY=dY
        )
        return gradients
    return composed.backward(context.matrix, score, operands, outputs, dY)


class _Attention(Layer):
    """Base class: an attention that is one operation, or composed of several.

    Parameters
    ----------
    n_in, n_out, activation, dropout, bias
        As in `Layer`.
    fused : bool
        Whether scores, softmax and sum are one operation.
    """

    matrix_of = staticmethod(attention_matrix)
    #: Operation of the forward pass, if it is fused.
    score: ClassVar[str]

    def __init__(self, n_in: int, n_out: int, *, fused: bool = True, **options: Any) -> None:
        super().__init__(n_in, n_out, **options)
        self.fused = bool(fused)

    @property
    def operations(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of the operations that it runs on the graph."""
        return (self.score, f"{self.score}_gradient") if self.fused else composed.OPERATIONS

    def composed(self) -> Layer:
        """Return the layer with `fused=False`."""
        layer = copy.copy(self)
        layer.fused = False
        return layer


class GAT(_Attention):
    """Graph attention (Velickovic et al., ICLR 2018).

    `score = LeakyReLU(receiver[i] + sender[j])`. `receiver` and `sender` are the products of `X W`
    with two learned vectors per head. Every node also attends to itself; edge weights are ignored.

    Parameters
    ----------
    n_in, n_out, activation, dropout, bias
        As in `Layer`; `n_out` is the number of columns of one head.
    heads : int
    concat : bool
        Concatenate the heads (`heads * n_out` columns) instead of taking their mean.
    attention_dropout : float
        Share of the weights alpha that is dropped in training, 0 to below 1.
    slope : float
        Negative slope of the LeakyReLU.
    fused : bool
        Whether scores, softmax and sum are one operation.
    """

    score = "gat"

    def __init__(
        self,
        n_in: int,
        n_out: int,
        *,
        heads: int = 1,
        concat: bool = True,
        attention_dropout: float = 0.0,
        slope: float = SLOPE,
        **options: Any,
    ) -> None:
        super().__init__(n_in, n_out, **options)
        if not self.fused and isinstance(self, GATv2):
            raise ArgumentError("fused", "got False", "True, or GAT")
        self.heads = checked_integer("heads", heads, error=ArgumentError)
        self.concat = concat or self.heads == 1
        self.slope = float(slope)
        self.attention_dropout = checked_rate("attention_dropout", attention_dropout)

    @property
    def heads_width(self) -> int:
        """Number of columns of all heads together."""
        return self.heads * self.n_out

    @property
    def width(self) -> int:
        """Number of columns of the result."""
        return self.heads_width if self.concat else self.n_out

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of W, the two vectors of each head, and b."""
        vectors = {"sender": (self.heads, self.n_out), "receiver": (self.heads, self.n_out)}
        return {"W": (self.n_in, self.heads_width), **vectors, **self._bias()}

    def _merged(self, Y: Any) -> Any:
        """Concatenate the heads of Y, (n_nodes, heads, n_out), or take their mean."""
        return Y.reshape(Y.shape[0], -1) if self.concat else Y.mean(axis=1)

    def _merged_gradient(self, dZ: Any) -> Any:
        if self.concat:
            return self._by_head(dZ)
        return (dZ * np.float32(1 / self.heads))[:, None].repeat(self.heads, axis=1)

    def _scalars(self, noise: Noise | None) -> dict[str, Any]:
        """Return the slope, and rate and random words of dropout, as operands."""
        if noise is None or not self.attention_dropout:
            return {"slope": self.slope}
        words = noise.at(noise.site + 1).words
        return {"slope": self.slope, "rate": self.attention_dropout, "random": words}

    def _by_head(self, X: Any) -> Any:
        return X.reshape(-1, self.heads, self.n_out)

    def _score_weights(self, parameters: Parameters) -> Any:
        """Return the matrix U such that `X W U` has the columns of `sender`, then `receiver`."""
        vectors = parameters["sender"], parameters["receiver"]
        return dense.side_by_side(*map(dense.block_diagonal, vectors))

    def linear(self, context: Context) -> Any:
        """Compute the attention; see `Layer`."""
        V = affine([context.X], [context.parameters["W"]])
        scores = dense.matmul(V, self._score_weights(context.parameters))
        operands = {
            "receiver": scores[:, self.heads :].copy(),
            "sender": scores[:, : self.heads].copy(),
            "V": self._by_head(V),
            **self._scalars(context.epilogue.noise),
        }
        return context.epilogue.apply(self._merged(attend(context, "gat", operands, self.fused)))

    def linear_gradient(self, dZ: Any, context: Context) -> tuple[Parameters, Any]:
        """Return the gradients of `linear`; see `Layer`."""
        V = context.saved_for_backward[0]["V"].reshape(-1, self.heads_width)
        gradients = attend_gradient(context, "gat", self._merged_gradient(dZ), self.fused)
        d_scores = dense.side_by_side(gradients["d_sender"], gradients["d_receiver"])
        d_score_weights = dense.matmul(V, d_scores, transposed="A")
        dV, score_weights = (
            gradients["dV"].reshape(V.shape),
            self._score_weights(context.parameters),
        )
        dV = dense.matmul(d_scores, score_weights, transposed="B", onto=dV)
        (dW,), _ = weight_gradients([context.X], [dV], sums=False)
        dX = input_gradient([dV], [context.parameters["W"]]) if self.needs_input_gradient else None
        return {
            "W": dW,
            "sender": dense.diagonal_blocks(d_score_weights[:, : self.heads], self.heads),
            "receiver": dense.diagonal_blocks(d_score_weights[:, self.heads :], self.heads),
        }, dX


class GATv2(GAT):
    """Graph attention that ranks neighbors differently per receiver (Brody et al., ICLR 2022).

    `score = a . LeakyReLU(X_i Wr + X_j W)` for an edge from node j to node i; V is `X W`.

    Parameters
    ----------
    n_in, n_out, activation, dropout, bias, heads, concat, attention_dropout, slope
        As in `GAT`; it is always fused.
    """

    score = "gatv2"

    def composed(self) -> Layer:
        """Return the layer itself: its scores need a row of edges x columns."""
        return self

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of W (senders), Wr (receivers), the vectors a of the heads, and b."""
        weights = {"W": (self.n_in, self.heads_width), "Wr": (self.n_in, self.heads_width)}
        return {**weights, "a": (self.heads, self.n_out), **self._bias()}

    def linear(self, context: Context) -> Any:
        """Compute the attention; see `Layer`."""
        parameters = context.parameters
        V, R = map(self._by_head, times_both(context.X, [parameters["W"], parameters["Wr"]]))
        scalars = self._scalars(context.epilogue.noise)
        operands = {"R": R, "V": V, "a": parameters["a"], **scalars}
        return context.epilogue.apply(self._merged(attend(context, "gatv2", operands)))

    def linear_gradient(self, dZ: Any, context: Context) -> tuple[Parameters, Any]:
        """Return the gradients of `linear`; see `Layer`."""
        gradients = attend_gradient(context, "gatv2", self._merged_gradient(dZ))
        dV_dR = [gradients[name].reshape(-1, self.heads_width) for name in ("dV", "dR")]
        (dW, dWr), _ = weight_gradients([context.X], dV_dR, sums=False)
        weights = [context.parameters["W"], context.parameters["Wr"]]
        dX = input_gradient(dV_dR, weights) if self.needs_input_gradient else None
        return {"W": dW, "Wr": dWr, "a": gradients["da"]}, dX


class AGNN(_Attention):
    """Attention by cosines (Thekumparampil et al., 2018): `score = beta cos(X_i, X_j)`.

    It has no parameter matrix: the result has `n_in` columns too.

    Parameters
    ----------
    n_in : int
    beta : float
        Factor of the scores.
    train_beta : bool
        Whether beta is a trainable parameter; its initial value is then `beta`.
    activation, dropout
        As in `Layer`.
    fused : bool
        As in `GAT`.
    """

    score = "cosine"
    applies_input_activation = True

    def __init__(
        self, n_in: int, *, beta: float = 1.0, train_beta: bool = True, **options: Any
    ) -> None:
        super().__init__(n_in, n_in, bias=False, **options)
        self.beta, self.train_beta = float(beta), train_beta

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of beta, if it is a parameter."""
        return {"beta": (1,)} if self.train_beta else {}

    def _beta(self, context: Context) -> Any:
        return context.parameters["beta"] if self.train_beta else self.beta

    def linear(self, context: Context) -> Any:
        """Compute the attention; see `Layer`."""
        X = context.X
        Q, scale = cosine_operands(X, self._beta(context))
        operands = {"Q": Q[:, None], "V": X[:, None], "scale": scale}
        return context.epilogue.apply(attend(context, "cosine", operands, self.fused)[:, 0])

    def linear_gradient(self, dZ: Any, context: Context) -> tuple[Parameters, Any]:
        """Return the gradients of `linear`; see `Layer`."""
        gradients = attend_gradient(context, "cosine", dZ[:, None], self.fused)
        scale, activation = context.saved_for_backward[0]["scale"], self.input_activation(context)
        beta = self._beta(context)
        dX, d_beta = cosine_gradient(context.X, scale, beta, gradients, activation)
        if not self.needs_input_gradient:
            dX = None
        return {"beta": d_beta.sum().reshape(1)} if self.train_beta else {}, dX
