"""The puzzle of the sixth notebook: a product of bits, by AND and a count of ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from accelviz.course.puzzles.puzzle import Case, Par, Puzzle


def popc(rng: np.random.Generator) -> Iterator[Case]:
    """Multiply a row of single bits for each block with 32 columns of a few bits."""
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


PUZZLES = {"popc": Puzzle(popc, Par(60, 18))}
