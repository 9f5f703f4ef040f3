"""What a puzzle is: inputs for a kernel, the right outputs, and a par."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.arrays import Longs

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Case:
    """A launch of the learner's kernel.

    Parameters
    ----------
    grid, block : int
        Blocks, and threads of a block.
    arguments : mapping of str to array or number
        In the order of the kernel's parameters, outputs with what they hold before.
    expected : mapping of str to array
        What the outputs hold in the end, exactly: sums of whole numbers below 2**24 are the same in
        any order.
    """

    grid: int
    block: int
    arguments: Mapping[str, Any]
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
    """What a good solution moves, with the first case of a puzzle.

    Parameters
    ----------
    sectors : int
        Of global memory, 32 bytes each.
    requests : int
        Instructions of a warp that access memory, as `check.cost` counts them.
    """

    sectors: int
    requests: int


@dataclass(frozen=True)
class Puzzle:
    """A kernel to complete.

    Parameters
    ----------
    cases : callable
        Gives the inputs, with random numbers from a generator. The first ones are scored and drawn,
        and small.
    par : Par
    par_is_the_task : bool
        Whether a right result is not enough.
    """

    cases: Callable[[np.random.Generator], Iterator[Case]]
    par: Par
    par_is_the_task: bool = False


def signed(rng: np.random.Generator, *shape: int, most: int = 999) -> Floats:
    """Draw whole numbers from -most to most without 0, float32."""
    return (rng.integers(1, most + 1, shape) * rng.choice([-1, 1], shape)).astype(np.float32)


def unwritten(*shape: int) -> Floats:
    """Return an output that nobody has written: NaN."""
    return np.full(shape, np.nan, np.float32)


@dataclass(frozen=True)
class Rows:
    """A matrix in CSR with small signed weights, and degrees as wanted.

    Attributes
    ----------
    pointers, columns : array of int32
    values : array of float32
    width : int
        Columns of the matrix.
    """

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
