"""Layers that weigh each neighbor by a score: GAT, GATv2, AGNN.

`alpha[k, h] = softmax over the nonzeros of k's row of score[k, h]`, and `Y[i, h] = sum over the
nonzeros (i, j) of alpha[k, h] V[j, h]`. Here is the composed form: each step is an operation of its
own, so that any strategy can be each of them and a learner can look between them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from accelviz.errors import ArgumentError, checked_choice, checked_integer
from accelviz.layers import dense
from accelviz.layers.adjacency import attention_matrix
from accelviz.layers.dense import Noise
from accelviz.layers.layer import Layer, Parameters, checked_rate, weight_gradient, weighted
from accelviz.layers.products import Matrix
from accelviz.random import edge_uniform

#: Slope of the LeakyReLU in the scores of GAT and GATv2, as published.
SLOPE = 0.2
#: What PyTorch adds to a norm before it divides by it.
NORM_EPS = 1e-12


def leaky(X: Any, slope: float) -> Any:
    """Return `X` where it is positive, else `slope * X`."""
    return X * leaky_slope(X, slope)


def leaky_slope(X: Any, slope: float) -> Any:
    """Return the derivative of `leaky`: 1 or `slope`, float32."""
    return (X > 0) * np.float32(1 - slope) + np.float32(slope)


def spread(matrix: Matrix, scores: Any, V: Any, rate: float, noise: Noise | None) -> Any:
    """Turn scores into weights of the neighbors and add the neighbors up.

    Parameters
    ----------
    matrix : Matrix
    scores : array of float32, shape (nnz, heads)
    V : array of float32, shape (n_nodes, heads, n_cols)
    rate : float
        Of the dropout of weights.
    noise : Noise, optional

    Returns
    -------
    Y : array of float32, shape (n_nodes, heads, n_cols)
    kept : tuple
        For `spread_gradient`: the weights, and what dropout left of them.
    """
    alpha = matrix.softmax(scores)
    dropped = alpha * _kept_edges(matrix, alpha, rate, noise)
    heads = [matrix.times(_head(V, h), _head(dropped, h)) for h in range(alpha.shape[1])]
    return dense.side_by_side(*heads).reshape(-1, *V.shape[1:]), (alpha, dropped)


def spread_gradient(
    matrix: Matrix, dY: Any, V: Any, kept: Any, rate: float, noise: Noise | None
) -> tuple[Any, Any]:
    """Return the gradients of `spread` by the scores and by V."""
    alpha, dropped = kept
    d_alpha = matrix.dots(dY, V) * _kept_edges(matrix, alpha, rate, noise)
    d_scores = matrix.softmax_gradient(alpha, d_alpha)
    heads = range(alpha.shape[1])
    dV = [matrix.transposed_times(_head(dY, h), _head(dropped, h)) for h in heads]
    return d_scores, dense.side_by_side(*dV).reshape(V.shape)


def _head(array: Any, head: int) -> Any:
    """Return one head's part, contiguous, as products want it."""
    part = array[:, head]
    return part if part.flags.c_contiguous else part.copy()


