"""Puzzles of the last notebooks: tensor cores, steps of training a GNN, and products of bits.

A docstring describes the kernel that the puzzle asks for; the function yields its cases.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from accelviz.course.puzzles.puzzle import Case, Par, Puzzle, matrix, signed, unwritten
from accelviz.plans.arithmetic import to_tf32

_DEGREES = ([0, 3, 1, 6, 2], [7], [0, 0, 2], [0, 40, 1, 0, 33, 2], [5] * 9)


def fragment(rng: np.random.Generator) -> Iterator[Case]:
    """Multiply matrices of 16 x 8 and 8 x 8, one pair per block, one warp per block."""
    for grid, limits in ((1, (999, 999)), (2, (4095, 499)), (3, (499, 4095))):
        # TF32 represents whole numbers up to 2^11; larger odd ones are rounded. Sums of products
        # are below 2^24 and exact.
        A, B = signed(rng, grid, 16, 8, most=limits[0]), signed(rng, grid, 8, 8, most=limits[1])
        C = (to_tf32(A).astype(np.float64) @ to_tf32(B)).astype(np.float32)
        arrays = {"A": A.ravel(), "B": B.ravel(), "C": unwritten(C.size)}
        yield Case(grid, 32, arrays, {"C": C.ravel()})


def edge_gradient(rng: np.random.Generator) -> Iterator[Case]:
    """Compute the dot product of two rows for each nonzero, one warp each, two warps per block."""
    for degrees, n_cols in zip(_DEGREES, (40, 1, 32, 31, 70), strict=True):
        A, n = matrix(rng, degrees, 8 if max(degrees) < 8 else 60), len(degrees)
        dY, X = signed(rng, n, n_cols, most=99), signed(rng, A.shape[1], n_cols, most=99)
        nnz = len(A.data)
        arrays = {"rows": A.tocoo().row, "columns": A.indices, "dY": dY, "X": X}
        arguments = {**arrays, "d_values": unwritten(nnz), "nnz": nnz, "n_cols": n_cols}
        expected = (dY[A.tocoo().row].astype(float) * X[A.indices]).sum(axis=1).astype(np.float32)
        yield Case(-(-nnz // 2), 64, arguments, {"d_values": expected})


def largest(rng: np.random.Generator) -> Iterator[Case]:
    """Subtract from the scores of each row the largest, one warp per row, two warps per block."""
    for degrees, offset, unit in zip(
        _DEGREES, (-6000, 0, -6000, -6000, -7000), (1, 1, 2.0**114, 1, 2.0**20), strict=True
    ):
        A, n = matrix(rng, degrees, 60), len(degrees)
        # Negative, in some cases far below: an initial maximum of 0, -999 or -1e37 is wrong.
        scores = ((50 * A.data + offset) * unit).astype(np.float32)
        for begin, end in pairwise(A.indptr):
            if end - begin > 32:  # move the largest of a long row behind its first 32
                row = scores[begin:end]
                row[:] = np.roll(row, 32 - row.argmax())
        arrays = {"row_pointers": A.indptr, "scores": scores}
        arguments = {**arrays, "shifted": unwritten(len(scores)), "n_rows": n}
        maxima = [scores[A.tocoo().row == row].max(initial=-np.inf) for row in range(n)]
        expected = (scores - np.array(maxima)[A.tocoo().row]).astype(np.float32)
        yield Case(-(-n // 2), 64, arguments, {"shifted": expected})


def popc(rng: np.random.Generator) -> Iterator[Case]:
    """Multiply a row of single bits with 32 columns of `planes` bits, one row per block."""
    for grid, words, planes in ((2, 2, 3), (1, 1, 1), (3, 5, 2), (2, 3, 8)):
        a = rng.integers(0, 2, (grid, words * 32))
        x = rng.integers(0, 1 << planes, (words * 32, 32))
        weights = np.uint64(1) << np.arange(32, dtype=np.uint64)
        A = (a.reshape(grid, words, 32) @ weights).astype(np.uint32)
        bits = (x >> np.arange(planes)[:, None, None]).reshape(planes, words, 32, 32) & 1
        X = np.einsum("pwkc,k->pwc", bits.astype(np.uint64), weights).astype(np.uint32)
        arrays = {"A": A.ravel(), "X": X.ravel(), "Y": np.full(grid * 32, -1, np.int32)}
        expected = {"Y": (a @ x).astype(np.int32).ravel()}
        yield Case(grid, 32, {**arrays, "words": words, "planes": planes}, expected)


PUZZLES = {
    "fragment": Puzzle(fragment, Par(72, 10)),
    "edge_gradient": Puzzle(edge_gradient, Par(156, 84), par_is_the_task=True),
    "largest": Puzzle(largest, Par(25, 22), par_is_the_task=True),
    "popc": Puzzle(popc, Par(60, 18)),
}
