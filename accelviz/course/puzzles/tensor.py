"""The puzzle of the fourth notebook: who brings what to a tensor core."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from accelviz.course.puzzles.puzzle import Case, Par, Puzzle, signed, unwritten
from accelviz.plans.arithmetic import to_tf32


def fragment(rng: np.random.Generator) -> Iterator[Case]:
    """Multiply matrices of 16 x 8 and 8 x 8, a pair for each block of one warp."""
    for grid, most in ((1, (999, 999)), (2, (4095, 499)), (3, (499, 4095))):
        # Whole numbers below 2^11 are their own TF32; odd ones above have to be rounded to it. All
        # sums of products are below 2^24, and exact.
        A, B = signed(rng, grid, 16, 8, most=most[0]), signed(rng, grid, 8, 8, most=most[1])
        C = (to_tf32(A).astype(np.float64) @ to_tf32(B)).astype(np.float32)
        arrays = {"A": A.ravel(), "B": B.ravel(), "C": unwritten(C.size)}
        yield Case(grid, 32, arrays, {"C": C.ravel()})


PUZZLES = {"fragment": Puzzle(fragment, Par(72, 10))}
