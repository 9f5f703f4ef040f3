"""Layers that weigh each neighbor by a score: GAT, GATv2, AGNN.

`alpha[k, h] = softmax over the nonzeros of k's row of score[k, h]`, and `Y[i, h] = sum over the
nonzeros (i, j) of alpha[k, h] V[j, h]`. By default that is one fused operation, whose strategy is a
parameter as that of any other; `fused=False` takes it apart (`layers.composed`).
"""

from __future__ import annotations

from typing import Any

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


def attend(context: Context, score: str, operands: Parameters, fused: bool) -> Any:
    """Weigh and add up the neighbors; save what `attend_gradient` needs."""
    if fused:
        outputs = context.matrix.run(score, **operands)
        Y = outputs["Y"]
    else:
        Y, outputs = composed.forward(context.matrix, score, operands)
    context.saved_for_backward = operands, outputs
    return Y


def attend_gradient(context: Context, score: str, dY: Any, fused: bool) -> Parameters:
    """Return the gradients of `attend` by its operands: "d_receiver", "dV", ..."""
    operands, outputs = context.saved_for_backward
    if fused:
        gradients: Parameters = context.matrix.run(
            f"{score}_gradient", **operands, **outputs, dY=dY
        )
        return gradients
    return composed.backward(context.matrix, score, operands, outputs, dY)


