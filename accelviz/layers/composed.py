"""Attention of GAT and AGNN as separate operations: scores, softmax, a sparse product per head.

The results are those of the fused operations `gat` and `cosine`, for the same operands. Each step
has a strategy of its own, and its result, with one row per edge, can be inspected. The fused
operations never write arrays of that size to memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from accelviz.layers.dense import side_by_side
from accelviz.layers.products import Matrix
from accelviz.random import edge_uniform_of

Operands = Mapping[str, Any]
#: Operations of `forward` and `backward`.
OPERATIONS = ("edge_softmax", "spmm", "sddmm", "edge_softmax_gradient")


def forward(matrix: Matrix, score: str, operands: Operands) -> tuple[Any, Any]:
    """Return the result of an attention, and the arrays that `backward` needs.

    Parameters
    ----------
    matrix : Matrix
    score : {"gat", "cosine"}
    operands : mapping of str to array or number
        Operands of the operation `score`.

    Returns
    -------
    Y : array of float32, shape (n_nodes, heads, n_cols)
    saved : tuple
        An array of the scores' gradient, the weights alpha, and alpha after dropout, (nnz, heads).
    """
    scores, saved = _SCORES[score][0](matrix, operands)
    alpha = matrix.run("edge_softmax", scores=scores)["alpha"]
    dropped = alpha * _dropout_mask(matrix, alpha, operands)
    return _by_head(matrix.times, operands["V"], dropped), (saved, alpha, dropped)


def backward(matrix: Matrix, score: str, operands: Operands, saved: Any, dY: Any) -> dict[str, Any]:
    """Return the gradient with respect to each operand, named as in "dV" or "d_receiver"."""
    of_scores, alpha, dropped = saved
    d_alpha = matrix.dots(dY, operands["V"]) * _dropout_mask(matrix, alpha, operands)
    d_scores = matrix.run("edge_softmax_gradient", alpha=alpha, d_alpha=d_alpha)["d_scores"]
    dV = _by_head(matrix.transposed_times, dY, dropped)
    return _SCORES[score][1](matrix, operands, of_scores, d_scores, dV)


def _gat_scores(matrix: Matrix, operands: Operands) -> tuple[Any, Any]:
    """Return the scores, and the slopes of their LeakyReLU."""
    raw = operands["receiver"][matrix.rows] + operands["sender"][matrix.columns]
    slope = np.float32(operands["slope"])
    slopes = (raw > 0) * (np.float32(1) - slope) + slope
    return raw * slopes, slopes


def _gat_gradients(
    matrix: Matrix, operands: Operands, slopes: Any, d_scores: Any, dV: Any
) -> dict[str, Any]:
    d_raw = d_scores * slopes
    d_receiver, d_sender = (
        _sums(matrix, multiply, d_raw) for multiply in (matrix.times, matrix.transposed_times)
    )
    return {"d_receiver": d_receiver, "d_sender": d_sender, "dV": dV}


def _cosine_scores(matrix: Matrix, operands: Operands) -> tuple[Any, Any]:
    """Return the scores, and the dot products of Q and V."""
    dots = matrix.dots(operands["Q"], operands["V"])
    return dots * operands["scale"][matrix.columns], dots


def _cosine_gradients(
    matrix: Matrix, operands: Operands, dots: Any, d_scores: Any, dV: Any
) -> dict[str, Any]:
    d_dots = d_scores * operands["scale"][matrix.columns]
    return {
        "dQ": _by_head(matrix.times, operands["V"], d_dots),
        "dV": dV + _by_head(matrix.transposed_times, operands["Q"], d_dots),
        "d_scale": _sums(matrix, matrix.transposed_times, d_scores * dots),
    }


#: Scores of an attention, and the gradients of its operands.
_SCORES: Mapping[str, tuple[Callable[..., tuple[Any, Any]], Callable[..., dict[str, Any]]]] = {
    "gat": (_gat_scores, _gat_gradients),
    "cosine": (_cosine_scores, _cosine_gradients),
}


def _sums(matrix: Matrix, multiply: Callable[[Any, Any], Any], values: Any) -> Any:
    """Return the sums of values, (nnz, heads), over rows or columns: the matrix times ones."""
    ones = matrix.products.xp.ones((matrix.shape[0], values.shape[1], 1), np.float32)
    return _by_head(multiply, ones, values)[:, :, 0]


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
