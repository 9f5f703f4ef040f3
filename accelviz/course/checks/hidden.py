"""Random inputs of the assignments' tests: degrees, permutations, rows to partition, graphs.

The kinds of inputs are public; their numbers and sizes are hidden. They depend on two seeds: the
one in a hidden test and the course's own, the environment variable `ACCELVIZ_COURSE_SEED`. Equal
seeds give equal inputs.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.errors import ArgumentError
from accelviz.graph import Graph
from accelviz.partition.block_level import BlockSetting

Degrees = npt.NDArray[np.int32]

#: The environment variable with the course's seed, an integer of at least 0; 0 if it is not set.
COURSE_SEED = "ACCELVIZ_COURSE_SEED"
#: Degrees around the bounds of the published setting (12 warps of 32 nonzeros, deg_bound 384).
CRITICAL_DEGREES = (31, 32, 33, 191, 192, 193, 383, 384, 385, 768, 769)


def generator(seed: int) -> np.random.Generator:
    """Return a random number generator for a test's seed and the course's seed.

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
    """Return lists of row degrees in random order by name; int32, read-only."""
    rng = generator(seed)
    hub = rng.integers(1, 6, _about(180, rng))
    hub[rng.integers(20, hub.size - 20)] = rng.integers(2_000, 4_000)
    empty = rng.integers(1, 9, _about(150, rng))
    empty[rng.random(empty.size) < 0.4] = 0
    empty[[0, -1]] = 0
    max_degree, (n_rows, degree, single_degree) = _about(40, rng), rng.integers(2, 60, 3)
    return _all_frozen(
        {
            "random degrees": rng.integers(0, max_degree, _about(260, rng)),
            "empty rows": empty,
            "a hub with more nonzeros than there are rows": hub,
            "degrees around deg_bound": rng.permutation(np.repeat(CRITICAL_DEGREES, 3)),
            "one degree only": np.full(n_rows, degree),
            "one row": np.array([single_degree]),
        }
    )


def no_rows() -> dict[str, Degrees]:
    """Return the degrees of a matrix without rows, and of rows without nonzeros."""
    return _all_frozen({"no rows": np.zeros(0), "no nonzeros": np.zeros(9)})


