"""Helpers of all checks: silence the student's code, name the failing case, compare integers."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.graph import Graph

#: Remarks of the running test for the person who grades; they cost no points.
remarks: list[str] = []
#: What the running test has measured of schemes, for the leaderboard, by scheme and graph.
measurements: dict[tuple[str, str], dict[str, Any]] = {}


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Discard the block's output and warnings: nbgrader takes output on stderr for a failure."""
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        warnings.catch_warnings(),
        np.errstate(all="ignore"),
    ):
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def case(name: str) -> Iterator[None]:
    """Run the block quietly, and add the name of the case to any exception.

    The name becomes the beginning of the message, because a table of grades shows only the first
    line of it. It becomes a note if the exception does not keep its message in `args`.
    """
    try:
        with quietly():
            yield
    except Exception as error:
        if len(error.args) == 1 and isinstance(error.args[0], str):
            error.args = (f"{name}: {error.args[0]}",)
        if name not in str(error):
            error.add_note(f"The case: {name}.")
        raise


def require(condition: Any, problem: str) -> None:
    """Raise AssertionError with `problem` if the condition does not hold."""
    if not condition:
        raise AssertionError(problem)


def integers(name: str, value: Any, shape: tuple[int, ...]) -> npt.NDArray[np.int64]:
    """Return a student's result as int64; AssertionError unless it is integers of that shape."""
    array = np.asarray(value)
    require(array.shape == shape, f"{name} has shape {array.shape}, and should have {shape}")
    kind = array.dtype.kind
    require(kind in "iu" or not array.size, f"{name} is of {array.dtype}, and should be integers")
    return array.astype(np.int64)


def whole(name: str, values: Any) -> list[int]:
    """Return numbers as int; AssertionError for a float that is not whole."""
    numbers = list(values)
    for number in numbers:
        is_whole = not isinstance(number, str | bytes) and float(number).is_integer()
        require(is_whole, f"{name} has {number!r}, which is no whole number")
    return [int(number) for number in numbers]


def same(name: str, value: Any, expected: npt.NDArray[Any]) -> None:
    """Raise AssertionError, naming the first difference, unless these integers are as expected."""
    array = integers(name, value, expected.shape)
    different = np.argwhere(array != expected)
    if different.size:
        index = tuple(different[0].tolist())
        where = ", ".join(map(str, index))
        raise AssertionError(
            f"{name}[{where}] is {array[index]}, and should be {expected[index]} "
            f"({len(different)} of {array.size} are wrong)"
        )


def graph_data(graph: Graph) -> list[Any]:
    """Return a graph as plain data, for another process."""
    arrays = [graph.row_pointers, graph.column_indices, graph.values]
    return [*arrays, list(graph.shape), graph.name]


def graph_from(data: Any) -> Graph:
    """Return the graph of `graph_data`."""
    pointers, columns, values, shape, name = data
    return Graph(pointers, columns, values, tuple(shape), name)


def share_of(points: float, share: float) -> float:
    """Return `points` times a share, clipped to 0 to 1, to two decimals.

    The result is a plain float: nbgrader reads a cell's last value as points only then.
    """
    return round(float(points) * min(1.0, max(0.0, float(share))), 2)
