"""Attention as separate operations: scores, softmax, and one sparse product per head.

The results are those of the fused operations `gat`, `gatv2` and `cosine`, for the same operands.
Each step has a strategy of its own, and its result, with one row per edge, can be inspected. The
fused operations never write arrays of that size to memory.
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
    """Return the result of an attention, and the arrays that `backward` needs.

    Parameters
    ----------
    matrix : Matrix
    score : {"gat", "gatv2", "cosine"}
    operands : mapping of str to array or number
        Operands of the fused operation with the name `score`.

    Returns
    -------
    Y : array of float32, shape (n_nodes, heads, n_cols)
    saved : tuple
        Raw scores (`_scores`), the weights alpha, and alpha after dropout.
    """
    raw, scores = _scores(matrix, score, operands)
    alpha = matrix.run("edge_softmax", scores=scores)["alpha"]
    dropped = alpha * _dropout_mask(matrix, alpha, operands)
    return _by_head(matrix.times, operands["V"], dropped), (raw, alpha, dropped)


def backward(matrix: Matrix, score: str, operands: Operands, saved: Any, dY: Any) -> dict[str, Any]:
    """Return the gradient with respect to each operand, named as in "dV" or "d_receiver"."""
    raw, alpha, dropped = saved
    d_alpha = matrix.dots(dY, operands["V"]) * _dropout_mask(matrix, alpha, operands)
    gradients = matrix.run("edge_softmax_gradient", alpha=alpha, d_alpha=d_alpha)
    dV = _by_head(matrix.transposed_times, dY, dropped)
    return _scores_gradient(matrix, score, operands, raw, gradients["d_scores"], dV)


def _scores(matrix: Matrix, score: str, operands: Operands) -> tuple[Any, Any]:
    """Return raw scores and scores, (nnz, heads).

    Raw scores precede the LeakyReLU, (nnz, heads, n_cols) for "gatv2", or the scaling of "cosine".
    """
    if score == "cosine":
        raw = matrix.dots(operands["Q"], operands["V"])
        return raw, raw * operands["scale"][matrix.columns]
    if score == "gat":
        raw = operands["receiver"][matrix.rows] + operands["sender"][matrix.columns]
        return raw, leaky(raw, operands["slope"])
    raw = operands["R"][matrix.rows] + operands["V"][matrix.columns]
    return raw, (leaky(raw, operands["slope"]) * operands["a"]).sum(axis=2)


def _scores_gradient(
    matrix: Matrix, score: str, operands: Operands, raw: Any, d_scores: Any, dV: Any
) -> dict[str, Any]:
    """Return the gradients of `_scores`; that with respect to V is added to `dV`."""
    if score == "cosine":
        Q, V = operands["Q"], operands["V"]
        d_raw = d_scores * operands["scale"][matrix.columns]
        dQ = _by_head(matrix.times, V, d_raw)
        dV = dV + _by_head(matrix.transposed_times, Q, d_raw)
        return {"dQ": dQ, "dV": dV, "d_scale": matrix.column_sums(d_scores * raw)}
    slopes = leaky_slope(raw, operands["slope"])
    if score == "gat":
        d_raw = d_scores * slopes
        d_receiver, d_sender = matrix.row_sums(d_raw), matrix.column_sums(d_raw)
        return {"d_receiver": d_receiver, "d_sender": d_sender, "dV": dV}
    d_scores = d_scores[:, :, None]
    da = (leaky(raw, operands["slope"]) * d_scores).sum(axis=0)
    d_raw = (d_scores * operands["a"] * slopes).reshape(len(raw), -1)
    dR = matrix.row_sums(d_raw).reshape(-1, *dV.shape[1:])
    return {"dR": dR, "da": da, "dV": dV + matrix.column_sums(d_raw).reshape(dV.shape)}


def _by_head(multiply: Callable[[Any, Any], Any], X: Any, weights: Any) -> Any:
    """Multiply head h of X, (n, heads, n_cols), by the matrix with the values `weights[:, h]`."""
    heads = range(weights.shape[1])
    products = [multiply(_head(X, head), _head(weights, head)) for head in heads]
    return side_by_side(*products).reshape(-1, *X.shape[1:])


def _head(array: Any, head: int) -> Any:
    """Return `array[:, head]`, contiguous."""
    part = array[:, head]
    return part if part.flags.c_contiguous else part.copy()


def _dropout_mask(matrix: Matrix, alpha: Any, operands: Operands) -> Any:
    """Return the factors of dropout: 0 for a dropped weight, else 1 / (1 - rate)."""
    rate = operands.get("rate", 0.0)
    if rate == 0:
        return np.float32(1)
    xp, (nnz, heads) = matrix.products.xp, alpha.shape
    drawn = edge_uniform_of(xp.arange(nnz), heads, operands["random"], xp)
    return (drawn >= np.float32(rate)) * np.float32(1 / (1 - rate))