def sized_degrees(rows: int, largest: int, seed: int) -> Degrees:
    """Return random degrees from 0 to `largest`, which occurs; int32, shape (rows,), read-only."""
    degrees = generator(seed).integers(0, largest, rows, endpoint=True)
    degrees[rows // 2] = largest
    return _frozen(degrees)


def orders(seed: int) -> dict[str, npt.NDArray[np.int32]]:
    """Return permutations by name, most of them not their own inverse; int32, read-only."""
    rng = generator(seed)
    return _all_frozen(
        {
            "a random order": rng.permutation(_about(211, rng)),
            "a rotation": np.roll(np.arange(_about(97, rng)), 1 + int(rng.integers(30))),
            "no rows": np.zeros(0),
        }
    )


@dataclass(frozen=True)
class SortedRows:
    """Degrees of rows in ascending order, and the setting to partition them with."""

    #: int32, shape (rows,); ascending, read-only.
    degrees: Degrees
    setting: BlockSetting = field(default_factory=BlockSetting)


def short_rows(seed: int) -> dict[str, SortedRows]:
    """Return rows of degree 1 to 192; the last block of each degree is not full."""
    rng = generator(seed)
    setting = BlockSetting()
    counts = {}
    for degree in [1, 2, 31, 32, 33, 64, 65, 96, 97, 128, 192, *rng.integers(3, 190, 6).tolist()]:
        (rows,) = setting.pattern([degree])[1]
        counts[degree] = int(rows * rng.integers(0, 4) + rng.integers(1, rows))
    return {"short rows, none of them empty": _rows(counts)}


def empty_rows(seed: int) -> dict[str, SortedRows]:
    """Return rows of degree 0 before other rows, no rows, and rows of degree 0 only."""
    rng = generator(seed)
    zeros, ones, threes, forties = rng.integers((5, 13, 3, 1), (30, 24, 12, 6)).tolist()
    return {
        "rows of degree 0 first": _rows({0: zeros, 1: ones, 3: threes, 40: forties}),
        "no rows": _rows({}),
        "rows of degree 0 only": _rows({0: zeros}),
    }


def bound_rows(seed: int) -> dict[str, SortedRows]:
    """Return rows around deg_bound: 383 and 384 nonzeros fit a block, 385 do not."""
    rng = generator(seed)
    return {
        f"degree {degree}": _rows(
            {1: int(rng.integers(1, 9)), degree: int(rng.integers(1, 4)), degree + extra: 1}
        )
        for degree, extra in zip((383, 384, 385), rng.integers(500, 900, 3).tolist(), strict=True)
    }


def long_rows(seed: int) -> dict[str, SortedRows]:
    """Return rows of several blocks whose last part is not full, and a hub."""
    rng = generator(seed)
    hub = int(384 * rng.integers(6, 12) + rng.integers(1, 384))
    n_rows, degree = int(rng.integers(1, 5)), int(rng.integers(400, 760))
    return {
        f"rows of 385, {degree} and 769 nonzeros": _rows({2: 7, 385: n_rows, degree: 1, 769: 3}),
        "a hub": _rows({1: int(rng.integers(1, 30)), hub: 1}),
    }


def full_blocks(seed: int) -> dict[str, SortedRows]:
    """Return rows that fill their blocks, and rows whose degree is a multiple of deg_bound."""
    blocks = int(generator(seed).integers(2, 5))
    full = {1: 12 * blocks, 33: 6 * blocks, 65: 4, 100: 3, 190: 2}
    return {
        "rows that fill their blocks": _rows(full),
        "rows of 768 and 1152 nonzeros": _rows({5: 13, 768: 2, 1152: 1}),
    }


def settings(seed: int) -> list[tuple[int, int]]:
    """Return pairs (max_block_warps, max_warp_nzs): the smallest, a prime, and random ones."""
    rng = generator(seed)
    prime = int(rng.choice([5, 7, 11, 13, 17, 19, 23]))
    drawn = rng.integers((2, 2), (32, 40), (3, 2))
    pairs = [(1, 1), (2, 2), (prime, int(rng.integers(3, 12))), (1, int(rng.integers(50, 150)))]
    return pairs + [(int(warps), int(nonzeros)) for warps, nonzeros in drawn]


def columns(seed: int) -> list[int]:
    """Return column counts from 1 to 300: around multiples of 32, and random ones."""
    rng = generator(seed)
    drawn = [rng.integers(2, 31), rng.integers(65, 129), rng.integers(200, 301)]
    return [1, 31, 33, 64, 129, *map(int, drawn)]


def other_settings(seed: int) -> dict[str, SortedRows]:
    """Return rows for `settings`, for 32 warps of 64 nonzeros and for 8 warps of 40,000."""
    rng = generator(seed)
    cases = {}
    for warps, nonzeros in (*settings(seed), (32, 64), (8, 40_000)):
        setting = BlockSetting(warps, nonzeros)
        bound = setting.deg_bound
        random_degrees = rng.integers(0, min(3 * bound, 120), 40)
        degrees = np.concatenate([random_degrees, [bound, bound + 1, 2 * bound + 1]])
        if nonzeros > 30_000:  # warp_nzs, the upper half of info, then sets the sign bit
            degrees = np.concatenate([degrees, [35_000, 36_000]])
        cases[f"{warps} warps of {nonzeros:,} nonzeros"] = SortedRows(
            _frozen(np.sort(degrees)), setting
        )
    return cases


def graph_of(degrees: Iterable[int], n_columns: int, rng: np.random.Generator, name: str) -> Graph:
    """Make a graph whose rows have these degrees, with random columns and signed weights.

    The matrix has `n_columns` columns, at least as many as the largest degree.
    """
    degrees = [int(degree) for degree in degrees]
    columns = [np.sort(rng.choice(n_columns, degree, replace=False)) for degree in degrees]
    return Graph(
        np.cumsum([0, *degrees], dtype=np.int64),
        np.concatenate([*columns, np.empty(0)]).astype(np.int32),
        rng.standard_normal(sum(degrees), dtype=np.float32),
        (len(degrees), n_columns),
        name,
    )


def graphs(seed: int, *only: str) -> dict[str, Graph]:
    """Return graphs of a few thousand nonzeros by name, only the named ones if names are given.

    "ragged": degrees of a power law, some rows empty. "hub": one row of about 3,000 nonzeros.
    "bounds": degrees of `CRITICAL_DEGREES`. "even": degrees 3 to 8, square. "tall": many rows, 60
    columns. No graph is symmetric; weights are random and signed.
    """
    drawn = _graphs(seed, os.environ.get(COURSE_SEED))
    return {name: drawn[name] for name in only or drawn}


@functools.lru_cache(maxsize=16)
def _graphs(seed: int, _: str | None) -> dict[str, Graph]:
    """Draw the graphs of `graphs` once for all tests with the same two seeds."""
    rng = generator(seed)
    ragged = np.minimum(rng.pareto(1.1, _about(900, rng)) * 2 + 1, 250).astype(int)
    ragged[rng.random(ragged.size) < 0.15] = 0
    hub = rng.integers(0, 6, _about(500, rng))
    hub[rng.integers(100, 350)] = _about(3_000, rng)
    counts = _counts({0: 20, 1: 100, 2: 80, 3: 60, 5: 30}, rng)
    bounds = _repeated(counts | dict.fromkeys(CRITICAL_DEGREES, 3))
    even = rng.integers(3, 9, _about(1_203, rng))
    tall = _repeated(_counts({0: 100, 1: 500, 2: 300, 9: 40, 40: 6}, rng))
    graphs_by_name = {
        "ragged": graph_of(ragged, _about(1_100, rng), rng, "ragged"),
        "hub": graph_of(hub, _about(4_500, rng), rng, "hub"),
        "bounds": graph_of(rng.permutation(bounds), 1_000, rng, "bounds"),
        "even": graph_of(even, even.size, rng, "even"),
        "tall": graph_of(rng.permutation(tall), 60, rng, "tall"),
    }
    return graphs_by_name


def corner_graphs(seed: int) -> dict[str, Graph]:
    """Return degenerate graphs by name: empty dimensions, few nonzeros, one row only."""
    rng = generator(seed)
    rows_without_columns, empty_rows = rng.integers(2, 60, 2).tolist()
    arguments = {
        "no rows": ([], 0),
        "no columns": ([0] * rows_without_columns, 0),
        "no nonzeros": ([0] * empty_rows, 5),
        "one row without nonzeros": ([0], 1),
        "one nonzero": ([1], 1),
        "one long row": ([384 * int(rng.integers(2, 5)) + 1], 2_000),
        "empty rows at both ends": ([0, 2, 1, 3, 0, 1, 0], 4),
    }
    return {
        name: graph_of(degrees, n_columns, rng, name)
        for name, (degrees, n_columns) in arguments.items()
    }


def small_graphs(seed: int, *only: str) -> dict[str, Graph]:
    """Return graphs of at most a thousand nonzeros by name, for kernels in the emulator.

    Only the named ones if names are given. "columns": one run per row, full blocks, for tests of
    column counts. "empty rows": empty rows, last block not full. "long rows": rows of several runs,
    some in several blocks. "wide": many more columns than rows. "tall": many more rows. "far": rows
    beyond 8 bits and columns beyond 16, most rows empty.
    """
    rng = generator(seed)
    empty = rng.integers(1, 7, _about(41, rng))
    empty[rng.random(empty.size) < 0.4] = 0
    empty[[0, 7, -1]] = 0, 5, 0
    while np.count_nonzero(empty) % 4 == 0:
        empty[np.flatnonzero(empty)[0]] = 0
    # numbers of full blocks of four warps
    wide, medium, tall = rng.integers((2, 5, 30), (4, 8, 45)).tolist()
    long = rng.permutation([31, 32, 33, 64, 65, 129, 385, 1, 2, 3, 4, 5])
    far = np.zeros(_about(400, rng), dtype=np.int64)
    far[::7] = rng.integers(1, 7, far[::7].size)
    graphs_by_name = {
        "columns": graph_of(rng.integers(1, 33, 4 * medium), _about(70, rng), rng, "columns"),
        "empty rows": graph_of(empty, _about(50, rng), rng, "empty rows"),
        "long rows": graph_of(long, _about(500, rng), rng, "long rows"),
        "wide": graph_of(rng.integers(1, 33, 4 * wide), _about(700, rng), rng, "wide"),
        "tall": graph_of(rng.integers(1, 4, 4 * tall), 6, rng, "tall"),
        "far": graph_of(far, 65_536 + _about(9_000, rng), rng, "far"),
    }
    return {name: graphs_by_name[name] for name in only or graphs_by_name}


def _about(number: int, rng: np.random.Generator) -> int:
    """Draw an integer within 20 % of a number."""
    return int(rng.integers(number - number // 5, number + number // 5, endpoint=True))


def _counts(counts: Mapping[int, int], rng: np.random.Generator) -> dict[int, int]:
    return {degree: _about(number, rng) for degree, number in counts.items()}


def _rows(counts: Mapping[int, int]) -> SortedRows:
    return SortedRows(_frozen(_repeated(dict(sorted(counts.items())))))


def _repeated(counts: Mapping[int, int]) -> npt.NDArray[np.int64]:
    return np.repeat(np.array([*counts], dtype=np.int64), [*counts.values()])


def _frozen(values: npt.NDArray[np.generic]) -> npt.NDArray[np.int32]:
    array = values.astype(np.int32)
    array.setflags(write=False)
    return array


def _all_frozen(lists: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[np.int32]]:
    return {name: _frozen(values) for name, values in lists.items()}
