"""Attention as several operations, in place of the fused one: scores, softmax, a product a head.

It computes what the fused operations do, `gat`, `gatv2` and `cosine`, of the same operands by name.
Any strategy can be each of its steps, and a learner can look between them; the fused operations
write nothing of the size of the edges.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from accelviz.layers.dense import side_by_side
from accelviz.layers.products import Matrix
from accelviz.random import edge_uniform_of

Operands = Mapping[str, Any]


def leaky(X: Any, slope: float) -> Any:
    """Return `X` where it is positive, else `slope * X`."""
    return X * leaky_slope(X, slope)


def leaky_slope(X: Any, slope: float) -> Any:
    """Return the derivative of `leaky`: 1 or `slope`, float32."""
    return (X > 0) * np.float32(1 - slope) + np.float32(slope)


def forward(matrix: Matrix, score: str, operands: Operands) -> tuple[Any, Any]:
    """Turn scores into weights of the neighbors and add the neighbors up.

    Parameters
    ----------
    matrix : Matrix
    score : {"gat", "gatv2", "cosine"}
    operands : mapping of str to array or number
        As of the operation of that name.

    Returns
    -------
    Y : array of float32, shape (n_nodes, heads, n_cols)
    saved : tuple
        For `backward`: the scores before their LeakyReLU, the weights, and what dropout left of
        them.
    """
    before, scores = _scores(matrix, score, operands)
    alpha = matrix.run("edge_softmax", scores=scores)["alpha"]
    dropped = alpha * _kept_edges(matrix, alpha, operands)
    return _by_head(matrix.times, operands["V"], dropped), (before, alpha, dropped)


def backward(matrix: Matrix, score: str, operands: Operands, saved: Any, dY: Any) -> dict[str, Any]:
    """Return the gradient by each operand, "d_" before its name or "d" before a single letter."""
    before, alpha, dropped = saved
    d_alpha = matrix.dots(dY, operands["V"]) * _kept_edges(matrix, alpha, operands)
    gradients = matrix.run("edge_softmax_gradient", alpha=alpha, d_alpha=d_alpha)
    dV = _by_head(matrix.transposed_times, dY, dropped)
    return _scores_gradient(matrix, score, operands, before, gradients["d_scores"], dV)


def _scores(matrix: Matrix, score: str, operands: Operands) -> tuple[Any, Any]:
    """Return what a score's slope depends on, and the scores, (nnz, heads)."""
    if score == "cosine":
        before = matrix.dots(operands["Q"], operands["V"])
        return before, before * operands["scale"][matrix.columns]
    if score == "gat":
        before = operands["receiver"][matrix.rows] + operands["sender"][matrix.columns]
        return before, leaky(before, operands["slope"])
    before = operands["R"][matrix.rows] + operands["V"][matrix.columns]
    return before, (leaky(before, operands["slope"]) * operands["a"]).sum(axis=2)


def _scores_gradient(
    matrix: Matrix, score: str, operands: Operands, before: Any, d_scores: Any, dV: Any
) -> dict[str, Any]:
    """Return the gradients by the operands of the scores, and by V."""
    if score == "cosine":
        Q, V = operands["Q"], operands["V"]
        d_before = d_scores * operands["scale"][matrix.columns]
        dQ = _by_head(matrix.times, V, d_before)
        dV = dV + _by_head(matrix.transposed_times, Q, d_before)
        return {"dQ": dQ, "dV": dV, "d_scale": matrix.column_sums(d_scores * before)}
    slopes = leaky_slope(before, operands["slope"])
    if score == "gat":
        d_before = d_scores * slopes
        sums = matrix.row_sums(d_before), matrix.column_sums(d_before)
        return {"d_receiver": sums[0], "d_sender": sums[1], "dV": dV}
    d_scores = d_scores[:, :, None]
    da = (leaky(before, operands["slope"]) * d_scores).sum(axis=0)
    d_before = (d_scores * operands["a"] * slopes).reshape(len(before), -1)
    dR = matrix.row_sums(d_before).reshape(-1, *dV.shape[1:])
    return {"dR": dR, "da": da, "dV": dV + matrix.column_sums(d_before).reshape(dV.shape)}


def _by_head(multiply: Callable[[Any, Any], Any], X: Any, weights: Any) -> Any:
    """Multiply each head of X, (n, heads, n_cols), by the matrix with its weights, (nnz, heads)."""
    heads = range(weights.shape[1])
    products = [multiply(_head(X, head), _head(weights, head)) for head in heads]
    return side_by_side(*products).reshape(-1, *X.shape[1:])


def _head(array: Any, head: int) -> Any:
    """Return one head's part, contiguous, as products want it."""
    part = array[:, head]
    return part if part.flags.c_contiguous else part.copy()


def _kept_edges(matrix: Matrix, alpha: Any, operands: Operands) -> Any:
    """Return what dropout of the weights multiplies with: 0, or 1 / (1 - rate)."""
    rate = operands.get("rate", 0.0)
    if rate == 0:
        return np.float32(1)
    xp, (nnz, heads) = matrix.products.xp, alpha.shape
    drawn = edge_uniform_of(xp.arange(nnz), heads, operands["random"], xp)
    return (drawn >= np.float32(rate)) * np.float32(1 / (1 - rate))
