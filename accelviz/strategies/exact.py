"""Helpers for an operation's `reference` (its float64 result) and `replay` (a plan on the CPU)."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from accelviz.graph import Pattern
from accelviz.plans import Plan
from accelviz.plans.operation import EPS32, Arrays
from accelviz.plans.replay import rowwise, usable_cores

#: Products, or nonzeros, of a thread's piece of work.
_PIECE_PRODUCTS = _PIECE_NONZEROS = 1 << 20


def by_rows(pattern: Pattern, compute: Callable[[Pattern, slice, slice], None]) -> None:
    """Divide a matrix by rows and call `compute(piece, rows, nonzeros)` for each, in threads."""
    pointers = pattern.row_pointers
    n_pieces = max(1, pattern.nnz // _PIECE_NONZEROS)
    bounds = np.searchsorted(pointers, np.linspace(0, pattern.nnz, n_pieces + 1)).tolist()
    bounds[0], bounds[-1] = 0, pattern.n_rows

    def compute_piece(rows: tuple[int, int]) -> None:
        first, last = rows
        nonzeros = slice(int(pointers[first]), int(pointers[last]))
        columns, shape = pattern.column_indices[nonzeros], (last - first, pattern.shape[1])
        piece = Pattern(pointers[first : last + 1] - pointers[first], columns, shape, pattern.name)
        compute(piece, slice(first, last), nonzeros)

    with ThreadPoolExecutor(usable_cores()) as threads:
        list(threads.map(compute_piece, pairwise(bounds)))


def product(piece: Pattern, values: Any, X: Any) -> Any:
    """Return a sparse matrix times X. SciPy releases the GIL, so threads run in parallel."""
    arrays = values, piece.column_indices, piece.row_pointers
    return sparse.csr_array(arrays, shape=piece.shape) @ X


def edge_dots(pattern: Pattern, U: Any, V: Any) -> tuple[Any, Any]:
    """Return U[i] . V[j] in float64 for each nonzero (i, j) and head, with an error bound.

    Parameters
    ----------
    pattern : Pattern
    U, V : arrays of float64, shapes (n_rows, heads, n_cols) and (n_columns, heads, n_cols)

    Returns
    -------
    dots, bound : arrays of float64, shape (nnz, heads)
        The error of a float32 sum of d products is at most d * eps32 * sum |u v|, as in `spmm`.
    """
    dots, bound = np.empty((2, pattern.nnz, U.shape[1]))
    row = np.repeat(np.arange(pattern.n_rows), pattern.degrees)
    length = max(1, _PIECE_PRODUCTS // max(1, U.shape[1] * U.shape[2]))

    def multiply(first: int) -> None:
        piece = slice(first, first + length)
        u, v = U[row[piece]], V[pattern.column_indices[piece]]
        dots[piece] = np.einsum("khc,khc->kh", u, v)
        bound[piece] = np.einsum("khc,khc->kh", np.abs(u), np.abs(v))

    with ThreadPoolExecutor(usable_cores()) as threads:
        list(threads.map(multiply, range(0, pattern.nnz, length)))
    return dots, U.shape[2] * EPS32 * bound


def replay_rows(
    function: Callable[..., None],
    names: tuple[str, ...],
    plan: Plan,
    *first: Any,
    **options: Any,
) -> Callable[[Arrays, Arrays], None]:
    """Return a replay that calls `function(first_row, last_row, walk, *first, *operands)`.

    `names` are the operands' names; outputs that the plan zeroes are set to 0 first. See `rowwise`
    for the options.
    """
    zero_outputs = plan.zero_outputs

    def operands(inputs: Arrays, outputs: Arrays) -> tuple[tuple[Any, ...], int]:
        for name in zero_outputs:
            outputs[name][...] = 0
        arrays = [{**inputs, **outputs}[name] for name in names]
        return (*first, *arrays), max(math.prod(array.shape[1:]) for array in arrays)

    return rowwise(plan, function, operands, **options)
