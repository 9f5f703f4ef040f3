"""The base class of strategies: a strategy builds a plan from a graph, widths and settings.

A strategy is a `.cu` file, a Python file and a line in the registry, or a class in a notebook.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from accelviz.errors import ArgumentError, checked_integer
from accelviz.graph import MAX_SIDE, Graph, Pattern
from accelviz.ordering import RowDegrees
from accelviz.partition.metadata import MetadataRecord, word_records
from accelviz.partition.summary import PartitionSummary
from accelviz.plans.description import Description
from accelviz.plans.operation import Operation
from accelviz.plans.plan import Plan, Provenance, Widths
from accelviz.plans.settings import Setting, Settings


class Strategy(ABC):
    """A method to map an operation onto a GPU.

    Attributes
    ----------
    operation : Operation
        The operation that its plans compute.
    name : str
        Name, unique among the strategies of the operation.
    summary : str
        Description in one line.
    Settings : type
        Subclass of `Settings` that declares its settings; by default without settings.
    worker : str
        Unit of the workload's column `warp`: "warp", or the name of a part of a warp.
    metadata_words : tuple of str
        Names of the words of a metadata record. Without them, words are shown unnamed.
    metadata_owner : str
        Reader of one metadata record: "block" or "warp"; "line" if unspecified.
    """

    operation: Operation
    name: ClassVar[str]
    summary: ClassVar[str] = ""
    Settings: ClassVar[type[Settings]] = Settings
    worker: ClassVar[str] = "warp"
    metadata_words: ClassVar[tuple[str, ...]] = ()
    metadata_owner: ClassVar[str] = "line"

    def __init_subclass__(cls) -> None:
        """Append the settings to the class's docstring."""
        if cls.__doc__ and cls.Settings.declared:
            lines = [inspect.cleandoc(cls.__doc__), "", "Parameters", "----------"]
            for name, declared in cls.Settings.declared.items():
                lines += [f"{name} : {declared.values}", f"    {declared.meaning}"]
            cls.__doc__ = "\n".join(lines)

    @abstractmethod
    def build(self, graph: Graph, widths: Widths, settings: Any) -> Plan:
        """Build the plan.

        Parameters
        ----------
        graph : Graph
            Any valid graph, also an empty one. The plan may refer to the graph's pattern, but not
            to the graph. `graph.store.prepared` shares preprocessing between plans.
        widths : mapping of str to int
            All widths of the operation, including `n_cols`.
        settings : Settings
            Instance of the strategy's own `Settings`, as `resolve` returns it.
        """

    def build_on(self, device: Any, pattern: Pattern, widths: Widths, settings: Any) -> Plan:
        """Build the plan on a device, for a pattern whose arrays are there.

        Optional: a strategy overrides it to plan matrices on the GPU. `settings` are unresolved.
        """
        raise NotImplementedError

    def resolve(self, settings: Any, graph: Graph | RowDegrees, widths: Widths) -> Any:
        """Replace None in settings by values that a rule chooses. Here: return them unchanged.

        Parameters
        ----------
        settings : Settings
        graph : Graph or RowDegrees
            With RowDegrees, settings that depend on more than sizes remain None.
        widths : mapping of str to int
        """
        return settings

    def describe(self, settings: Any, rows: RowDegrees, widths: Widths) -> Description | None:
        """Describe the plan that `build` returns for rows of these degrees.

        Parameters
        ----------
        settings : Settings
            As `resolve` returns them.
        rows : RowDegrees
        widths : mapping of str to int

        Returns
        -------
        Description or None
            None (the default) if a description requires the plan itself.
        """
        return None

    @property
    def by_sender(self) -> bool:
        """Whether it walks the transposed matrix (first): as its operation says, by default."""
        return self.operation.by_sender

    @property
    def parameters(self) -> Mapping[str, Setting]:
        """The declarations of its settings, by name."""
        return self.Settings.declared

    def metadata_records(self, plan: Plan, lines: int | Iterable[int]) -> list[MetadataRecord]:
        """Return the metadata records with numbers `lines`, with the meaning of their bits.

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
        """Return the values that `accelviz.tune` tries, by setting, in the order of the search.

        Returns
        -------
        dict of str to tuple
            By default `Setting.tries` of each setting.
        """
        return {
            name: declared.tries for name, declared in self.parameters.items() if declared.tries
        }

    def defaults(self) -> dict[str, Any]:
        """Return the defaults of the settings, by name."""
        return {name: declared.default for name, declared in self.parameters.items()}

    def checked(self, n_cols: int, options: Mapping[str, Any]) -> tuple[dict[str, int], Any]:
        """Return all widths, and the unresolved settings, from keyword arguments.

        Raises
        ------
        ArgumentError
            If a width is not 1 to 2^31 - 1, or a keyword is neither a width nor a setting.
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
            widths[name] = checked_integer(name, value, MAX_SIDE, error=ArgumentError)
        return widths, settings

    def plan(self, graph: Graph, n_cols: int, **options: Any) -> Plan:
        """Check widths and settings, resolve the settings, and build the plan.

        Raises
        ------
        ArgumentError, PartitionError
            As `checked` and `build` do.
        """
        widths, settings = self.checked(n_cols, options)
        try:
            plan = self.build(graph, widths, self.resolve(settings, graph, widths))
        except OverflowError as error:
            names, sizes = ", ".join(widths), ", ".join(f"{size:,}" for size in widths.values())
            problem = f"{self.name!r} computes a size beyond 32 bits from {sizes}"
            raise ArgumentError(names, problem, "smaller numbers") from error
        if plan.strategy is self:
            return plan
        # `build` returned another strategy's plan: this strategy is its provenance.
        return replace(plan, provenance=Provenance(self, graph.values, widths, settings))

    def described(
        self, graph: Graph | RowDegrees, n_cols: int, **options: Any
    ) -> Description | None:
        """Check widths and settings, resolve the settings, and describe the plan."""
        widths, settings = self.checked(n_cols, options)
        settings = self.resolve(settings, graph, widths)
        return self.describe(settings, self.degrees(graph), widths)

    def closed_form(
        self, graph: Graph | RowDegrees, n_cols: int, **options: Any
    ) -> PartitionSummary | None:
        """Return the plan's statistics by a closed form, or None if there is no closed form."""
        description = self.described(graph, n_cols, **options)
        return None if description is None else description.summary(self.degrees(graph), n_cols)

    def degrees(self, graph: Graph | RowDegrees) -> RowDegrees:
        """Return the degrees that closed forms take: of rows, or of columns if `by_sender`."""
        if isinstance(graph, RowDegrees):
            return graph
        return RowDegrees.of(graph.transposed().graph if self.by_sender else graph)
