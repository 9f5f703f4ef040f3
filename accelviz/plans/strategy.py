"""The contract of a strategy: it turns a pattern and a column count into a plan.

Everything else (executors, plots, benchmarks, tests) reads plans and asks strategies about
themselves. A new strategy is one `.cu` file, one Python file and one line in the registry; a class
in a notebook cell will do as well, passed to `plan` in place of a name.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from accelviz.errors import ArgumentError, PartitionError, checked_integer
from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.partition.cut import Cut
from accelviz.partition.metadata import MetadataLine, word_lines
from accelviz.partition.summary import PartitionSummary
from accelviz.plans.launch import WARP_SIZE
from accelviz.plans.operation import Operation
from accelviz.plans.plan import Plan
from accelviz.plans.reading import Reading


@dataclass(frozen=True)
class Parameter:
    """A parameter of a strategy: an integer of a range, one of some choices, or anything.

    Attributes
    ----------
    default : object
        None means that a rule chooses.
    meaning : str
        What it sets, in a few words.
    most : int, optional
        The largest integer. Values are multiples of `step`, from `step` on.
    step : int
    choices : tuple
        All values there are, in place of a range.
    tries : tuple
        Values that are worth trying: for sweeps, sliders and `tune`.
    why : str
        The reason for the upper end of the range.
    rule : bool
        Whether None may be given, so that a rule chooses. It always may if None is the default.
    """

    default: Any
    meaning: str = ""
    most: int | None = None
    step: int = 1
    choices: tuple[Any, ...] = ()
    tries: tuple[Any, ...] = ()
    why: str = ""
    rule: bool = False

    def __post_init__(self) -> None:
        for value in (self.default, *self.tries):
            self.checked("Parameter", value)

    def checked(self, name: str, value: Any) -> Any:
        """Return the value, integers as Python's.

        Raises
        ------
        PartitionError
            If it is out of range or no choice.
        """
        if value is None and (self.rule or self.default is None):
            return None
        if self.choices:
            # True is not 1 here, and a list is no choice either.
            if not any(type(value) is type(each) and value == each for each in self.choices):
                raise PartitionError(
                    name, f"got {value!r}", " or ".join(repr(each) for each in self.choices)
                )
            return value
        if self.most is None:
            return value
        return checked_integer(name, value, self.most, step=self.step, why=self.why)


class Strategy(ABC):
    """A way to map an operation onto a GPU.

    Attributes
    ----------
    operation : Operation
        What its plans compute.
    name : str
        The name people call it by; no other strategy of the operation has it.
    summary : str
        What it does, in one line.
    parameters : mapping of str to Parameter
        Its own parameters. A class that does not say takes the keyword-only arguments of its
        `build`, with their defaults and without ranges.
    worker : str
        What the workload's column `warp` counts: a "warp", or a part of one.
    metadata_words : tuple of str
        Names of the words of a line of metadata; without them they are shown unnamed.
    metadata_owner : str
        What reads a line: a "block" or a "warp".
    """

    operation: Operation
    name: ClassVar[str]
    summary: ClassVar[str] = ""
    parameters: ClassVar[Mapping[str, Parameter]]
    worker: ClassVar[str] = "warp"
    metadata_words: ClassVar[tuple[str, ...]] = ()
    metadata_owner: ClassVar[str] = "line"

    def __init_subclass__(cls) -> None:
        if "parameters" not in vars(cls) and "build" in vars(cls):
            named = {
                each.name: Parameter(each.default)
                for each in inspect.signature(cls.build).parameters.values()
                if each.kind is inspect.Parameter.KEYWORD_ONLY
            }
            if named or not hasattr(cls, "parameters"):
                cls.parameters = named

    @abstractmethod
    def build(self, graph: Graph, n_cols: int, *args: Any, **parameters: Any) -> Plan:
        """Make the plan.

        Parameters
        ----------
        graph : Graph
            Any valid graph, empty ones included. The plan is of its pattern and refers to that, not
            to the graph; `graph.store.prepared` shares preprocessing between plans.
        n_cols : int
            Columns of the features, at least 1.
        *args, **parameters
            A class names its own parameters here instead, keyword-only. Further widths of the
            operation, such as `heads`, come the same way. All are checked before the call.
        """

    def cut(self, rows: RowDegrees, n_cols: int, *args: Any, **parameters: Any) -> Cut | None:
        """Say which known scheme `build` deals such rows out by, if it is one of `partition.cut`.

        Takes what `summarize` takes.

        Returns
        -------
        Cut or None
            None, as here, where it is a scheme of its own.
        """
        return None

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
            As those of `build`.

        Returns
        -------
        PartitionSummary or None
            That of the `cut`; None where no closed form is known.
        """
        found = self.cut(rows, n_cols, *args, **parameters)
        return None if found is None else found.summary(rows, n_cols)

    def reading(self, graph: Graph, n_cols: int, *args: Any, **parameters: Any) -> Reading | None:
        """Say which lane has which columns of a gathered row.

        Parameters
        ----------
        graph, n_cols, *args, **parameters
            As those of `build`.

        Returns
        -------
        Reading or None
            None, as here, where that is not known; a trace shows it.
        """
        return None

    def settle(self, graph: Graph, n_cols: int, *args: Any, **parameters: Any) -> Mapping[str, Any]:
        """Say what its rules choose for the parameters that are None, without making a plan.

        Parameters
        ----------
        graph, n_cols, *args, **parameters
            As those of `build`.

        Returns
        -------
        mapping of str to object
            Parameters as its plan has them; without those that only a plan knows, as here.
        """
        return {}

    def metadata_lines(self, plan: Plan, lines: int | Iterable[int]) -> list[MetadataLine]:
        """Take some lines of a plan's metadata apart: what each bit of them says.

        Raises
        ------
        ArgumentError
            If there is no such line, or the plan has no metadata.
        """
        if plan.metadata is None:
            raise ArgumentError("plan", f"{self.name!r} has no metadata", "another strategy")
        names, owner = self.metadata_words, self.metadata_owner
        return word_lines(plan.metadata, lines, names=names, called=owner)

    def choices(self, graph: Graph, n_cols: int) -> dict[str, tuple[Any, ...]]:
        """Return the values that `accelviz.tune` tries, by parameter, in the order it varies them.

        Returns
        -------
        dict of str to tuple
            The parameters' `tries`, unless a strategy knows better for this graph.
        """
        return {name: each.tries for name, each in self.parameters.items() if each.tries}

    def defaults(self) -> dict[str, Any]:
        """Return its own parameters and their defaults."""
        return {name: each.default for name, each in self.parameters.items()}

    def plan(self, graph: Graph, n_cols: int, **given: Any) -> Plan:
        """Check the column count and the parameters, then build.

        Raises
        ------
        ArgumentError
            If a width is no positive integer, or a parameter is not this strategy's.
        PartitionError
            If a parameter is out of range.
        """
        widths, parameters = self.checked(n_cols, given)
        made = self.build(graph, **widths, **parameters)
        filled: dict[str, Any] = {
            "operation": self.operation,
            "strategy": self,
            "widths": widths,
            "own_values": getattr(graph, "values", None),  # a pattern on the GPU has none
            "parameters": {**parameters, **made.parameters},
        }
        then = tuple(replace(each, **filled) for each in made.then)
        return replace(made, then=then, **filled)

    def closed_form(self, rows: RowDegrees, n_cols: int, **given: Any) -> PartitionSummary | None:
        """Check the column count and the parameters as `plan` does, then `summarize`."""
        widths, parameters = self.checked(n_cols, given)
        return self.summarize(rows, **widths, **parameters)

    def scheme(self, rows: RowDegrees, n_cols: int, **given: Any) -> Cut | None:
        """Check the column count and the parameters as `plan` does, then `cut`."""
        widths, parameters = self.checked(n_cols, given)
        return self.cut(rows, **widths, **parameters)

    def reader(self, graph: Graph, n_cols: int, **given: Any) -> Reading | None:
        """Check the column count and the parameters as `plan` does, then say the `reading`."""
        widths, parameters = self.checked(n_cols, given)
        return self.reading(graph, **widths, **parameters)

    def settled(self, graph: Graph, n_cols: int, **given: Any) -> dict[str, Any]:
        """Check as `plan` does, then return its parameters, `settle` in place of what is None."""
        widths, parameters = self.checked(n_cols, given)
        return {**parameters, **self.settle(graph, **widths, **parameters)}

    def degrees(self, graph: Graph) -> RowDegrees:
        """Return the degrees that its closed forms are of: of rows, or of senders."""
        return RowDegrees.of(graph.transposed().graph if self.operation.by_sender else graph)

    def checked(
        self, n_cols: int, given: Mapping[str, Any]
    ) -> tuple[dict[str, int], dict[str, Any]]:
        """Check as `plan` does, then return all widths and all parameters."""
        widths = {"n_cols": n_cols}
        parameters = self.defaults()
        for name, value in given.items():
            if name in self.operation.widths:
                widths[name] = value
            elif name in parameters:
                parameters[name] = self.parameters[name].checked(name, value)
            else:
                raise ArgumentError(
                    name,
                    f"strategy {self.name!r} has no such parameter",
                    ", ".join(f"{key}={value}" for key, value in parameters.items()) or "no more",
                )
        for name, value in {**self.operation.widths, **widths}.items():
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise ArgumentError(name, f"got {value!r}", "a column count of at least 1")
            widths[name] = int(value)
        return widths, parameters


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
