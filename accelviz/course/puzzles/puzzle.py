"""What a puzzle is: inputs for a kernel, the right outputs, and a par; and what a check says."""

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
    """A launch of the learner's kernel."""

    #: Blocks, and threads of a block.
    grid: int
    block: int
    #: Arrays and numbers in the order of the kernel's parameters, outputs as they are before.
    arguments: Mapping[str, Any]
    #: What the outputs hold in the end, exactly: sums of whole numbers below 2**24 are the same in
    #: any order.
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
        """Threads of all blocks."""
        return self.grid * self.block


class Par(NamedTuple):
    """What a good solution moves, with the first case of a puzzle."""

    #: Sectors of global memory, 32 bytes each.
    sectors: int
    #: Instructions of a warp that access memory, as `check.cost` counts them.
    requests: int


@dataclass(frozen=True)
class Puzzle:
    """A kernel to complete."""

    #: Gives the inputs, with random numbers from a generator. The first ones are scored and drawn,
    #: and small.
    cases: Callable[[np.random.Generator], Iterator[Case]]
    par: Par
    #: Whether a right result is not enough.
    par_is_the_task: bool = False


@dataclass(frozen=True, repr=False)
class Report:
    """The result of a check."""

    #: Of the puzzle.
    name: str
    solved: bool
    #: What is wrong, or that nothing is.
    said: str
    par: Par
    #: What the kernel took with the first input, if its results are right.
    cost: Par | None = None
    #: Draws `picture`.
    draw: Callable[[], str] = str

    @cached_property
    def picture(self) -> str:
        """Who reads and writes what, HTML; "" if the kernel did not run."""
        return self.draw()

    @property
    def over(self) -> float:
        """Sectors and requests over the par, together; less than 0 below it."""
        if self.cost is None:
            return float("inf")
        return float(sum(self.cost) - sum(self.par))

    @property
    def verdict(self) -> str:
        """A word or two: solved or not, at par or better."""
        if not self.solved or self.cost is None:
            return "Not yet"
        if self.cost == self.par:
            return "Solved, at par"
        more = too_many(self.cost, self.par)
        return f"Solved, with more {more} than the par" if more else "Solved, better than the par"

    def costs(self) -> dict[str, str]:
        """Return each cost beside the par, if there is a cost."""
        if self.cost is None:
            return {}
        return {name: f"{had} (par {par})" for name, had, par in _beside(self.cost, self.par)}

    def __repr__(self) -> str:
        told = ", ".join(f"{name}: {cost}" for name, cost in self.costs().items())
        return f"{self.verdict}. {self.said}" + (f" {told.capitalize()}." if told else "")

    def _repr_html_(self) -> str:
        text = f"<p><b>{'✓' if self.solved else '✗'} {escape(self.verdict)}.</b> "
        text += f'<span style="white-space: pre-wrap">{escape(self.said)}</span></p>'
        if self.cost is not None:
            table = pd.DataFrame({"yours": self.cost, "par": self.par}, Par._fields)
            text += table.to_html(border=0)
        return f'<div style="max-width: 72em">{text}{self.picture}</div>'


def too_many(had: Par, par: Par) -> str:
    """Say of what a kernel takes more than the par, "" if of nothing."""
    return " and ".join(name for name, number, most in _beside(had, par) if number > most)


def _beside(had: Par, par: Par) -> Iterator[tuple[str, int, int]]:
    return zip(Par._fields, had, par, strict=True)


@dataclass(frozen=True, repr=False)
class Scores:
    """The best answers of a session, by the names of the puzzles."""

    best: Mapping[str, Report]

    def __repr__(self) -> str:
        solved = sum(report.solved for report in self.best.values())
        return f"{solved} solved, {len(self.best)} tried."

    def _repr_html_(self) -> str:
        rows = {name: {"": it.verdict, **it.costs()} for name, it in self.best.items()}
        table = pd.DataFrame.from_dict(rows, orient="index").fillna("").to_html(border=0)
        return f"<p>{escape(repr(self))}</p>{table if rows else ''}"


def signed(rng: np.random.Generator, *shape: int, most: int = 999) -> Floats:
    """Draw whole numbers from -most to most without 0, float32."""
    return (rng.integers(1, most + 1, shape) * rng.choice([-1, 1], shape)).astype(np.float32)


def unwritten(*shape: int) -> Floats:
    """Return an output that nobody has written: NaN."""
    return np.full(shape, np.nan, np.float32)


def matrix(rng: np.random.Generator, degrees: list[int], width: int) -> sparse.csr_array:
    """Make a matrix with small signed weights whose rows have these degrees, in random columns."""
    drawn = [np.sort(rng.choice(width, degree, replace=False)) for degree in degrees]
    columns = np.concatenate([np.empty(0, int), *drawn]).astype(np.int32)
    pointers = np.cumsum([0, *degrees], dtype=np.int32)
    weights = signed(rng, len(columns), most=99)
    return sparse.csr_array((weights, columns, pointers), shape=(len(degrees), width))


def times(A: sparse.csr_array, X: Floats) -> Floats:
    """Multiply with a vector or a matrix; exact, as sums of whole numbers below 2**24 are."""
    product: Floats = (A.astype(np.float64) @ X).astype(np.float32)
    return product


def nonzeros(A: sparse.csr_array) -> dict[str, Array]:
    """Return the arguments that describe the nonzeros of a matrix."""
    return {"columns": A.indices, "values": A.data}
