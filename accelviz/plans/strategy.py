"""A strategy turns a pattern and widths into a plan, and describes the plan beforehand.

It is one `.cu` file, one Python file and one line in the registry, or a class in a notebook cell.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from accelviz.errors import ArgumentError
from accelviz.graph import Graph, Pattern
from accelviz.ordering import RowDegrees
from accelviz.partition.metadata import MetadataRecord, word_records
from accelviz.partition.summary import PartitionSummary
from accelviz.plans.description import Description
from accelviz.plans.operation import Operation
from accelviz.plans.plan import Plan, Provenance, Widths
from accelviz.plans.settings import Setting, Settings


class Strategy(ABC):
    """A way to map an operation onto a GPU.

    Attributes
    ----------
    operation : Operation
        The operation of its plans.
    name : str
        Its name, unique among the strategies of the operation.
    summary : str
        One line on what it does.
    Settings : type
        Its settings, a subclass of `Settings`; without one it has none.
    worker : str
        The unit of the workload's column `warp`: a "warp", or a part of one.
    metadata_words : tuple of str
        Names of the words of a record of metadata; without them they are shown unnamed.
    metadata_owner : str
        The reader of a record: a "block" or a "warp".
    """

    operation: Operation
    name: ClassVar[str]
    summary: ClassVar[str] = ""
    Settings: ClassVar[type[Settings]] = Settings
    worker: ClassVar[str] = "warp"
    metadata_words: ClassVar[tuple[str, ...]] = ()
    metadata_owner: ClassVar[str] = "line"

    def __init_subclass__(cls) -> None:
        """Add the settings to the class's docstring."""
        if cls.__doc__ and cls.Settings.declared:
            lines = [inspect.cleandoc(cls.__doc__), "", "Parameters", "----------"]
            for name, declared in cls.Settings.declared.items():
                lines += [f"{name} : {declared.values}", f"    {declared.meaning}"]
            cls.__doc__ = "\n".join(lines)

    @abstractmethod
    def build(self, graph: Graph, widths: Widths, settings: Any) -> Plan:
        """Make the plan.

        Parameters
        ----------
        graph : Graph
            Any valid graph, empty ones included. The plan is of its pattern and refers to that, not
            to the graph; `graph.store.prepared` shares preprocessing between plans.
        widths : mapping of str to int
            All widths of the operation, `n_cols` among them.
        settings : Settings
            Of the strategy's own class, as `resolve` returns them.
        """

    def build_on(self, device: Any, pattern: Pattern, widths: Widths, settings: Any) -> Plan:
        """Make the plan of a pattern whose arrays lie on a device, there.

        A strategy that has this plans matrices that lie on the GPU. `settings` are not resolved.
        """
        raise NotImplementedError

    def resolve(self, settings: Any, graph: Graph | RowDegrees, widths: Widths) -> Any:
        """Fill settings that are None and that a rule chooses; here nothing.

        Parameters
        ----------
        settings : Settings
        graph : Graph or RowDegrees
            With RowDegrees, settings that depend on more than sizes stay None.
        widths : mapping of str to int
        """
        return settings

    def describe(self, settings: Any, rows: RowDegrees, widths: Widths) -> Description | None:
        """Describe the plan that `build` makes of rows of such degrees.

        Parameters
        ----------
        settings : Settings
            As `resolve` returns them.
        rows : RowDegrees
        widths : mapping of str to int

        Returns
        -------
        Description or None
            None, as here, if only a plan shows it.
        """
        return None

    @property
    def parameters(self) -> Mapping[str, Setting]:
        """The declarations of its settings, by name."""
        return self.Settings.declared

    def metadata_records(self, plan: Plan, lines: int | Iterable[int]) -> list[MetadataRecord]:
        """Return some records of a plan's metadata with the meaning of their bits.

        Raises
        ------
        ArgumentError
            If there is no such record, or the plan has no metadata.
        """
        if plan.metadata is None:
            raise ArgumentError("plan", f"{self.name!r} has no metadata", "another strategy")
        names, owner = self.metadata_words, self.metadata_owner
        return word_records(plan.metadata, lines, names=names, called=owner)

    def choices(self, graph: Graph, n_cols: int) -> dict[str, tuple[Any, ...]]:
        """Return the values that `accelviz.tune` tries, by setting, in the order of its search.

        Returns
        -------
        dict of str to tuple
            The settings' `tries`, unless a strategy overrides them for this graph.
        """
        return {
            name: declared.tries for name, declared in self.parameters.items() if declared.tries
        }

    def defaults(self) -> dict[str, Any]:
        """Return its settings' defaults, by name."""
        return {name: declared.default for name, declared in self.parameters.items()}

    def checked(self, n_cols: int, options: Mapping[str, Any]) -> tuple[dict[str, int], Any]:
        """Sort keywords into all widths and the unresolved settings.

        Raises
        ------
        ArgumentError
            If a width is no positive integer, or a keyword is neither width nor setting.
        PartitionError
            If a setting is out of range.
        """
        widths, values = {"n_cols": n_cols}, {}
        for name, value in options.items():
            if name in self.operation.widths:
                widths[name] = value
            elif name in self.parameters:
                values[name] = value
            else:
                known = ", ".join(f"{key}={value}" for key, value in self.defaults().items())
                problem = f"strategy {self.name!r} has no such parameter"
                raise ArgumentError(name, problem, known or "no more")
        settings = self.Settings(**values)
        for name, value in {**self.operation.widths, **widths}.items():
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise ArgumentError(name, f"got {value!r}", "a column count of at least 1")
            widths[name] = int(value)
        return widths, settings

    def plan(self, graph: Graph, n_cols: int, **options: Any) -> Plan:
        """Check widths and settings, resolve the settings, build.

        Raises
        ------
        ArgumentError, PartitionError
            As `checked` does, and `build`.
        """
        widths, settings = self.checked(n_cols, options)
        plan = self.build(graph, widths, self.resolve(settings, graph, widths))
        if plan.strategy is self:
            return plan
        # A plan that a class took from another strategy has the class's name.
        return replace(plan, provenance=Provenance(self, graph.values, widths, settings))

    def described(
        self, graph: Graph | RowDegrees, n_cols: int, **options: Any
    ) -> Description | None:
        """Check widths and settings as `plan` does, resolve the settings, describe."""
        widths, settings = self.checked(n_cols, options)
        settings = self.resolve(settings, graph, widths)
        return self.describe(settings, self.degrees(graph), widths)

    def closed_form(
        self, graph: Graph | RowDegrees, n_cols: int, **options: Any
    ) -> PartitionSummary | None:
        """Return the closed form of the plan's statistics, or None if none is known."""
        description = self.described(graph, n_cols, **options)
        if description is None or description.scheme is None:
            return None
        return description.scheme.summary(self.degrees(graph), n_cols)

    def degrees(self, graph: Graph | RowDegrees) -> RowDegrees:
        """Return the degrees that its closed forms take: of rows, or of columns."""
        if isinstance(graph, RowDegrees):
            return graph
        return RowDegrees.of(graph.transposed().graph if self.operation.by_sender else graph)
