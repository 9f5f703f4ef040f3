"""Exact dot products at the nonzeros of a matrix, for the references of several operations."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from accelviz.graph import Pattern
from accelviz.plans.operation import EPS32

#: Products that one thread works out at a time.
_PIECE_PRODUCTS = 1 << 20


def edge_dots(pattern: Pattern, U: Any, V: Any) -> tuple[Any, Any]:
    """Multiply in float64 the row of U and the row of V of each nonzero, head by head.

    Parameters
    ----------
    pattern : Pattern
    U, V : arrays of float64, shapes (n_rows, heads, n_cols) and (n_columns, heads, n_cols)

    Returns
    -------
    dots, bound : arrays of float64, shape (nnz, heads)
        A float32 sum of d products is off by at most d * eps32 * sum |u v|, as in `spmm`.
    """
    dots, bound = np.empty((2, pattern.nnz, U.shape[1]))
    row = np.repeat(np.arange(pattern.n_rows), pattern.degrees)
    length = max(1, _PIECE_PRODUCTS // max(1, U.shape[1] * U.shape[2]))

    def multiply(first: int) -> None:
        piece = slice(first, first + length)
        u, v = U[row[piece]], V[pattern.column_indices[piece]]
        dots[piece] = np.einsum("khc,khc->kh", u, v)
        bound[piece] = np.einsum("khc,khc->kh", np.abs(u), np.abs(v))

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        list(threads.map(multiply, range(0, pattern.nnz, length)))
    return dots, U.shape[2] * EPS32 * bound