def _kept_edges(matrix: Matrix, alpha: Any, rate: float, noise: Noise | None) -> Any:
    """Return what dropout of the weights multiplies with, as `dense.keep` does."""
    if noise is None or rate == 0:
        return np.float32(1)
    xp = matrix.products.xp
    nonzeros, heads = xp.arange(alpha.shape[0]), alpha.shape[1]
    drawn = edge_uniform(nonzeros, heads, *noise.key, xp)
    return (drawn >= np.float32(rate)) * np.float32(1 / (1 - rate))


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
        **options: Any,
    ) -> None:
        super().__init__(n_in, n_out, **options)
        self.heads = checked_integer("heads", heads, error=ArgumentError)
        self.concat, self.slope = concat, float(slope)
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

    def _merged(self, Y: Any) -> Any:
        """Put the heads side by side, or take their mean."""
        return Y.reshape(Y.shape[0], -1) if self.concat else Y.mean(axis=1)

    def _parted(self, dZ: Any) -> Any:
        """Return the gradient of `_merged`, (n_nodes, heads, n_out)."""
        if self.concat:
            return dZ.reshape(-1, self.heads, self.n_out)
        return (dZ * np.float32(1 / self.heads))[:, None].repeat(self.heads, axis=1)

    def _edge_noise(self, noise: Noise | None) -> Noise | None:
        return None if noise is None else noise.at(noise.site + 1)

    def _by_head(self, X: Any) -> Any:
        return X.reshape(-1, self.heads, self.n_out)

    def _vectors(self, parameters: Parameters) -> Any:
        """Return the vectors as a matrix that `X W` is multiplied with: senders, then receivers."""
        vectors = parameters["sender"], parameters["receiver"]
        parts = [dense.block_diagonal(vector) for vector in vectors]
        return dense.side_by_side(*parts)

    def linear(
        self, matrix: Matrix, X: Any, parameters: Parameters, noise: Noise | None
    ) -> tuple[Any, Any]:
        """Score, weigh and add up the neighbors; see `Layer`."""
        V = weighted(X, parameters["W"])
        ends = dense.matmul(V, self._vectors(parameters))
        sender, receiver = ends[:, : self.heads], ends[:, self.heads :]
        before = receiver[matrix.rows] + sender[matrix.columns]
        scores, edge_noise = leaky(before, self.slope), self._edge_noise(noise)
        by_head = self._by_head(V)
        Y, kept = spread(matrix, scores, by_head, self.attention_dropout, edge_noise)
        return self._merged(Y), (X, V, before, kept)

    def linear_gradient(
        self, matrix: Matrix, dZ: Any, kept: Any, parameters: Parameters, noise: Noise | None
    ) -> tuple[Parameters, Any]:
        """Go back through the weights and the scores; see `Layer`."""
        X, V, before, kept = kept
        dY, edge_noise = self._parted(dZ), self._edge_noise(noise)
        rate, by_head = self.attention_dropout, self._by_head(V)
        d_scores, dV = spread_gradient(matrix, dY, by_head, kept, rate, edge_noise)
        d_scores *= leaky_slope(before, self.slope)
        ends = matrix.column_sums(d_scores), matrix.row_sums(d_scores)
        d_ends = dense.side_by_side(*ends)
        d_vectors = dense.matmul(V, d_ends, transposed="A")
        found = [dense.diagonal_blocks(d_vectors[:, : self.heads], self.heads)]
        found.append(dense.diagonal_blocks(d_vectors[:, self.heads :], self.heads))
        dV = dV.reshape(V.shape)
        dV = dense.matmul(d_ends, self._vectors(parameters), transposed="B", onto=dV)
        gradients = {"W": weight_gradient(X, dV), "sender": found[0], "receiver": found[1]}
        dX = None
        if self.needs_input_gradient:
            dX = dense.matmul(dV, parameters["W"], transposed="B")
        return gradients, dX


