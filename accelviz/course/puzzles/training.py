"""Puzzles of the fifth notebook: what training adds, a gradient for each edge and a softmax."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from accelviz.course.puzzles.puzzle import Case, Par, Puzzle, Rows, signed, unwritten

_DEGREES = ([0, 3, 1, 6, 2], [7], [0, 0, 2], [0, 40, 1, 0, 33, 2], [5] * 9)


def edge_gradient(rng: np.random.Generator) -> Iterator[Case]:
    """Give a nonzero to each warp: the dot product of two rows; two warps a block."""
    for degrees, n_cols in zip(_DEGREES, (40, 1, 32, 31, 70), strict=True):
        A, n = Rows.of(rng, degrees, 8 if max(degrees) < 8 else 60), len(degrees)
        dY, X = signed(rng, n, n_cols, most=99), signed(rng, A.width, n_cols, most=99)
        nnz = len(A.values)
        arguments = {
            "rows": A.row_of,
            "columns": A.columns,
            "dY": dY,
            "X": X,
            "d_values": unwritten(nnz),
            "nnz": nnz,
            "n_cols": n_cols,
        }
        expected = (dY[A.row_of].astype(float) * X[A.columns]).sum(axis=1).astype(np.float32)
        yield Case(-(-nnz // 2), 64, arguments, {"d_values": expected})


def largest(rng: np.random.Generator) -> Iterator[Case]:
    """Give a row to each warp: its scores minus the largest of them; two warps a block."""
    for degrees in _DEGREES:
        A, n = Rows.of(rng, degrees, 60), len(degrees)
        scores = 50 * A.values - 6000  # all far below zero: neither 0 nor -999 is the largest
        for begin, end in pairwise(A.pointers):
            if end - begin > 32:  # and the largest of a long row is behind its first 32
                row = scores[begin:end]
                row[:] = np.roll(row, 32 - row.argmax())
        arguments = {
            "row_pointers": A.pointers,
            "scores": scores,
            "shifted": unwritten(len(scores)),
            "n_rows": n,
        }
        tops = [scores[A.row_of == row].max(initial=-np.inf) for row in range(n)]
        expected = (scores - np.array(tops)[A.row_of]).astype(np.float32)
        yield Case(-(-n // 2), 64, arguments, {"shifted": expected})


PUZZLES = {
    "edge_gradient": Puzzle(edge_gradient, Par(156, 84), par_is_the_task=True),
    "largest": Puzzle(largest, Par(25, 22), par_is_the_task=True),
}
