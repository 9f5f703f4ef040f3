"""An operation, its operands by name and its reference, whichever strategy computes it."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from accelviz.errors import ArgumentError
from accelviz.graph import Pattern
from accelviz.plans.storage import restored, stored

#: The axes of operands that the pattern gives; the others are widths. Device scalars are four.
ROWS, COLUMNS, NONZEROS, DEVICE_SCALARS = "rows", "columns", "nonzeros", "device_scalars"
#: Bytes of a float32, and the distance from 1 to the next one.
FLOAT_BYTES, EPS32 = 4, float(np.finfo(np.float32).eps)
_FLOAT32, _UINT32 = np.dtype(np.float32), np.dtype(np.uint32)

Arrays = Mapping[str, Any]


@dataclass(frozen=True)
class Operand:
    """An input or output.

    Attributes
    ----------
    name : str
        What kernels, executors and callers call it.
    axes : tuple of str
        What each axis counts: "rows", "columns" and "nonzeros" of the matrix, a width, or
        "device_scalars". Along "nonzeros" the caller's order is the graph's. A number has no axis:
        kernels get it by value. Device scalars are passed by pointer, so that a captured CUDA graph
        reads new values at replay.
    gathered : bool
        Whether kernels read whole rows of it in the order of the nonzeros. Such an input may be
        kept in 16 bits.
    weights : bool
        Whether a run that brings none takes the graph's own weights.
    default : float or tuple of int, optional
        Of a number or of device scalars: what a run that brings none takes.
    least, below : float
        The range of a number, without its upper end.
    dtype : numpy.dtype
        Of its elements; uint32 of device scalars.
    """

    name: str
    axes: tuple[str, ...]
    gathered: bool = False
    weights: bool = False
    default: float | tuple[int, ...] | None = None
    least: float = -math.inf
    below: float = math.inf
    dtype: np.dtype[Any] = _FLOAT32

    def __post_init__(self) -> None:
        if isinstance(self.default, tuple):
            object.__setattr__(self, "dtype", _UINT32)

    @property
    def of_nonzeros(self) -> bool:
        """Whether it has an entry for each nonzero."""
        return self.axes[:1] == (NONZEROS,)

    def setting(self, value: Any) -> Any:
        """Return a number as a scalar of NumPy, device scalars as an array of uint32.

        Raises
        ------
        ArgumentError
            If it is something else, or out of range.
        """
        value = self.default if value is None else value
        if isinstance(self.default, tuple):
            scalars = np.asarray(value)
            fits = scalars.shape == (len(self.default),) and scalars.dtype.kind in "iu"
            if not fits or scalars.min() < 0 or scalars.max() >= 1 << 32:
                expected = f"{len(self.default)} integers of 0 or more, below 2^32"
                raise ArgumentError(self.name, f"got {value!r}", expected)
            return scalars.astype(np.uint32)
        if isinstance(value, np.ndarray) and not value.ndim:
            value = value.item()
        fits = isinstance(value, int | float | np.integer | np.floating)
        if not fits or isinstance(value, bool) or not self.least <= value < self.below:
            ends = [f"at least {self.least:g}"] * (self.least > -math.inf)
            ends += [f"below {self.below:g}"] * (self.below < math.inf)
            expected = f"a number {' and '.join(ends) or 'that is finite'}"
            raise ArgumentError(self.name, f"got {value!r}", expected)
        return np.float32(value)

    def shape(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """Return its shape, given the length of each axis."""
        return tuple(sizes[axis] for axis in self.axes)


@dataclass(frozen=True)
class Traffic:
    """Bytes that an operation moves, whatever its strategy.

    Attributes
    ----------
    compulsory : int
        Every input read once and every output written once.
    gathered : int
        A row of the gathered operand read anew for each nonzero.
    streamed : int
        All that is not gathered: read or written once, in order.
    gathered_rows, gathered_row_bytes : int
        Rows of the gathered operand, and the bytes of one.
    """

    compulsory: int
    gathered: int
    streamed: int
    gathered_rows: int
    gathered_row_bytes: int

    @classmethod
    def of_columns(cls, pattern: Pattern, row_bytes: int, streamed: int) -> Traffic:
        """Count an operation that reads `row_bytes` of its column for each nonzero."""
        return cls(
            compulsory=streamed + row_bytes * pattern.used_columns,
            gathered=row_bytes * pattern.nnz,
            streamed=streamed,
            gathered_rows=pattern.shape[1],
            gathered_row_bytes=row_bytes,
        )


@dataclass(frozen=True, eq=False)
class Operation:
    """An operation on the nonzeros of a matrix.

    Attributes
    ----------
    name : str
    formula : str
        What it computes, in one line.
    widths : mapping of str to int or None
        Sizes that do not follow from the pattern, with their defaults. None stands for no default,
        as of `n_cols`.
    inputs, outputs : tuple of Operand
        `values`, the weights, come first where there are any, and numbers and device scalars last.
    fastest : str
        The strategy that is taken if none is named.
    reference : callable
        `reference(pattern, inputs)` gives `{output: (expected, bound)}` in float64 from float64
        inputs. A float32 result, summed in any order, is at most `bound` from `expected`.
    replay : callable
        `replay(plan)` gives a function of inputs and outputs that does on the CPU what the plan's
        workload says. It refers to the plan's arrays, not to the plan.
    traffic : callable
        `traffic(pattern, widths, element_bytes)` gives `Traffic`; the last is the size of an
        element of gathered inputs.
    terms : callable, optional
        `terms(pattern, sizes)` gives how many products each entry of the output sums, of a shape
        that broadcasts to the output's. Plans of other `arithmetic` than float32 need it.
    completed : callable, optional
        `completed(pattern, inputs)` puts random inputs right that depend on each other, where an
        operation makes no sense of independent ones.
    by_sender : bool
        Whether strategies walk the transposed matrix (first), so that closed forms are of the
        degrees of columns.
    reduction : {"sum", "mean", "max", "min"}
        How an output combines what its nonzeros bring.
    independent : str
        A width whose entries do not depend on each other, as the columns of an SpMM; "" if none.
    """

    name: str
    formula: str
    widths: Mapping[str, int | None]
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    fastest: str
    reference: Callable[[Pattern, Arrays], Mapping[str, tuple[Any, Any]]]
    replay: Callable[[Any], Callable[[Arrays, Arrays], None]]
    traffic: Callable[[Pattern, Mapping[str, int], int], Traffic]
    terms: Callable[[Pattern, Mapping[str, int]], Any] | None = None
    completed: Callable[[Pattern, Arrays], Arrays] | None = None
    by_sender: bool = False
    reduction: str = "sum"
    independent: str = ""
    operands: Mapping[str, Operand] = field(init=False)

    def __post_init__(self) -> None:
        operands = {operand.name: operand for operand in (*self.inputs, *self.outputs)}
        object.__setattr__(self, "operands", operands)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Operation) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    @functools.cached_property  # every call asks for it
    def dense(self) -> tuple[Operand, ...]:
        """The inputs that a caller must give: all but weights and numbers."""
        return tuple(
            operand for operand in self.inputs if not operand.weights and operand.default is None
        )

    @functools.cached_property
    def settings(self) -> tuple[Operand, ...]:
        """The inputs that are numbers or device scalars, each with a default."""
        return tuple(operand for operand in self.inputs if operand.default is not None)

    def named(self, *dense: Any, **operands: Any) -> dict[str, Any]:
        """Return operands by name, the dense inputs being given in their order.

        Raises
        ------
        ArgumentError
            If there are too few or too many, or one has a name that the operation does not know.
        """
        names = [operand.name for operand in self.dense]
        if len(dense) != len(names):
            raise ArgumentError(
                "operands", f"{len(dense)} for {self.formula}", f"{', '.join(names)}, in this order"
            )
        for name, array in operands.items():
            if name not in self.operands and array is not None:
                raise ArgumentError(name, f"{self.name} has no such operand", ", ".join(names))
        return {**dict(zip(names, dense, strict=True)), **operands}

    def rounded(self, operands: Mapping[str, Any], storage: str) -> dict[str, Any]:
        """Return host operands as kernels find them: the gathered ones as storage rounds them."""
        arrays = dict(operands)
        for operand in self.inputs:
            if operand.gathered:
                arrays[operand.name] = restored(stored(arrays[operand.name], storage), storage)
        return arrays

    def sizes(self, pattern: Pattern, widths: Mapping[str, int]) -> dict[str, int]:
        """Return the length of every axis."""
        of_pattern = {ROWS: pattern.shape[0], COLUMNS: pattern.shape[1], NONZEROS: pattern.nnz}
        return {**of_pattern, DEVICE_SCALARS: 4, **widths}

    def widths_of(self, operands: Mapping[str, Any]) -> dict[str, int]:
        """Read the widths off the shapes of dense inputs.

        Raises
        ------
        ArgumentError
            If an input has another number of axes, or no element along a width.
        """
        widths: dict[str, int] = {}
        for operand in self.dense:
            shape = tuple(operands[operand.name].shape)
            if len(shape) != len(operand.axes):
                wanted = f"{len(operand.axes)}-D: {', '.join(operand.axes)}"
                vector = "; write X[:, None] for a vector" if len(shape) == 1 else ""
                raise ArgumentError(operand.name, f"shape {shape}", wanted + vector)
            for axis, size in zip(operand.axes, shape, strict=True):
                if axis in self.widths and axis not in widths:
                    if size < 1:
                        raise ArgumentError(operand.name, f"shape {shape}", f"at least one {axis}")
                    widths[axis] = size
        return widths
