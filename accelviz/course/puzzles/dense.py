"""Puzzles of the first two notebooks: threads and memory; blocks and warps that share data.

A docstring describes the kernel that the puzzle asks for; the function yields its cases.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from accelviz.course.puzzles.puzzle import Case, Par, Puzzle, signed, unwritten


def one_each(rng: np.random.Generator) -> Iterator[Case]:
    """One block doubles a vector, one element per thread."""
    for n in (32, 1, 40, 96, 256):
        X = signed(rng, n)
        yield Case(1, n, {"X": X, "Y": unwritten(n)}, {"Y": 2 * X})


def blocks(rng: np.random.Generator) -> Iterator[Case]:
    """Several blocks add two vectors, one element per thread."""
    for grid, block in ((3, 32), (1, 32), (5, 40), (2, 64), (7, 1)):
        n = grid * block
        X, Z = signed(rng, n), signed(rng, n)
        yield Case(grid, block, {"X": X, "Z": Z, "Y": unwritten(n)}, {"Y": X + Z})


def guard(rng: np.random.Generator) -> Iterator[Case]:
    """Y becomes a X + Y; the last block has more threads than elements are left."""
    for n, unit in ((70, 1), (1, -1), (31, 0.5), (33, -0.25), (64, 1), (100, 0.5)):
        a = unit * int(2 * rng.integers(1, 50) + 1)
        X, Y = signed(rng, n), signed(rng, n)
        yield Case(-(-n // 32), 32, {"a": a, "X": X, "Y": Y, "n": n}, {"Y": a * X + Y})


def stride(rng: np.random.Generator) -> Iterator[Case]:
    """Negate a vector with fewer threads than elements."""
    for grid, block, n in ((2, 32, 300), (2, 32, 64), (1, 32, 33), (3, 64, 1000), (2, 64, 5)):
        X = signed(rng, n)
        yield Case(grid, block, {"X": X, "Y": unwritten(n), "n": n}, {"Y": -X})


def wide(rng: np.random.Generator) -> Iterator[Case]:
    """Double a vector, four neighboring floats per thread as one float4."""
    for n4 in (50, 1, 32, 33, 75):
        X = signed(rng, 4 * n4)
        arguments = {"X": X, "Y": unwritten(4 * n4), "n4": n4}
        yield Case(-(-n4 // 32), 32, arguments, {"Y": 2 * X})


def mirror(rng: np.random.Generator) -> Iterator[Case]:
    """Each block reverses a piece of at most 64 elements, in place."""
    for grid, n in ((2, 40), (1, 64), (3, 1), (2, 33), (1, 63), (4, 32)):
        Y = signed(rng, grid, n)
        yield Case(grid, 64, {"Y": Y, "n": n}, {"Y": Y[:, ::-1].copy()})


def neighbors(rng: np.random.Generator) -> Iterator[Case]:
    """Add to each element its two neighbors, which are 0 beyond the ends."""
    for n in (150, 1, 64, 65, 63, 128):
        X = signed(rng, n)
        padded = np.pad(X, 1)
        Y = padded[:-2] + padded[1:-1] + padded[2:]
        yield Case(-(-n // 64), 64, {"X": X, "Y": unwritten(n), "n": n}, {"Y": Y})


def transpose(rng: np.random.Generator) -> Iterator[Case]:
    """Transpose a matrix of 32 rows."""
    for n_cols in (40, 1, 32, 31, 65):
        X = signed(rng, 32, n_cols)
        arguments = {"X": X, "Y": unwritten(n_cols, 32), "n_cols": n_cols}
        yield Case(-(-n_cols // 32), 32, arguments, {"Y": X.T.copy()})


def banks(rng: np.random.Generator) -> Iterator[Case]:
    """Each thread sums a row of 32 elements in shared memory."""
    for grid in (1, 2, 3):
        X = signed(rng, 32 * grid, 32)
        arguments = {"X": X, "sums": unwritten(32 * grid)}
        yield Case(grid, 32, arguments, {"sums": X.sum(axis=1)})


def shuffle(rng: np.random.Generator) -> Iterator[Case]:
    """Each warp sums 32 elements, the last warp the remaining ones."""
    for n in (70, 32, 1, 31, 65, 128):
        X, warps = signed(rng, n), -(-n // 32)
        sums = np.add.reduceat(X, np.arange(0, n, 32))
        arguments = {"X": X, "sums": unwritten(warps), "n": n}
        yield Case(warps, 32, arguments, {"sums": sums})


def block_sum(rng: np.random.Generator) -> Iterator[Case]:
    """Each block, of any number of warps, sums one element per thread."""
    for block, n in ((128, 200), (128, 128), (32, 33), (64, 1), (1024, 1500), (96, 191)):
        X, grid = signed(rng, n), -(-n // block)
        sums = np.add.reduceat(X, np.arange(0, n, block))
        arguments = {"X": X, "sums": unwritten(grid), "n": n}
        yield Case(grid, block, arguments, {"sums": sums})


PUZZLES = {
    "one_each": Puzzle(one_each, Par(8, 2)),
    "blocks": Puzzle(blocks, Par(36, 9)),
    "guard": Puzzle(guard, Par(27, 9)),
    "stride": Puzzle(stride, Par(76, 20), par_is_the_task=True),
    "wide": Puzzle(wide, Par(50, 4), par_is_the_task=True),
    "mirror": Puzzle(mirror, Par(20, 16)),
    "neighbors": Puzzle(neighbors, Par(42, 41), par_is_the_task=True),
    "transpose": Puzzle(transpose, Par(320, 208), par_is_the_task=True),
    "banks": Puzzle(banks, Par(132, 97), par_is_the_task=True),
    "shuffle": Puzzle(shuffle, Par(12, 6), par_is_the_task=True),
    "block_sum": Puzzle(block_sum, Par(27, 19)),
}
