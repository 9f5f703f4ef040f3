"""The largest of the neighbors' features, column by column, and its gradient.

Where several neighbors have the largest, each gets an equal part of the gradient, as in PyTorch.
After a ReLU that is common: many are 0. The gradient is gathered along the transposed matrix, so
that nothing is added by atomics and the result has the same bits each time.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from accelviz.arrays import Floats, Ints, Longs
from accelviz.devices.base import is_device_array
from accelviz.graph import Graph
from accelviz.layers.products import Matrix


def row_max(matrix: Matrix, X: Any) -> tuple[Any, Any]:
    """Run `largest_neighbors` on a matrix, whose weights do not count, timed."""
    with matrix.products.clock("row_max"):
        return largest_neighbors(matrix.graph, X)


def row_max_gradient(matrix: Matrix, X: Any, Y: Any, dY: Any) -> Any:
    """Run `largest_neighbors_gradient` on a matrix, timed."""
    with matrix.products.clock("row_max_gradient"):
        return largest_neighbors_gradient(matrix.graph, X, Y, dY)


def largest_neighbors(graph: Graph, X: Any) -> tuple[Any, Any]:
    """Return the largest feature of each row's neighbors, and one over how many have it.

    Parameters
    ----------
    graph : Graph
    X : array of float32, shape (n_columns, n_cols)

    Returns
    -------
    Y, share : arrays of float32, shape (n_rows, n_cols)
        0 and 0 for a row without a nonzero.
    """
    if is_device_array(X):
        from accelviz.devices.cuda import dense

        return dense.row_max(graph, X)
    Y, share = np.zeros((2, graph.n_rows, X.shape[1]), np.float32)
    _row_max(graph.row_pointers, graph.column_indices, X, Y, share)
    return Y, share


def largest_neighbors_gradient(graph: Graph, X: Any, Y: Any, dY: Any) -> Any:
    """Return the gradient by X, (n_columns, n_cols); `dY` is already multiplied by the share."""
    turned = graph.transposed().graph
    if is_device_array(X):
        from accelviz.devices.cuda import dense

        return dense.row_max_gradient(turned, X, Y, dY)
    dX = np.zeros_like(X)
    _row_max_gradient(turned.row_pointers, turned.column_indices, X, Y, dY, dX)
    return dX


@numba.njit(cache=True, nogil=True)
def _row_max(pointers: Longs, columns: Ints, X: Floats, Y: Floats, share: Floats) -> None:
    for row in range(pointers.size - 1):
        if pointers[row] == pointers[row + 1]:
            continue
        for c in range(X.shape[1]):
            largest, count = X[columns[pointers[row]], c], 0
            for k in range(pointers[row], pointers[row + 1]):
                x = X[columns[k], c]
                if x > largest:
                    largest, count = x, 0
                count += x == largest
            Y[row, c], share[row, c] = largest, np.float32(1) / np.float32(count)


@numba.njit(cache=True, nogil=True)
def _row_max_gradient(
    pointers: Longs, receivers: Ints, X: Floats, Y: Floats, dY: Floats, dX: Floats
) -> None:
    for sender in range(pointers.size - 1):
        for k in range(pointers[sender], pointers[sender + 1]):
            row = receivers[k]
            for c in range(X.shape[1]):
                if X[sender, c] == Y[row, c]:
                    dX[sender, c] += dY[row, c]
