"""Puzzles of the third notebook: sparse matrices, from one thread per row to Accel-GCN's blocks.

A docstring describes the kernel that the puzzle asks for; the function yields its cases.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_array

from accelviz.course.puzzles.puzzle import (
    Array,
    Case,
    Floats,
    Par,
    Puzzle,
    matrix,
    nonzeros,
    signed,
    times,
    unwritten,
)
from accelviz.ordering.degree import sort_by_degree
from accelviz.partition.block_level import BlockSetting, block_partition

#: Row degrees of small matrices: empty rows at both ends, one row, only empty rows, rows longer
#: than a warp, equal rows.
_DEGREES = (
    [0, 3, 1, 6, 2, 0, 4, 9, 1, 1, 0, 5, 2, 3, 0],
    [7],
    [0, 0, 0],
    [0, 40, 1, 0, 33, 2] + [1] * 40,
    [5] * 33,
)


def row_thread(rng: np.random.Generator) -> Iterator[Case]:
    """Multiply with a vector, one thread per row."""
    for degrees in _DEGREES:
        A, n = matrix(rng, degrees, 60), len(degrees)
        x = signed(rng, A.shape[1])
        vectors = {"x": x, "y": unwritten(n), "n_rows": n}
        arguments = {"row_pointers": A.indptr, **nonzeros(A), **vectors}
        yield Case(-(-n // 32), 32, arguments, {"y": times(A, x)})


def row_warp(rng: np.random.Generator) -> Iterator[Case]:
    """Multiply with a matrix, one warp per row, two warps per block."""
    for degrees, n_cols in (
        *(([0, 3, 1, 2], 40), (_DEGREES[0], 32), ([7], 1), ([0, 0, 0], 33)),
        *((_DEGREES[3], 7), ([5] * 5, 70)),
    ):
        A, n = matrix(rng, degrees, 8 if max(degrees) < 8 else 60), len(degrees)
        product = _product(A, signed(rng, A.shape[1], n_cols))
        arguments = {"row_pointers": A.indptr, **product, "n_rows": n, "n_cols": n_cols}
        yield Case(-(-n // 2), 64, arguments, {"Y": times(A, product["X"])})


def edges(rng: np.random.Generator) -> Iterator[Case]:
    """Multiply with a vector, one thread per nonzero, nonzeros ordered by row."""
    for degrees in _DEGREES:
        A, n = matrix(rng, degrees, 60), len(degrees)
        x, nnz = signed(rng, A.shape[1]), len(A.data)
        vectors = {"x": x, "y": np.zeros(n, np.float32), "nnz": nnz}
        if nnz:
            arguments = {"rows": A.tocoo().row, **nonzeros(A), **vectors}
            yield Case(-(-nnz // 32), 32, arguments, {"y": times(A, x)})


def equal_rows(rng: np.random.Generator) -> Iterator[Case]:
    """Multiply rows of equal degree with a matrix, one warp per row; skip `first_nz` nonzeros."""
    for n, degree, first, n_cols in (
        *((4, 3, 8, 32), (1, 1, 0, 1), (5, 7, 0, 20), (3, 40, 5, 31), (7, 2, 100, 32)),
    ):
        A = matrix(rng, [1] * first + [degree] * n, max(8, 2 * degree))
        product = _product(A, signed(rng, A.shape[1], n_cols), first)
        numbers = {"first_nz": first, "degree": degree, "n_rows": n, "n_cols": n_cols}
        yield Case(-(-n // 2), 64, {**product, **numbers}, {"Y": times(A, product["X"])[first:]})


def combined(rng: np.random.Generator) -> Iterator[Case]:
    """Multiply rows of equal degree, one combined warp of `width` threads per row."""
    for n, degree, width, n_cols in (
        *((3, 3, 64, 48), (1, 1, 32, 1), (5, 2, 64, 64), (4, 6, 128, 100), (9, 3, 32, 31)),
    ):
        A = matrix(rng, [degree] * n, 8)
        product = _product(A, signed(rng, A.shape[1], n_cols))
        numbers = {"degree": degree, "width": width, "n_rows": n, "n_cols": n_cols}
        expected = {"Y": times(A, product["X"])}
        yield Case(-(-n * width // 128), 128, {**product, **numbers}, expected)


def accel_block(rng: np.random.Generator) -> Iterator[Case]:
    """Multiply with Accel-GCN's blocks: four warps, at most four nonzeros per warp."""
    setting = BlockSetting(max_block_warps=4, max_warp_nzs=4)
    for degrees, n_cols in (
        *(([5, 0, 19, 5], 32), ([7], 1), ([1, 0, 16, 33, 2, 9, 0, 1, 17], 20)),
        *((_DEGREES[3], 31), ([5] * 7, 32)),
    ):
        order, histogram = sort_by_degree(np.cumsum([0, *degrees]))
        ranks = np.asarray(order.order)
        A = matrix(rng, [degrees[row] for row in ranks], 20 if max(degrees) < 20 else 60)
        product = _product(A, signed(rng, A.shape[1], n_cols))
        Y = np.empty_like(product["Y"])
        Y[ranks] = times(A, product["X"])
        # rows that the kernel adds to, or leaves alone, are cleared; the others are stored
        cleared = [degree == 0 or degree > setting.deg_bound for degree in degrees]
        product["Y"][cleared] = 0
        metadata = block_partition(histogram, setting)
        rows = {"metadata": metadata, "output_rows": ranks.astype(np.int32)}
        numbers = {"n_cols": n_cols, "deg_bound": setting.deg_bound}
        yield Case(len(metadata), 128, {**rows, **product, **numbers}, {"Y": Y})


def _product(A: csr_array, X: Floats, first: int = 0) -> dict[str, Array]:
    """Return the arguments of a product of X with the rows of A from `first` on."""
    shape = A.shape[0] - first, X.shape[1]
    return {**nonzeros(A), "X": X, "Y": unwritten(*shape)}


PUZZLES = {
    "row_thread": Puzzle(row_thread, Par(85, 30)),
    "row_warp": Puzzle(row_warp, Par(82, 52), par_is_the_task=True),
    "edges": Puzzle(edges, Par(29, 36)),
    "segments": Puzzle(edges, Par(29, 10), par_is_the_task=True),
    "equal_rows": Puzzle(equal_rows, Par(88, 40)),
    "combined": Puzzle(combined, Par(108, 60)),
    "accel_block": Puzzle(accel_block, Par(206, 126), par_is_the_task=True),
}
