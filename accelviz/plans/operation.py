"""Operations such as SpMM: formula, operands, reference result and traffic of any strategy."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from accelviz.errors import ArgumentError
from accelviz.graph import Pattern
from accelviz.immutable import Immutable
from accelviz.plans.storage import restored, stored

#: Axes of operands: rows, columns and nonzeros of the matrix, and four device scalars. All other
#: axes are widths of the operation.
ROWS, COLUMNS, NONZEROS, DEVICE_SCALARS = "rows", "columns", "nonzeros", "device_scalars"
#: Bytes of a float32, and the distance from 1 to the next larger float32.
FLOAT_BYTES, EPS32 = 4, float(np.finfo(np.float32).eps)
_FLOAT32, _UINT32 = np.dtype(np.float32), np.dtype(np.uint32)

Arrays = Mapping[str, Any]


@dataclass(frozen=True)
class Operand:
    """An input or output of an operation: an array, a number, or device scalars.

    Attributes
    ----------
    name : str
        Name in kernels, in devices and in the caller's arguments.
    axes : tuple of str
        Name of each axis: "rows", "columns" or "nonzeros" of the matrix, a width, or
        "device_scalars". Callers give entries of nonzeros in the graph's order. A number has no
        axis and is passed to kernels by value. Device scalars are passed by pointer, so that a
        captured CUDA graph reads new values at replay.
    gathered : bool
        Whether kernels read whole rows of it in the order of the nonzeros. Such an input may be
        stored in 16 bits.
    weights : bool
        Whether the graph's weights are the default.
    default : float or tuple of int, optional
        Default of a number (float) or of device scalars (tuple of int).
    least, below : float
        Range of a number: at least `least` and less than `below`.
    dtype : numpy.dtype
        Type of the elements; uint32 for device scalars.
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
        """Whether it has one entry per nonzero."""
        return self.axes[:1] == (NONZEROS,)

    def setting(self, value: Any) -> Any:
        """Return a number as np.float32, device scalars as an array of uint32.

        Raises
        ------
        ArgumentError
            If the value has another type, or is out of range.
        """
        value = self.default if value is None else value
        if isinstance(self.default, tuple):
            scalars = np.asarray(value)
            integers = scalars.shape == (len(self.default),) and scalars.dtype.kind in "iu"
            if not integers or scalars.min() < 0 or scalars.max() >= 1 << 32:
                expected = f"{len(self.default)} integers of 0 or more, below 2^32"
                raise ArgumentError(self.name, f"got {value!r}", expected)
            return scalars.astype(np.uint32)
        if isinstance(value, np.ndarray) and not value.ndim:
            value = value.item()
        is_number = isinstance(value, int | float | np.integer | np.floating)
        if not is_number or isinstance(value, bool) or not self.least <= value < self.below:
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
    """Bytes that an operation moves to and from memory, for any strategy.

    Attributes
    ----------
    compulsory : int
        Bytes if every input is read once and every output is written once.
    gathered : int
        Bytes of the gathered operand if one of its rows is read for each nonzero, without reuse.
    streamed : int
        Bytes of all other operands and of the matrix, each read or written once, in order.
    gathered_rows, gathered_row_bytes : int
        Number of rows of the gathered operand, and bytes of one row.
    """

    compulsory: int
    gathered: int
    streamed: int
    gathered_rows: int
    gathered_row_bytes: int

    @classmethod
    def of_columns(cls, pattern: Pattern, row_bytes: int, streamed: int) -> Traffic:
        """Return the traffic of an operation that gathers `row_bytes` bytes per nonzero."""
        return cls(
            compulsory=streamed + row_bytes * pattern.used_columns,
            gathered=row_bytes * pattern.nnz,
            streamed=streamed,
            gathered_rows=pattern.shape[1],
            gathered_row_bytes=row_bytes,
        )


