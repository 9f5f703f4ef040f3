"""The exceptions of accelviz: one family, and every message says what would be right.

Each error names the argument at fault, what was wrong with it and what is expected instead, in
that order, so that a traceback read by a student is enough to mend the call.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np


class AccelvizError(Exception):
    """Base of every exception that accelviz raises on purpose.

    Parameters
    ----------
    argument : str
        Name of the argument, file or device at fault.
    problem : str
        What was found.
    expected : str, optional
        What would have been right, or what to do now.
    """

    _lead = "Expected"

    def __init__(self, argument: str, problem: str, expected: str = "") -> None:
        self.argument = argument
        self.problem = problem
        self.expected = expected
        message = f"{argument}: {problem.rstrip('.')}."
        if expected:
            message += f" {self._lead}: {expected.rstrip('.')}."
        super().__init__(message)

    def __reduce__(self) -> tuple[type, tuple[str, str, str]]:
        return type(self), (self.argument, self.problem, self.expected)


class GraphError(AccelvizError, ValueError):
    """A graph, or the file or object it should come from, is not a valid sparse matrix."""


class PartitionError(AccelvizError, ValueError):
    """A partition's parameters or its metadata are impossible, or its workload is wrong."""


class ArgumentError(AccelvizError, ValueError):
    """Any other argument is wrong: the features, a strategy's name, a column count."""


class DeviceUnavailable(AccelvizError, RuntimeError):  # noqa: N818
    """The device asked for is not usable here; the message says how to make it so."""

    _lead = "What to do"


class KernelError(AccelvizError, RuntimeError):
    """A CUDA kernel does not exist, does not compile or did not run."""

    _lead = "What to do"


def checked_integer(
    name: str,
    value: Any,
    most: int | None = None,
    *,
    least: int = 1,
    step: int = 1,
    why: str = "",
    error: type[AccelvizError] = PartitionError,
) -> int:
    """Return `value` as an int if it is one from `least` to `most`, and a multiple of `step`.

    Raises
    ------
    AccelvizError
        Of the type `error`, naming the parameter, what it is and, with `why`, what bounds it.
    """
    integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    least = max(least, step) if step > 1 else least
    if not integer or value < least or (most is not None and value > most) or value % step:
        multiple = f"a multiple of {step} from " if step > 1 else ""
        span = f"an integer of at least {least}" if most is None else f"{least} to {most}"
        because = f", because {why}" if why else ""
        raise error(name, f"got {value!r}", f"{multiple}{span}{because}")
    return int(value)


def is_number(value: Any) -> bool:
    """Say whether something is a finite number, Python's or NumPy's; True and False are none."""
    real = isinstance(value, int | float | np.integer | np.floating)
    return real and not isinstance(value, bool) and bool(abs(value) < math.inf)


def checked_number(
    name: str, value: Any, most: float = math.inf, *, or_zero: bool = False
) -> float:
    """Return `value` as a float if it is a number above 0, or at least 0, up to `most`.

    Raises
    ------
    ArgumentError
    """
    if not is_number(value) or not 0 <= value <= most or (value == 0 and not or_zero):
        expected = "a number of at least 0" if or_zero else "a number above 0"
        expected += "" if most == math.inf else f", at most {most:g}"
        raise ArgumentError(name, f"got {value!r}", expected)
    return float(value)


def checked_type(name: str, value: Any, kind: Any, expected: str) -> Any:
    """Return `value` if it is of a type, or of one of several.

    Raises
    ------
    ArgumentError
        Saying what would be right.
    """
    if not isinstance(value, kind):
        raise ArgumentError(name, f"got a {type(value).__name__}", expected)
    return value


def checked_choice(name: str, value: Any, choices: Iterable[str]) -> str:
    """Return `value` if it is one of some words.

    Raises
    ------
    ArgumentError
        Listing them.
    """
    known = list(choices)
    if not isinstance(value, str) or value not in known:
        raise ArgumentError(name, f"there is no {value!r}", f"one of {', '.join(known)}")
    return str(value)
