"""The contract of a strategy: it turns a graph and a column count into a plan.

Everything else (executors, plots, benchmarks, tests) reads plans and their workloads and never asks
which strategy made them. A new strategy is one `.cu` file, one Python file and one line in the
registry; a class in a notebook cell will do as well, passed to `plan` in place of a name.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, TypeVar

import numpy as np

from accelviz.errors import ArgumentError
from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.partition.summary import PartitionSummary
from accelviz.strategies.plans import WARP_SIZE, Plan

Made = TypeVar("Made")


class Strategy(ABC):
    """A way to map SpMM onto a GPU.

    Attributes
    ----------
    name : str
        The name people call it by.
    summary : str
        What it does, in one line.
    """

    name: ClassVar[str]
    summary: ClassVar[str] = ""

    @abstractmethod
    def build(self, graph: Graph, n_cols: int, *args: Any, **parameters: Any) -> Plan:
        """Make the plan.

        Parameters
        ----------
        graph : Graph
            Any valid graph, empty ones included.
        n_cols : int
            Columns of the features, at least 1.
        *args, **parameters
            An override names the strategy's own parameters here instead, keyword-only and with
            defaults; `plan` takes their names from its signature.
        """

    def summarize(
        self, rows: RowDegrees, n_cols: int, *args: Any, **parameters: Any
    ) -> PartitionSummary | None:
        """Say what `build` would make of such rows, in closed form from their degrees.

        Parameters
        ----------
        rows : RowDegrees
            With the row pointers, or without: then what depends on the rows' order is None.
        n_cols : int
        *args, **parameters
            An override names the parameters of `build` here, without defaults.

        Returns
        -------
        PartitionSummary or None
            None, as here, where no closed form is known.
        """
        return None

    def choices(self, graph: Graph, n_cols: int) -> dict[str, tuple[Any, ...]]:
        """Return the values of its parameters that are worth measuring; see `accelviz.tune`.

        Parameters
        ----------
        graph : Graph
        n_cols : int

        Returns
        -------
        dict of str to tuple
            In the order in which `tune` varies them; empty, as here, where there is no choice.
        """
        return {}

    def defaults(self) -> dict[str, Any]:
        """Return the strategy's own parameters and their defaults, from `build`'s signature."""
        return keyword_defaults(type(self).build)

    def plan(self, graph: Graph, n_cols: int, **parameters: Any) -> Plan:
        """Check the column count and the parameters' names, then build.

        Raises
        ------
        ArgumentError
            If `n_cols` is no positive integer, or a parameter is not this strategy's.
        """
        return self.build(graph, self.checked(n_cols, parameters), **parameters)

    def closed_form(
        self, rows: RowDegrees, n_cols: int, **parameters: Any
    ) -> PartitionSummary | None:
        """Check the column count and the parameters' names, then `summarize`.

        Raises
        ------
        ArgumentError
            As `plan` does.
        PartitionError
            If a parameter is out of range.
        """
        n_cols = self.checked(n_cols, parameters)
        return self.summarize(rows, n_cols, **{**self.defaults(), **parameters})

    def checked(self, n_cols: int, parameters: Mapping[str, Any]) -> int:
        """Check the column count and the parameters' names; return the column count.

        Raises
        ------
        ArgumentError
            As `plan` does.
        """
        known = self.defaults()
        for name in parameters:
            if name not in known:
                raise ArgumentError(
                    name,
                    f"strategy {self.name!r} has no such parameter",
                    ", ".join(f"{key}={value}" for key, value in known.items()) or "none at all",
                )
        if isinstance(n_cols, bool) or not isinstance(n_cols, int | np.integer) or n_cols < 1:
            raise ArgumentError("n_cols", f"got {n_cols!r}", "a column count of at least 1")
        return int(n_cols)


def keyword_defaults(function: Callable[..., Any]) -> dict[str, Any]:
    """Return a function's keyword-only parameters and their defaults."""
    return dict(_keyword_defaults(function))


@functools.cache
def _keyword_defaults(function: Callable[..., Any]) -> dict[str, Any]:
    return {
        parameter.name: parameter.default
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }


class Stopwatch:
    """Collects the wall-clock time of named steps, for `Plan.setup_seconds`."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time the block under `name`."""
        start = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - start


def prepared(
    graph: Graph, name: str, make: Callable[[Stopwatch], Made]
) -> tuple[Made, dict[str, float]]:
    """Do a piece of preprocessing once for each graph, and tell what it took.

    Parameters
    ----------
    graph : Graph
        Keeps the result, so that plans for other column counts share its memory.
    name : str
        What is made; the same name always means the same.
    make : callable
        Makes it, timing its steps.

    Returns
    -------
    made, seconds
        `seconds` are those of the first time, step by step.
    """
    if name not in graph.prepared:
        clock = Stopwatch()
        graph.prepared[name] = make(clock), clock.seconds
    made, seconds = graph.prepared[name]
    return made, dict(seconds)


def column_tiles(n_cols: int, max_columns: int) -> tuple[int, int]:
    """Cut the columns into equal tiles of whole warps.

    Parameters
    ----------
    n_cols : int
        Columns of the features.
    max_columns : int
        Most columns of a tile, a multiple of 32.

    Returns
    -------
    tiles, columns : int
        How many tiles, and the columns of each, rounded up to a multiple of 32.
    """
    tiles = -(-n_cols // max_columns)
    warps = -(-n_cols // (tiles * WARP_SIZE))
    return tiles, warps * WARP_SIZE