@dataclass(frozen=True, eq=False)
class Operation(Immutable):
    """An operation on the nonzeros of a matrix.

    Attributes
    ----------
    name : str
    formula : str
        Formula of the outputs, in one line.
    widths : mapping of str to int or None
        Sizes that the pattern does not determine, with their defaults. None is no default, as for
        `n_cols`.
    inputs, outputs : tuple of Operand
        Weights (`values`) are the first input, if any; numbers and device scalars are the last.
    fastest : str
        Name of the default strategy.
    reference : callable
        `reference(pattern, inputs)` returns `{output: (expected, bound)}` in float64 from float64
        inputs. A float32 result, summed in any order, differs from `expected` by at most `bound`.
    replay : callable
        `replay(plan)` returns a function of inputs and outputs that executes the plan's workload
        on the CPU. It refers to the plan's arrays, not to the plan.
    traffic : callable
        `traffic(pattern, widths, element_bytes)` returns the `Traffic`; `element_bytes` is the size
        of an element of gathered inputs.
    terms : callable, optional
        `terms(pattern, sizes)` returns the number of products that each output entry sums, in a
        shape that broadcasts to the output's. Required for plans with `arithmetic` != "float32".
    completed : callable, optional
        `completed(pattern, inputs)` corrects random inputs that depend on each other, for
        operations whose inputs cannot be independent.
    by_sender : bool
        Whether strategies walk the transposed matrix (first), so that closed forms take the
        degrees of columns.
    reduction : {"sum", "mean", "max", "min"}
        Reduction of the terms of one output entry.
    independent : str
        Name of a width with independent entries, as the columns of an SpMM; "" if there is none.
    fastest_on_cpu : str
        Name of the default strategy of a replay, such as one without another order of the rows; ""
        is `fastest`.
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
    fastest_on_cpu: str = ""
    operands: Mapping[str, Operand] = field(init=False)

    def __post_init__(self) -> None:
        operands = {operand.name: operand for operand in (*self.inputs, *self.outputs)}
        object.__setattr__(self, "operands", operands)
        super().__post_init__()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Operation) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    @functools.cached_property  # read by every call
    def dense(self) -> tuple[Operand, ...]:
        """The inputs without a default: all but weights, numbers and device scalars."""
        return tuple(
            operand for operand in self.inputs if not operand.weights and operand.default is None
        )

    @functools.cached_property
    def settings(self) -> tuple[Operand, ...]:
        """The inputs that are numbers or device scalars, each with a default."""
        return tuple(operand for operand in self.inputs if operand.default is not None)

    def named(self, *dense: Any, **operands: Any) -> dict[str, Any]:
        """Return operands by name; `dense` are the dense inputs in the operation's order.

        Raises
        ------
        ArgumentError
            If the number of dense inputs is wrong, or the operation has no operand of a name.
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
        """Return float32 operands with gathered inputs rounded to a storage type."""
        arrays = dict(operands)
        for operand in self.inputs:
            if operand.gathered:
                arrays[operand.name] = restored(stored(arrays[operand.name], storage), storage)
        return arrays

    def sizes(self, pattern: Pattern, widths: Mapping[str, int]) -> dict[str, int]:
        """Return the length of every axis."""
        matrix = {ROWS: pattern.shape[0], COLUMNS: pattern.shape[1], NONZEROS: pattern.nnz}
        return {**matrix, DEVICE_SCALARS: 4, **widths}

    def widths_of(self, operands: Mapping[str, Any]) -> dict[str, int]:
        """Return the widths, read from the shapes of the dense inputs.

        Raises
        ------
        ArgumentError
            If an input has a wrong number of axes, or a width of 0.
        """
        widths: dict[str, int] = {}
        for operand in self.dense:
            shape = tuple(operands[operand.name].shape)
            if len(shape) != len(operand.axes):
                expected = f"{len(operand.axes)}-D: {', '.join(operand.axes)}"
                expected += "; write X[:, None] for a vector" if len(shape) == 1 else ""
                raise ArgumentError(operand.name, f"shape {shape}", expected)
            for axis, size in zip(operand.axes, shape, strict=True):
                if axis in self.widths and axis not in widths:
                    if size < 1:
                        raise ArgumentError(operand.name, f"shape {shape}", f"at least one {axis}")
                    widths[axis] = size
        return widths