class GATv2(GAT):
    """Graph attention whose ranking depends on the receiver (Brody et al., ICLR 2022).

    `score = a . LeakyReLU(X_i Wr + X_j W)`; the columns of `X W` are what is added up.

    Parameters
    ----------
    n_in, n_out, activation, dropout, bias, heads, concat, attention_dropout, slope
        As of `GAT`.
    """

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of W, of senders, Wr, of receivers, the vector a of a head, and b."""
        weights = {"W": (self.n_in, self.heads_width), "Wr": (self.n_in, self.heads_width)}
        return {**weights, "a": (self.heads, self.n_out), **self._bias()}

    def linear(
        self, matrix: Matrix, X: Any, parameters: Parameters, noise: Noise | None
    ) -> tuple[Any, Any]:
        """Score, weigh and add up the neighbors; see `Layer`."""
        V, R = (self._by_head(weighted(X, parameters[name])) for name in ("W", "Wr"))
        before = R[matrix.rows] + V[matrix.columns]
        scores = (leaky(before, self.slope) * parameters["a"]).sum(axis=2)
        rate, edge_noise = self.attention_dropout, self._edge_noise(noise)
        Y, kept = spread(matrix, scores, V, rate, edge_noise)
        return self._merged(Y), (X, V, before, kept)

    def linear_gradient(
        self, matrix: Matrix, dZ: Any, kept: Any, parameters: Parameters, noise: Noise | None
    ) -> tuple[Parameters, Any]:
        """Go back through the weights and the scores; see `Layer`."""
        X, V, before, kept = kept
        dY, edge_noise = self._parted(dZ), self._edge_noise(noise)
        d_scores, dV = spread_gradient(matrix, dY, V, kept, self.attention_dropout, edge_noise)
        d_scores = d_scores[:, :, None]
        da = (leaky(before, self.slope) * d_scores).sum(axis=0)
        d_before = d_scores * parameters["a"] * leaky_slope(before, self.slope)
        d_before = d_before.reshape(-1, self.heads_width)
        dR, dV = matrix.row_sums(d_before), dV.reshape(-1, self.heads_width)
        dV = dV + matrix.column_sums(d_before)
        gradients = {"W": weight_gradient(X, dV), "Wr": weight_gradient(X, dR), "a": da}
        dX = None
        if self.needs_input_gradient:
            dX = dense.matmul(dV, parameters["W"], transposed="B")
            dX = dense.matmul(dR, parameters["Wr"], transposed="B", onto=dX)
        return gradients, dX


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
    activation, dropout
        As of `Layer`.
    """

    matrix_of = staticmethod(attention_matrix)

    def __init__(
        self, n_in: int, *, beta: float = 1.0, train_beta: bool = True, **options: Any
    ) -> None:
        super().__init__(n_in, n_in, bias=False, **options)
        self.beta, self.train_beta = float(beta), train_beta

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of beta, if it is a parameter."""
        return {"beta": (1,)} if self.train_beta else {}

    def linear(
        self, matrix: Matrix, X: Any, parameters: Parameters, noise: Noise | None
    ) -> tuple[Any, Any]:
        """Score, weigh and add up the neighbors; see `Layer`."""
        norms = matrix.products.xp.sqrt((X * X).sum(axis=1, keepdims=True))
        norms = matrix.products.xp.maximum(norms, np.float32(NORM_EPS))
        unit, V = (X / norms)[:, None], X[:, None]
        cosines = matrix.dots(unit, unit)
        beta = parameters["beta"] if self.train_beta else np.float32(self.beta)
        Y, kept = spread(matrix, cosines * beta, V, 0, None)
        return Y[:, 0], (X, norms, unit, cosines, kept)

    def linear_gradient(
        self, matrix: Matrix, dZ: Any, kept: Any, parameters: Parameters, noise: Noise | None
    ) -> tuple[Parameters, Any]:
        """Go back through the weights and the cosines; see `Layer`."""
        X, norms, unit, cosines, kept = kept
        d_scores, dV = spread_gradient(matrix, dZ[:, None], X[:, None], kept, 0, None)
        beta, gradients = np.float32(self.beta), {}
        if self.train_beta:
            beta = parameters["beta"]
            gradients["beta"] = (d_scores * cosines).sum().reshape(1)
        if not self.needs_input_gradient:
            return gradients, None
        d_cosines, unit = _head(d_scores * beta, 0), unit[:, 0]
        d_unit = matrix.times(unit, d_cosines) + matrix.transposed_times(unit, d_cosines)
        # A cosine does not see lengths: what points along a row of X is taken out.
        along = (d_unit * unit).sum(axis=1, keepdims=True)
        return gradients, dV[:, 0] + (d_unit - unit * along) / norms


#: Layers of attention by name, for `layers.train`.
SCORES = {"gat": GAT, "gatv2": GATv2}


def attention_layer(score: str, *arguments: Any, **options: Any) -> GAT:
    """Make a layer by the name of its score."""
    return SCORES[checked_choice("score", score, SCORES)](*arguments, **options)
