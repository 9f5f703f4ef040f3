"""Puzzles and the reports of checking them, and helpers that create inputs.

A puzzle has several cases, each with inputs for a kernel and the right outputs, and a par: the
memory traffic of a good solution for the first case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Case:
    """A launch of the learner's kernel, with its arguments and the right outputs."""

    #: Number of blocks, and of threads per block.
    grid: int
    block: int
    #: Arrays and numbers in the order of the kernel's parameters, outputs with initial values.
    arguments: Mapping[str, Any]
    #: Right values of the outputs. They are exact: sums of whole numbers below 2**24, times a power
    #: of two, do not depend on the order.
    expected: Mapping[str, Array]

    def __str__(self) -> str:
        blocks = f"{self.grid} block{'s' * (self.grid > 1)} of {self.block} threads"
        numbers = (
            f"{name} = {value}"
            for name, value in self.arguments.items()
            if not isinstance(value, np.ndarray)
        )
        return ", ".join([blocks, *numbers])

    @property
    def threads(self) -> int:
        """Number of threads of all blocks."""
        return self.grid * self.block


#: Where the par is part of the task, a cost of up to this many times the par reaches it: a request
#: of 32 neighboring floats that begins inside a sector moves 5 sectors in place of 4.
SLACK = 1.25


class Par(NamedTuple):
    """Memory traffic of a kernel for the first case of a puzzle."""

    #: Number of sectors of global memory, 32 bytes each.
    sectors: int
    #: Number of instructions of a warp that access memory, as `check.cost` counts them.
    requests: int


@dataclass(frozen=True)
class Puzzle:
    """A kernel to complete."""

    #: Generates the cases. The first is small; it is scored and drawn.
    cases: Callable[[np.random.Generator], Iterator[Case]]
    par: Par
    #: Whether a solution must also reach the par, up to `SLACK`.
    par_is_the_task: bool = False


@dataclass(frozen=True, repr=False)
class Report:
    """Result of checking a kernel."""

    #: Name of the puzzle.
    name: str
    solved: bool
    #: Message: the error, or that the result is right.
    message: str
    par: Par
    #: Traffic of the kernel for the first case; None if a result is wrong.
    cost: Par | None = None
    #: Function that draws `picture`.
    draw: Callable[[], str] = str

    @cached_property
    def picture(self) -> str:
        """HTML with the memory accesses of each thread; "" if the kernel did not run."""
        return self.draw()

    @property
    def over(self) -> float:
        """Sectors and requests in excess of the par, added up; negative below the par."""
        if self.cost is None:
            return float("inf")
        return float(sum(self.cost) - sum(self.par))

    @property
    def verdict(self) -> str:
        """Short text: whether the puzzle is solved, and at par or better."""
        if not self.solved or self.cost is None:
            return "Not yet"
        if self.cost == self.par:
            return "Solved, at par"
        exceeded = above_par(self.cost, self.par)
        if exceeded:
            return f"Solved, with more {exceeded} than the par"
        return "Solved, better than the par"

    def costs(self) -> dict[str, str]:
        """Return each cost with the par as text; {} if there is no cost."""
        if self.cost is None:
            return {}
        pairs = zip(Par._fields, self.cost, self.par, strict=True)
        return {name: f"{cost} (par {par})" for name, cost, par in pairs}

    def __repr__(self) -> str:
        costs = ", ".join(f"{name}: {cost}" for name, cost in self.costs().items())
        return f"{self.verdict}. {self.message}" + (f" {costs.capitalize()}." if costs else "")

    def _repr_html_(self) -> str:
        text = f"<p><b>{'✓' if self.solved else '✗'} {escape(self.verdict)}.</b> "
        text += f'<span style="white-space: pre-wrap">{escape(self.message)}</span></p>'
        if self.cost is not None:
            table = pd.DataFrame({"yours": self.cost, "par": self.par}, Par._fields)
            text += table.to_html(border=0)
        return f'<div style="max-width: 72em">{text}{self.picture}</div>'


def above_par(cost: Par, par: Par, slack: float = 1.0) -> str:
    """Return the names of the costs above `slack` times the par, joined by "and"."""
    triples = zip(Par._fields, cost, par, strict=True)
    return " and ".join(name for name, number, limit in triples if number > slack * limit)


@dataclass(frozen=True, repr=False)
class Scores:
    """Best reports of a session by the names of the puzzles."""

    best: Mapping[str, Report]

    def __repr__(self) -> str:
        solved = sum(report.solved for report in self.best.values())
        return f"{solved} solved, {len(self.best)} tried."

    def _repr_html_(self) -> str:
        rows = {name: {"": item.verdict, **item.costs()} for name, item in self.best.items()}
        table = pd.DataFrame.from_dict(rows, orient="index").fillna("").to_html(border=0)
        return f"<p>{escape(repr(self))}</p>{table if rows else ''}"


def signed(rng: np.random.Generator, *shape: int, most: int = 999) -> Floats:
    """Draw halves of whole numbers from -`most` to `most` except 0; float32."""
    whole = rng.integers(1, most + 1, shape) * rng.choice([-1, 1], shape)
    return (whole / 2).astype(np.float32)


def unwritten(*shape: int) -> Floats:
    """Return an output without initial values: all NaN; float32."""
    return np.full(shape, np.nan, np.float32)


def matrix(rng: np.random.Generator, degrees: list[int], width: int) -> sparse.csr_array:
    """Draw a matrix with the given row degrees, random columns and weights from -49.5 to 49.5."""
    drawn = [np.sort(rng.choice(width, degree, replace=False)) for degree in degrees]
    columns = np.concatenate([np.empty(0, int), *drawn]).astype(np.int32)
    pointers = np.cumsum([0, *degrees], dtype=np.int32)
    weights = signed(rng, len(columns), most=99)
    return sparse.csr_array((weights, columns, pointers), shape=(len(degrees), width))


def times(A: sparse.csr_array, X: Floats) -> Floats:
    """Multiply with a vector or a matrix; exact for whole numbers with sums below 2**24."""
    product: Floats = (A.astype(np.float64) @ X).astype(np.float32)
    return product


def nonzeros(A: sparse.csr_array) -> dict[str, Array]:
    """Return the columns and values of a matrix as arguments of a kernel."""
    return {"columns": A.indices, "values": A.data}