class GAT(Layer):
    """Graph attention (Velickovic et al., ICLR 2018).

    `score = LeakyReLU(receiver[i] + sender[j])`, the products of `X W` with two learned vectors of
    each head. Every node attends to itself too; weights of edges do not count.

    Parameters
    ----------
    n_in, n_out, activation, dropout, bias
        As of `Layer`; `n_out` are the columns of one head.
    heads : int
    concat : bool
        Put the heads side by side (`heads * n_out` columns); else take their mean.
    attention_dropout : float
        The share of the weights of neighbors that is dropped while training.
    slope : float
        Of the LeakyReLU.
    fused : bool
        Whether scores, softmax and sum are one operation.
    """

    matrix_of = staticmethod(attention_matrix)

    def __init__(
        self,
        n_in: int,
        n_out: int,
        *,
        heads: int = 1,
        concat: bool = True,
        attention_dropout: float = 0.0,
        slope: float = SLOPE,
        fused: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(n_in, n_out, **options)
        self.heads = checked_integer("heads", heads, error=ArgumentError)
        self.concat, self.slope, self.fused = concat, float(slope), fused
        self.attention_dropout = checked_rate("attention_dropout", attention_dropout)

    @property
    def heads_width(self) -> int:
        """Columns of all heads together."""
        return self.heads * self.n_out

    @property
    def width(self) -> int:
        """Columns of the result."""
        return self.heads_width if self.concat else self.n_out

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of W, the two vectors of each head, and b."""
        vectors = {"sender": (self.heads, self.n_out), "receiver": (self.heads, self.n_out)}
        return {"W": (self.n_in, self.heads_width), **vectors, **self._bias()}

    @property
    def _joined(self) -> bool:
        return self.concat or self.heads == 1

    def _merged(self, Y: Any) -> Any:
        """Put the heads side by side, or take their mean."""
        return Y.reshape(Y.shape[0], -1) if self._joined else Y.mean(axis=1)

    def _parted(self, dZ: Any) -> Any:
        """Return the gradient of `_merged`, (n_nodes, heads, n_out)."""
        if self._joined:
            return dZ.reshape(-1, self.heads, self.n_out)
        return (dZ * np.float32(1 / self.heads))[:, None].repeat(self.heads, axis=1)

    def _numbers(self, noise: Noise | None) -> dict[str, Any]:
        """Return the operands of a score that are no arrays of nodes."""
        if noise is None or not self.attention_dropout:
            return {"slope": self.slope}
        words = noise.at(noise.site + 1).words
        return {"slope": self.slope, "rate": self.attention_dropout, "random": words}

    def _by_head(self, X: Any) -> Any:
        return X.reshape(-1, self.heads, self.n_out)

    def _vectors(self, parameters: Parameters) -> Any:
        """Return the vectors as a matrix that `X W` is multiplied with: senders, then receivers."""
        vectors = parameters["sender"], parameters["receiver"]
        parts = [dense.block_diagonal(vector) for vector in vectors]
        return dense.side_by_side(*parts)

    def linear(self, context: Context) -> Any:
        """Score, weigh and add up the neighbors; see `Layer`."""
        V = affine([context.X], [context.parameters["W"]])
        ends = dense.matmul(V, self._vectors(context.parameters))
        operands = {
            "receiver": ends[:, self.heads :].copy(),
            "sender": ends[:, : self.heads].copy(),
            "V": self._by_head(V),
            **self._numbers(context.epilogue.noise),
        }
        return context.epilogue.apply(self._merged(attend(context, "gat", operands, self.fused)))

    def linear_gradient(self, dZ: Any, context: Context) -> tuple[Parameters, Any]:
        """Go back through the weights and the scores; see `Layer`."""
        V = context.saved_for_backward[0]["V"].reshape(-1, self.heads_width)
        gradients = attend_gradient(context, "gat", self._parted(dZ), self.fused)
        d_ends = dense.side_by_side(gradients["d_sender"], gradients["d_receiver"])
        d_vectors = dense.matmul(V, d_ends, transposed="A")
        dV, vectors = gradients["dV"].reshape(V.shape), self._vectors(context.parameters)
        dV = dense.matmul(d_ends, vectors, transposed="B", onto=dV)
        (dW,), _ = weight_gradients([context.X], [dV], sums=False)
        W = context.parameters["W"]
        return {
            "W": dW,
            "sender": dense.diagonal_blocks(d_vectors[:, : self.heads], self.heads),
            "receiver": dense.diagonal_blocks(d_vectors[:, self.heads :], self.heads),
        }, input_gradient([dV], [W]) if self.needs_input_gradient else None


class GATv2(GAT):
    """Graph attention whose ranking depends on the receiver (Brody et al., ICLR 2022).

    `score = a . LeakyReLU(X_i Wr + X_j W)`; the columns of `X W` are what is added up.

    Parameters
    ----------
    n_in, n_out, activation, dropout, bias, heads, concat, attention_dropout, slope, fused
        As of `GAT`.
    """

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of W, of senders, Wr, of receivers, the vector a of a head, and b."""
        weights = {"W": (self.n_in, self.heads_width), "Wr": (self.n_in, self.heads_width)}
        return {**weights, "a": (self.heads, self.n_out), **self._bias()}

    def linear(self, context: Context) -> Any:
        """Score, weigh and add up the neighbors; see `Layer`."""
        parameters = context.parameters
        V, R = map(self._by_head, times_both(context.X, [parameters["W"], parameters["Wr"]]))
        numbers = self._numbers(context.epilogue.noise)
        operands = {"R": R, "V": V, "a": parameters["a"], **numbers}
        return context.epilogue.apply(self._merged(attend(context, "gatv2", operands, self.fused)))

    def linear_gradient(self, dZ: Any, context: Context) -> tuple[Parameters, Any]:
        """Go back through the weights and the scores; see `Layer`."""
        gradients = attend_gradient(context, "gatv2", self._parted(dZ), self.fused)
        both = [gradients[name].reshape(-1, self.heads_width) for name in ("dV", "dR")]
        (dW, dWr), _ = weight_gradients([context.X], both, sums=False)
        weights = [context.parameters["W"], context.parameters["Wr"]]
        dX = input_gradient(both, weights) if self.needs_input_gradient else None
        return {"W": dW, "Wr": dWr, "a": gradients["da"]}, dX


class AGNN(Layer):
    """Attention by cosines (Thekumparampil et al., 2018): `score = beta cos(X_i, X_j)`.

    It has no matrix of parameters: as many columns come out as go in.

    Parameters
    ----------
    n_in : int
    beta : float
        The factor of the scores.
    train_beta : bool
        Whether it is a parameter, which begins at that value.
    fused : bool
        Whether scores, softmax and sum are one operation.
    activation, dropout
        As of `Layer`.
    """

    matrix_of = staticmethod(attention_matrix)
    applies_input_activation = True

    def __init__(
        self,
        n_in: int,
        *,
        beta: float = 1.0,
        train_beta: bool = True,
        fused: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(n_in, n_in, bias=False, **options)
        self.beta, self.train_beta, self.fused = float(beta), train_beta, fused

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of beta, if it is a parameter."""
        return {"beta": (1,)} if self.train_beta else {}

    def _beta(self, context: Context) -> Any:
        return context.parameters["beta"] if self.train_beta else self.beta

    def linear(self, context: Context) -> Any:
        """Score, weigh and add up the neighbors; see `Layer`."""
        X = context.X
        Q, scale = cosine_operands(X, self._beta(context))
        operands = {"Q": Q[:, None], "V": X[:, None], "scale": scale}
        return context.epilogue.apply(attend(context, "cosine", operands, self.fused)[:, 0])

    def linear_gradient(self, dZ: Any, context: Context) -> tuple[Parameters, Any]:
        """Go back through the weights and the cosines; see `Layer`."""
        gradients = attend_gradient(context, "cosine", dZ[:, None], self.fused)
        scale, activation = context.saved_for_backward[0]["scale"], self.input_activation(context)
        beta = self._beta(context)
        dX, d_beta = cosine_gradient(context.X, scale, beta, gradients, activation)
        if not self.needs_input_gradient:
            dX = None
        return {"beta": d_beta.sum().reshape(1)} if self.train_beta else {}, dX
