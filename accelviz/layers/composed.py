"""GAT's attention as separate operations: scores, softmax, and one sparse product per head.

The results are those of the fused operation `gat`, for the same operands. Each step has a strategy
of its own, and its result, with one row per edge, can be inspected. The fused operation never
writes arrays of that size to memory.
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


def forward(matrix: Matrix, operands: Operands) -> tuple[Any, Any]:
    """Return the result of an attention, and the arrays that `backward` needs.

    Parameters
    ----------
    matrix : Matrix
    operands : mapping of str to array or number
        Operands of `gat`.

    Returns
    -------
    Y : array of float32, shape (n_nodes, heads, n_cols)
    saved : tuple
        Slopes of the LeakyReLU, the weights alpha, and alpha after dropout, (nnz, heads).
    """
    raw = operands["receiver"][matrix.rows] + operands["sender"][matrix.columns]
    slope = np.float32(operands["slope"])
    slopes = (raw > 0) * (np.float32(1) - slope) + slope
    alpha = matrix.run("edge_softmax", scores=raw * slopes)["alpha"]
    dropped = alpha * _dropout_mask(matrix, alpha, operands)
    return _by_head(matrix.times, operands["V"], dropped), (slopes, alpha, dropped)


def backward(matrix: Matrix, operands: Operands, saved: Any, dY: Any) -> dict[str, Any]:
    """Return the gradient with respect to each operand, named as in "dV" or "d_receiver"."""
    slopes, alpha, dropped = saved
    d_alpha = matrix.dots(dY, operands["V"]) * _dropout_mask(matrix, alpha, operands)
    gradients = matrix.run("edge_softmax_gradient", alpha=alpha, d_alpha=d_alpha)
    d_raw = gradients["d_scores"] * slopes
    dV = _by_head(matrix.transposed_times, dY, dropped)
    # A matrix times ones has the sums of its rows.
    ones = matrix.products.xp.ones((*dV.shape[:2], 1), np.float32)
    d_receiver, d_sender = (
        _by_head(multiply, ones, d_raw)[:, :, 0]
        for multiply in (matrix.times, matrix.transposed_times)
    )
    return {"d_receiver": d_receiver, "d_sender": d_sender, "dV": dV}


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
