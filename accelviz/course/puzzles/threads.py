"""Puzzles of the first notebook: threads, blocks, and how neighbors read neighbors."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from accelviz.course.puzzles.puzzle import Case, Par, Puzzle, signed, unwritten


def one_each(rng: np.random.Generator) -> Iterator[Case]:
    """One block doubles a vector that has an element for each thread."""
    for n in (32, 1, 40, 96, 256):
        X = signed(rng, n)
        yield Case(1, n, {"X": X, "Y": unwritten(n)}, {"Y": 2 * X})


def blocks(rng: np.random.Generator) -> Iterator[Case]:
    """Several blocks add two vectors, an element a thread."""
    for grid, block in ((3, 32), (1, 32), (5, 40), (2, 64), (7, 1)):
        n = grid * block
        X, Z = signed(rng, n), signed(rng, n)
        yield Case(grid, block, {"X": X, "Z": Z, "Y": unwritten(n)}, {"Y": X + Z})


def guard(rng: np.random.Generator) -> Iterator[Case]:
    """Have more threads in the last block than elements; Y is an input, too."""
    for n in (70, 1, 31, 33, 64, 100):
        a = int(rng.integers(2, 99))
        X, Y = signed(rng, n), signed(rng, n)
        yield Case(-(-n // 32), 32, {"a": a, "X": X, "Y": Y, "n": n}, {"Y": a * X + Y})


def stride(rng: np.random.Generator) -> Iterator[Case]:
    """Fewer threads than elements."""
    for grid, block, n in ((2, 32, 300), (2, 32, 64), (1, 32, 33), (3, 64, 1000), (2, 64, 5)):
        X = signed(rng, n)
        yield Case(grid, block, {"X": X, "Y": unwritten(n), "n": n}, {"Y": -X})


def wide(rng: np.random.Generator) -> Iterator[Case]:
    """Four neighboring floats a thread, as one float4."""
    for n4 in (50, 1, 32, 33, 75):
        X = signed(rng, 4 * n4)
        arguments = {"X": X, "Y": unwritten(4 * n4), "n4": n4}
        yield Case(-(-n4 // 32), 32, arguments, {"Y": 2 * X})


PUZZLES = {
    "one_each": Puzzle(one_each, Par(8, 2)),
    "blocks": Puzzle(blocks, Par(36, 9)),
    "guard": Puzzle(guard, Par(27, 9)),
    "stride": Puzzle(stride, Par(76, 20), par_is_the_task=True),
    "wide": Puzzle(wide, Par(50, 4), par_is_the_task=True),
}
