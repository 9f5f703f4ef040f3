"""What operations share: references in pieces of rows, exact dot products, replays by name."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from accelviz.graph import Pattern
from accelviz.plans import Plan
from accelviz.plans.operation import EPS32, Arrays
from accelviz.plans.replay import rowwise

#: Products, and nonzeros, that one thread works out at a time.
_PIECE_PRODUCTS = _PIECE_NONZEROS = 1 << 20


def by_rows(pattern: Pattern, work: Callable[[Pattern, slice, slice], None]) -> None:
    """Call `work(piece, rows, nonzeros)` for runs of rows that are all rows, in threads."""
    pointers = pattern.row_pointers
    n_pieces = max(1, pattern.nnz // _PIECE_NONZEROS)
    cuts = np.searchsorted(pointers, np.linspace(0, pattern.nnz, n_pieces + 1)).tolist()
    cuts[0], cuts[-1] = 0, pattern.n_rows

    def cut(ends: tuple[int, int]) -> None:
        first, last = ends
        nonzeros = slice(int(pointers[first]), int(pointers[last]))
        columns, shape = pattern.column_indices[nonzeros], (last - first, pattern.shape[1])
        piece = Pattern(pointers[first : last + 1] - pointers[first], columns, shape, pattern.name)
        work(piece, slice(first, last), nonzeros)

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        list(threads.map(cut, pairwise(cuts)))


def product(piece: Pattern, values: Any, X: Any) -> Any:
    """Multiply a matrix by SciPy, which lets other threads run meanwhile."""
    arrays = values, piece.column_indices, piece.row_pointers
    return sparse.csr_array(arrays, shape=piece.shape) @ X


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


def replay_rows(
    function: Callable[..., None], names: tuple[str, ...], plan: Plan, *first: Any
) -> Callable[[Arrays, Arrays], None]:
    """Return a replay by rows whose function takes `first` and operands by name.

    Outputs that the plan zeroes are zero before; see `Operation.replay`.
    """
    zero_outputs = plan.zero_outputs

    def operands(inputs: Arrays, outputs: Arrays) -> tuple[tuple[Any, ...], int]:
        for name in zero_outputs:
            outputs[name][...] = 0
        arrays = [{**inputs, **outputs}[name] for name in names]
        return (*first, *arrays), max(math.prod(array.shape[1:]) for array in arrays)

    return rowwise(plan, function, operands)
