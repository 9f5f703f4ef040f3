"""How many steps a function takes, counted and not timed: bytecodes, and elements NumPy reads."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt

from accelviz.course.checks.common import case, require
from accelviz.course.checks.names import looked_up

#: Functions and methods that sort by comparing, or that keep things sorted, or that do it for you.
SORTING = frozenset(
    {
        *("sort", "sorted", "argsort", "lexsort", "partition", "argpartition", "unique", "rank"),
        *("sort_values", "sort_index", "rankdata", "groupby", "heapify", "heappush", "heapq"),
        *("bisect", "insort", "nlargest", "nsmallest", "setdiff1d", "union1d", "intersect1d"),
        *("degree_sort", "sort_by_degree", "windowed_degree_sort", "vertex_order"),
        *("DegreeHistogram", "Permutation"),
    }
)
#: Methods of a list that walk it unseen.
WALKING = frozenset(("index", "count"))
#: An input four times as large may take this many times the steps: four, and a little to spare.
MOST_GROWTH = 4.5
_TIMES = 4


@dataclass
class Tally:
    """Steps counted so far."""

    steps: int = 0


class Watched(np.ndarray):
    """An array that adds every element that is read from it to a tally."""

    tally: Tally

    @classmethod
    def of(cls, array: npt.NDArray[Any], tally: Tally) -> Watched:
        """Watch a read-only view of an array."""
        watched = array.view(cls)
        watched.tally = tally
        watched.setflags(write=False)
        return watched

    def __array_finalize__(self, parent: Any) -> None:
        self.tally = getattr(parent, "tally", Tally())

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if "out" in options:
            options["out"] = tuple(_read(each) for each in options["out"])
        return getattr(ufunc, method)(*map(_read, inputs), **options)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        _refuse({function.__name__} & SORTING)
        return function(*map(_read, args), **{name: _read(each) for name, each in kwargs.items()})

    def __getitem__(self, place: Any) -> Any:
        found = self.view(np.ndarray)[place]
        self.tally.steps += int(np.size(found))
        return found

    def __iter__(self) -> Iterator[Any]:
        return iter(_read(self))

    def tolist(self) -> Any:
        """Count all elements as read."""
        return _read(self).tolist()

    def sort(self, *args: Any, **options: Any) -> None:
        """Refuse."""
        _refuse({"sort"})

    def argsort(self, *args: Any, **options: Any) -> Any:
        """Refuse."""
        _refuse({"argsort"})


def _read(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(map(_read, value))
    if not isinstance(value, Watched):
        return value
    value.tally.steps += value.size
    return value.view(np.ndarray)


def _refuse(names: set[str] | frozenset[str]) -> None:
    require(not names, f"it uses {', '.join(sorted(names))}; count instead")


def steps(function: Callable[[Any], Any], array: npt.NDArray[Any]) -> int:
    """Count what a call takes: bytecodes, lines, and elements that NumPy reads of `array`."""
    tally = Tally()

    def traced(frame: FrameType, event: str, argument: Any) -> Any:
        frame.f_trace_opcodes = True
        tally.steps += event in ("opcode", "line")
        return traced

    def asarray(value: Any, *args: Any, **options: Any) -> Any:
        return np.asanyarray(value, *args, **options)  # which keeps a Watched what it is

    watched, before = Watched.of(array, tally), sys.gettrace()
    sys._getframe().f_trace_opcodes = True  # Python 3.12 asks for it before the tracing begins
    with mock.patch.multiple(np, asarray=asarray, array=asarray):
        sys.settrace(traced)
        try:
            function(watched)
        finally:
            sys.settrace(before)
    return tally.steps


def linear(
    function: Callable[[Any], Any],
    make: Callable[[int], npt.NDArray[Any]],
    right: Callable[[Callable[[Any], Any], npt.NDArray[Any]], None],
) -> None:
    """Refuse a function that sorts by comparing, or whose steps grow faster than its input.

    Parameters
    ----------
    function : callable
        Of an array.
    make : callable
        `make(scale)` gives an input `scale` times as large as `make(1)` in all that counts.
    right : callable
        `right(function, array)` raises AssertionError if the result is wrong: a function that does
        nothing is no linear one.

    Raises
    ------
    AssertionError
        If it is no plain Python function, uses what Numba compiled, sorts, gives a wrong result, or
        takes more than `MOST_GROWTH` times the steps for four times the input.
    """
    found = looked_up([function])
    names = set(found) | {getattr(each, "__name__", "") for each in found.values()}
    _refuse(names & SORTING)
    walking = ", ".join(sorted(names & WALKING))
    require(not walking, f"it uses {walking}, which walks a whole list; no step of it is counted")
    compiled = [name for name, each in found.items() if hasattr(each, "py_func")]
    require(not compiled, f"{compiled} is compiled by Numba, where no step can be counted")
    with case("counting steps"):
        right(function, make(_TIMES))
        few, many = steps(function, make(1)), steps(function, make(_TIMES))
    require(
        many <= MOST_GROWTH * few,
        f"{_TIMES} times the input take {many / few:.1f} times the steps ({few:,}, then {many:,}); "
        f"at most {MOST_GROWTH} is linear",
    )
