"""What all checks share: the student's code runs silently, and a failure names its case."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Swallow what the block prints and warns of: nbgrader takes output on stderr for a failure."""
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
    """Run the block quietly, and name the case in whatever it raises."""
    try:
        with quietly():
            yield
    except Exception as error:
        error.add_note(f"The case: {name}.")
        raise


def require(condition: Any, problem: str) -> None:
    """Raise AssertionError with `problem` if the condition does not hold."""
    if not condition:
        raise AssertionError(problem)


def integers(what: str, found: Any, shape: tuple[int, ...]) -> npt.NDArray[np.int64]:
    """Return what a student's function gave as int64, if it is integers of that shape.

    Raises
    ------
    AssertionError
        If it is not.
    """
    array = np.asarray(found)
    require(array.shape == shape, f"{what} has shape {array.shape}, and should have {shape}")
    kind = array.dtype.kind
    require(kind in "iu" or not array.size, f"{what} is of {array.dtype}, and should be integers")
    return array.astype(np.int64)


def same(what: str, found: Any, expected: npt.NDArray[Any]) -> None:
    """Raise AssertionError, naming the first difference, unless these integers are as expected."""
    array = integers(what, found, expected.shape)
    different = np.argwhere(array != expected)
    if different.size:
        place = tuple(int(i) for i in different[0])
        where = ", ".join(map(str, place))
        raise AssertionError(
            f"{what}[{where}] is {array[place]}, and should be {expected[place]} "
            f"({len(different)} of {array.size} are wrong)"
        )


def share_of(points: float, share: float) -> float:
    """Return a share (0 to 1, cut off there) of some points, to two decimals, for partial credit.

    nbgrader reads a cell's last value as points only if it is written as a plain float.
    """
    return round(float(points) * min(1.0, max(0.0, float(share))), 2)
