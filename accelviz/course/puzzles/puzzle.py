"""What a puzzle is: inputs for a kernel, the right outputs, and a par; and what a check says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from accelviz.arrays import Longs

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int32]


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


@dataclass(frozen=True)
class Par:
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
        return float(sum(asdict(self.cost).values()) - sum(asdict(self.par).values()))

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
        par, cost = asdict(self.par), {} if self.cost is None else asdict(self.cost)
        return {name: f"{number} (par {par[name]})" for name, number in cost.items()}

    def __repr__(self) -> str:
        told = ", ".join(f"{name}: {cost}" for name, cost in self.costs().items())
        return f"{self.verdict}. {self.said}" + (f" {told.capitalize()}." if told else "")

    def _repr_html_(self) -> str:
        text = f"<p><b>{'✓' if self.solved else '✗'} {escape(self.verdict)}.</b> "
        text += f'<span style="white-space: pre-wrap">{escape(self.said)}</span></p>'
        if self.cost is not None:
            table = pd.DataFrame({"yours": asdict(self.cost), "par": asdict(self.par)})
            text += table.to_html(border=0)
        return f'<div style="max-width: 72em">{text}{self.picture}</div>'


def too_many(had: Par, par: Par) -> str:
    """Say of what a kernel takes more than the par, "" if of nothing."""
    return " and ".join(name for name, most in asdict(par).items() if getattr(had, name) > most)


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


@dataclass(frozen=True)
class Rows:
    """A matrix in CSR with small signed weights, degrees as wanted, and `width` columns."""

    pointers: Ints
    columns: Ints
    values: Floats
    width: int

    @classmethod
    def of(cls, rng: np.random.Generator, degrees: list[int], width: int) -> Rows:
        """Make a matrix whose rows have these degrees, with ascending columns in each."""
        pointers = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int32)
        drawn = [np.sort(rng.choice(width, degree, replace=False)) for degree in degrees]
        columns = np.concatenate([np.empty(0, int), *drawn]).astype(np.int32)
        return cls(pointers, columns, signed(rng, len(columns), most=99), width)

    @property
    def row_of(self) -> Ints:
        """The row of each nonzero."""
        return np.repeat(np.arange(len(self.degrees)), self.degrees).astype(np.int32)

    @property
    def degrees(self) -> Longs:
        """Nonzeros of each row."""
        lengths: Longs = np.diff(self.pointers).astype(np.int64)
        return lengths

    @property
    def nonzeros(self) -> dict[str, Array]:
        """The arguments that describe nonzeros."""
        return {"columns": self.columns, "values": self.values}

    def times(self, X: Floats) -> Floats:
        """Multiply with a vector or a matrix."""
        Y = np.zeros((len(self.degrees), *X.shape[1:]))
        weights = self.values.reshape(-1, *[1] * (X.ndim - 1)).astype(np.float64)
        np.add.at(Y, self.row_of, weights * X[self.columns])
        assert np.abs(Y).max(initial=0) < 2**24
        return Y.astype(np.float32)
