"""The puzzle of the fourth notebook: who brings what to a tensor core."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from accelviz.course.puzzles.puzzle import Case, Par, Puzzle, signed, unwritten


def fragment(rng: np.random.Generator) -> Iterator[Case]:
    """Multiply matrices of 16 x 8 and 8 x 8, a pair for each block of one warp."""
    for grid in (1, 2, 3):
        # Whole numbers below 2^11 are their own TF32, and sums of products below 2^24 are exact.
        A, B = signed(rng, grid, 16, 8), signed(rng, grid, 8, 8)
        C = (A.astype(np.float64) @ B).astype(np.float32)
        given = {"A": A.ravel(), "B": B.ravel(), "C": unwritten(C.size)}
        yield Case(grid, 32, given, {"C": C.ravel()})


PUZZLES = {"fragment": Puzzle(fragment, Par(72, 10))}
