"""The exceptions of accelviz, checks of arguments that raise them, and commands that they name.

Each message has the wrong argument, the problem and the expected value, in this order.
"""

from __future__ import annotations

import math
import os
import reprlib
import shlex
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np


class AccelvizError(Exception):
    """Base class of all exceptions of accelviz.

    Parameters
    ----------
    argument : str
        Name of the wrong argument, file or device.
    problem : str
        Description of the actual value or problem.
    expected : str, optional
        Description of valid values, or of a remedy.
    """

    _lead = "Expected"
    #: Characters of the problem and of the expected value: together less than a screen.
    _limit = 1500

    def __init__(self, argument: str, problem: str, expected: str = "") -> None:
        argument, problem, expected = (
            text if len(text) <= self._limit else f"{text[: self._limit - 200]} ... {text[-190:]}"
            for text in (argument, problem, expected)
        )
        self.argument = argument
        self.problem = problem
        self.expected = expected
        message = f"{argument}: {problem.removesuffix('.')}{'' if problem.endswith('?') else '.'}"
        if expected:
            message += f" {self._lead}: {expected.rstrip('.')}."
        super().__init__(message)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.argument, self.problem, self.expected)


_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 120


class GraphError(AccelvizError, ValueError):
    """A graph, or its file or source object, is not a valid sparse matrix."""


class PartitionError(AccelvizError, ValueError):
    """Parameters, metadata or the workload of a partition are invalid."""


class ArgumentError(AccelvizError, ValueError):
    """Any other argument is invalid: features, a strategy's name, a number of columns."""


class DeviceUnavailable(AccelvizError, RuntimeError):  # noqa: N818
    """The requested device is not usable on this machine; the message has a remedy."""

    _lead = "What to do"


class KernelError(AccelvizError, RuntimeError):
    """A CUDA kernel does not exist, does not compile or did not run.

    Attributes
    ----------
    mistake : str
        Identifier of the mistake that the emulator detected, such as "race"; "" for others.
    """

    _lead = "What to do"
    mistake = ""

    def __reduce__(self) -> tuple[Any, ...]:
        return *super().__reduce__(), {"mistake": self.mistake}


def short(value: Any) -> str:
    """Return the repr of a value, cut to a line: six items of a list, 120 characters of a text."""
    return _SHORT.repr(value)


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
    """Return `value` as an int after checking it: a multiple of `step` from `least` to `most`.

    Raises
    ------
    AccelvizError
        An exception of type `error`. With `why`, its message has the reason for the bounds.
    """
    integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    least = max(least, step) if step > 1 else least
    if not integer or value < least or (most is not None and value > most) or value % step:
        multiple = f"a multiple of {step} from " if step > 1 else ""
        span = f"an integer of at least {least}" if most is None else f"{least} to {most}"
        because = f", because {why}" if why else ""
        raise error(name, f"got {value!r}", f"{multiple}{span}{because}")
    return int(value)


def memory_bytes() -> int:
    """Return the size of the host's memory in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def check_fits(
    name: str,
    problem: str,
    n_bytes: int,
    expected: str,
    *,
    share: float = 1.0,
    error: type[AccelvizError] | None = None,
) -> None:
    """Check that arrays of `n_bytes` bytes fit in a share of the host's memory.

    Raises
    ------
    AccelvizError
        An exception of type `error`, by default ArgumentError, if they do not.
    """
    memory = memory_bytes()
    if n_bytes > share * memory:
        gib = 1 << 30
        problem += (
            f", which takes {n_bytes / gib:,.1f} GiB, and this machine has {memory / gib:,.1f}"
        )
        raise (error or ArgumentError)(name, problem, expected)


def is_number(value: Any) -> bool:
    """Return whether `value` is a finite Python or NumPy number, other than True and False."""
    real = isinstance(value, int | float | np.integer | np.floating)
    return real and not isinstance(value, bool) and bool(abs(value) < math.inf)


def checked_number(
    name: str, value: Any, most: float = math.inf, *, or_zero: bool = False
) -> float:
    """Return `value` as a float after checking that it is above 0 and at most `most`.

    Raises
    ------
    ArgumentError
        If it is not; with `or_zero`, 0 is valid too.
    """
    if not is_number(value) or not 0 <= value <= most or (value == 0 and not or_zero):
        expected = "a number of at least 0" if or_zero else "a number above 0"
        expected += "" if most == math.inf else f", at most {most:g}"
        raise ArgumentError(name, f"got {value!r}", expected)
    return float(value)


def checked_type(name: str, value: Any, kind: Any, expected: str) -> Any:
    """Return `value` after checking that it is an instance of `kind`, a type or several.

    Raises
    ------
    ArgumentError
        With `expected`, if it is not.
    """
    if not isinstance(value, kind):
        raise ArgumentError(name, f"got a {type(value).__name__}", expected)
    return value


def checked_choice(name: str, value: Any, choices: Iterable[str]) -> str:
    """Return `value` after checking that it is one of the strings `choices`.

    Raises
    ------
    ArgumentError
        With the list of choices, if it is not.
    """
    valid = list(choices)
    if not isinstance(value, str) or value not in valid:
        raise ArgumentError(name, f"there is no {value!r}", f"one of {', '.join(valid)}")
    return str(value)


def pip_install(*requirements: str) -> str:
    """Return the command that installs packages for this interpreter, in a cell or in a shell."""
    packages = shlex.join(requirements)
    if "ipykernel" in sys.modules:
        return f"%pip install {packages}"
    return f"{_in_a_shell(Path(sys.executable))} -m pip install {packages}"


def accelviz_command() -> str:
    """Return how a shell in this folder calls this interpreter's `accelviz`."""
    python = Path(sys.executable)
    script = python.with_name("accelviz")
    return _in_a_shell(script) if script.exists() else f"{_in_a_shell(python)} -m accelviz"


def _in_a_shell(program: Path) -> str:
    """Return a program's name if a shell finds it, else its path, relative if below here."""
    if shutil.which(program.name) == str(program):
        return program.name
    try:
        folder = os.path.join(os.getcwd(), "")
    except OSError:  # the folder was removed
        folder = ""
    return shlex.quote(str(program).removeprefix(folder))
