"""Inputs for the assignments' tests: random, asymmetric, and the same for the same seeds.

What is special about them is no secret; the numbers are. They depend on the seed that a hidden test
names and on the course's own, the environment variable `ACCELVIZ_COURSE_SEED`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from accelviz.errors import ArgumentError
from accelviz.graph import Graph
from accelviz.partition.block_level import BlockSetting

Degrees = npt.NDArray[np.int32]

#: The environment variable with the course's seed, an integer of at least 0; 0 if it is not set.
COURSE_SEED = "ACCELVIZ_COURSE_SEED"
#: Degrees at which the published setting (12 warps of 32 nonzeros, deg_bound 384) changes its mind.
CRITICAL_DEGREES = (31, 32, 33, 191, 192, 193, 383, 384, 385, 768, 769)


def generator(seed: int) -> np.random.Generator:
    """Return the random numbers of a seed and the course's.

    Raises
    ------
    ArgumentError
        If the course's seed is no integer of at least 0.
    """
    text = os.environ.get(COURSE_SEED) or "0"
    if not text.isdecimal():
        raise ArgumentError(COURSE_SEED, f"got {text!r}", "an integer of at least 0")
    return np.random.default_rng([seed, int(text)])


def degree_lists(seed: int) -> dict[str, Degrees]:
    """Return degrees of rows in no order, by the name of what is special about them.

    Parameters
    ----------
    seed : int

    Returns
    -------
    dict of str to array of int32, shape (rows,)
        Read-only.
    """
    rng = generator(seed)
    hub = rng.integers(1, 6, 180)
    hub[rng.integers(20, 160)] = rng.integers(2_000, 4_000)
    empty = rng.integers(1, 9, 150) * (rng.random(150) < 0.6)
    empty[[0, -1]] = 0
    return {
        "random degrees": _frozen(rng.integers(0, 40, 260)),
        "empty rows": _frozen(empty),
        "a hub with more nonzeros than there are rows": _frozen(hub),
        "degrees around deg_bound": _frozen(rng.permutation(np.repeat(CRITICAL_DEGREES, 3))),
        "one degree only": _frozen(np.full(37, 5)),
        "one row": _frozen(np.array([3])),
    }


def no_rows() -> dict[str, Degrees]:
    """Return the degrees of a matrix without rows, and of rows without nonzeros."""
    return {
        "no rows": _frozen(np.zeros(0)),
        "no nonzeros": _frozen(np.zeros(9)),
    }


def sized_degrees(rows: int, largest: int, seed: int) -> Degrees:
    """Return random degrees from 0 to `largest`, which occurs; int32, shape (rows,), read-only."""
    degrees = generator(seed).integers(0, largest, rows, endpoint=True)
    degrees[rows // 2] = largest
    return _frozen(degrees)


def orders(seed: int) -> dict[str, npt.NDArray[np.int32]]:
    """Return permutations that are not their own inverse; int32, read-only."""
    rng = generator(seed)
    return {
        "a random order": _frozen(rng.permutation(211)),
        "a rotation": _frozen(np.roll(np.arange(97), 1 + int(rng.integers(30)))),
        "no rows": _frozen(np.zeros(0)),
    }


@dataclass(frozen=True)
class SortedRows:
    """Rows in ascending order of degree, and the setting they are to be partitioned with.

    Attributes
    ----------
    degrees : array of int32, shape (rows,)
        Ascending, read-only.
    setting : BlockSetting
    """

    degrees: Degrees
    setting: BlockSetting = field(default_factory=BlockSetting)


def short_rows(seed: int) -> dict[str, SortedRows]:
    """Rows of degree 1 to 192, of which the last block of each degree is not full."""
    rng = generator(seed)
    setting = BlockSetting()
    counts = {}
    for degree in [1, 2, 31, 32, 33, 64, 65, 96, 97, 128, 192, *rng.integers(3, 190, 6).tolist()]:
        (rows,) = setting.pattern([degree])[1]
        counts[degree] = int(rows * rng.integers(0, 4) + rng.integers(1, rows))
    return {"short rows, none of them empty": _rows(counts)}


def empty_rows(seed: int) -> dict[str, SortedRows]:
    """Rows of degree 0 before the others; and nothing but them."""
    rng = generator(seed)
    zeros = int(rng.integers(5, 30))
    return {
        "rows of degree 0 first": _rows({0: zeros, 1: 17, 3: 5, 40: 3}),
        "no rows": _rows({}),
        "rows of degree 0 only": _rows({0: zeros}),
    }


def bound_rows(seed: int) -> dict[str, SortedRows]:
    """Rows around deg_bound: 383 and 384 nonzeros fit a block, 385 do not."""
    rng = generator(seed)
    return {
        f"degree {degree}": _rows({1: 5, degree: int(rng.integers(1, 4)), degree + 700: 1})
        for degree in (383, 384, 385)
    }


def long_rows(seed: int) -> dict[str, SortedRows]:
    """Rows of several blocks whose last part is not full; and a hub."""
    rng = generator(seed)
    hub = int(384 * rng.integers(6, 12) + rng.integers(1, 384))
    return {
        "rows of 385, 500 and 769 nonzeros": _rows({2: 7, 385: 2, 500: 1, 769: 3}),
        "a hub": _rows({1: 13, hub: 1}),
    }


def full_blocks(seed: int) -> dict[str, SortedRows]:
    """Rows that fill their blocks to the last place, and rows of a multiple of deg_bound."""
    times = int(generator(seed).integers(2, 5))
    return {
        "rows that fill their blocks": _rows({1: 12 * times, 33: 6 * times, 65: 4, 100: 3, 190: 2}),
        "rows of 768 and 1152 nonzeros": _rows({5: 13, 768: 2, 1152: 1}),
    }


def other_settings(seed: int) -> dict[str, SortedRows]:
    """Rows for settings other than the published one: a prime, 1, many warps, many nonzeros."""
    rng = generator(seed)
    found = {}
    for warps, nonzeros in ((2, 2), (7, 5), (1, 1), (32, 64), (8, 40_000)):
        setting = BlockSetting(warps, nonzeros)
        bound = setting.deg_bound
        degrees = np.concatenate(
            [rng.integers(0, min(3 * bound, 120), 40), [bound, bound + 1, 2 * bound + 1]]
        )
        if nonzeros > 30_000:  # the upper field of info reaches the sign bit
            degrees = np.concatenate([degrees, [35_000, 36_000]])
        found[f"{warps} warps of {nonzeros:,} nonzeros"] = SortedRows(
            _frozen(np.sort(degrees)), setting
        )
    return found


def graph_of(degrees: Iterable[int], n_senders: int, rng: np.random.Generator, name: str) -> Graph:
    """Make a graph whose rows have these degrees, with random columns and signed weights.

    Parameters
    ----------
    degrees : iterable of int
        Each at most `n_senders`.
    n_senders : int
        Columns of the matrix.
    rng : numpy.random.Generator
    name : str
    """
    degrees = [int(degree) for degree in degrees]
    columns = [np.sort(rng.choice(n_senders, degree, replace=False)) for degree in degrees]
    return Graph(
        np.cumsum([0, *degrees], dtype=np.int64),
        np.concatenate([*columns, np.empty(0)]).astype(np.int32),
        rng.standard_normal(sum(degrees), dtype=np.float32),
        (len(degrees), n_senders),
        name,
    )


def graphs(seed: int, *only: str) -> dict[str, Graph]:
    """Return graphs of a few thousand nonzeros, by the name of what is special about them.

    Parameters
    ----------
    seed : int
    *only : str
        Names of those that are wanted; all five, "ragged", "hub", "bounds", "even" and "tall", if
        none is given.

    Returns
    -------
    dict of str to Graph
        None of them is symmetric, most are not square; weights are random and signed.
    """
    rng = generator(seed)
    ragged = np.minimum(rng.pareto(1.1, 900) * 2 + 1, 250).astype(int)
    ragged[rng.random(900) < 0.15] = 0
    hub = rng.integers(0, 6, 500)
    hub[rng.integers(100, 400)] = 3_000
    counts = {**dict.fromkeys(CRITICAL_DEGREES, 3), 0: 20, 1: 100, 2: 80, 3: 60, 5: 30}
    even = rng.integers(3, 9, 1_203)
    tall = _repeated({0: 100, 1: 500, 2: 300, 9: 40, 40: 6})
    made = {
        "ragged": graph_of(ragged, 1_100, rng, "ragged"),
        "hub": graph_of(hub, 4_000, rng, "hub"),
        "bounds": graph_of(rng.permutation(_repeated(counts)), 1_000, rng, "bounds"),
        "even": graph_of(even, even.size, rng, "even"),
        "tall": graph_of(rng.permutation(tall), 60, rng, "tall"),
    }
    return {name: made[name] for name in only or made}


def corner_graphs(seed: int) -> dict[str, Graph]:
    """Return graphs that have hardly anything in them, or everything in one row."""
    rng = generator(seed)
    degrees = {
        "no rows": ([], 0),
        "no columns": ([0, 0, 0], 0),
        "no nonzeros": ([0] * 37, 5),
        "one row without nonzeros": ([0], 1),
        "one nonzero": ([1], 1),
        "one long row": ([1_153], 1_200),
        "empty rows at both ends": ([0, 2, 1, 3, 0, 1, 0], 4),
    }
    return {name: graph_of(*rows, rng, name) for name, rows in degrees.items()}


def small_graphs(seed: int, *only: str) -> dict[str, Graph]:
    """Return graphs of at most a thousand nonzeros, for kernels that run thread by thread.

    Parameters
    ----------
    seed : int
    *only : str
        Names of those that are wanted; all if none is given.

    Returns
    -------
    dict of str to Graph
        One difficulty each. "columns": none, for other numbers of columns; "empty rows": and runs
        that do not fill the last block; "long rows": cut into runs, some of them in several blocks;
        "wide": many more columns than rows; "tall": the opposite.
    """
    rng = generator(seed)
    empty = rng.integers(1, 7, 41) * (rng.random(41) < 0.6)
    empty[[0, 7, -1]] = 0, 5, 0
    while np.count_nonzero(empty) % 4 == 0:
        empty[np.flatnonzero(empty)[0]] = 0
    long = rng.permutation([31, 32, 33, 64, 65, 129, 385, 1, 2, 3, 4, 5])
    made = {
        "columns": graph_of(rng.integers(1, 33, 24), 70, rng, "columns"),
        "empty rows": graph_of(empty, 50, rng, "empty rows"),
        "long rows": graph_of(long, 400, rng, "long rows"),
        "wide": graph_of(rng.integers(1, 33, 8), 700, rng, "wide"),
        "tall": graph_of(rng.integers(1, 4, 148), 6, rng, "tall"),
    }
    return {name: made[name] for name in only or made}


def _rows(counts: Mapping[int, int]) -> SortedRows:
    return SortedRows(_frozen(_repeated(dict(sorted(counts.items())))))


def _repeated(counts: Mapping[int, int]) -> npt.NDArray[np.int64]:
    return np.repeat(np.array([*counts], dtype=np.int64), [*counts.values()])


def _frozen(values: npt.NDArray[np.generic]) -> npt.NDArray[np.int32]:
    array = values.astype(np.int32)
    array.setflags(write=False)
    return array
