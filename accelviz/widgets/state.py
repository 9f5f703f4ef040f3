"""What the explorer shows, without any widget: settings in, plans and summaries out."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from accelviz.analysis.balance import LoadMap
from accelviz.analysis.lookup import RowPlace, find_row, sampled_loads
from accelviz.analysis.sweep import summary
from accelviz.datasets import bundled_graphs, load_graph
from accelviz.errors import ArgumentError, PartitionError
from accelviz.executors import trace
from accelviz.graph import Graph
from accelviz.measure import random_inputs
from accelviz.measure.prediction import Timing, recorded_curve, recorded_times, timing
from accelviz.partition.summary import PartitionSummary
from accelviz.plans import Operation, Parameter, Plan, Strategy
from accelviz.plans.operation import FLOAT_BYTES
from accelviz.strategies import REGISTRY, SPMM, find_strategy
from accelviz.workload import Workload

#: What the slider of the columns offers.
COLUMNS = (1, 4, 8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 160, 192, 256, 512)
#: A slider has every value of a range up to so many; of a longer one it has steps that grow, up to
#: so many times the largest value that is worth trying.
_EVERY, _BEYOND = 32, 8
#: Memory that a trace may copy: the emulator keeps its own copy of every array.
TRACE_BYTES = 400_000_000
#: Warps up to which the second strategy is planned for its map while a slider moves.
MOST_WARPS = 4_000_000
#: Strategies with a setting that are kept: the two that are shown and the one before.
_KEPT = 3


def offered(parameter: Parameter, now: Any) -> tuple[Any, ...]:
    """Return what a slider of a parameter offers, the present value included."""
    most, step, tries = parameter.most, parameter.step, parameter.tries
    rule = (None,) if parameter.default is None else ()
    if parameter.choices or not all(type(each) is int for each in tries):
        return tuple(dict.fromkeys((*rule, *(parameter.choices or tries), now)))
    if most is not None and most <= _EVERY * step:
        values = {*range(step, most + 1, step)}
    else:
        end = min(_BEYOND * max(tries), most or max(tries)) // step
        powers = {1 << i for i in range(end.bit_length())}
        values = {step * i for i in powers | {3 * i for i in powers} if i <= end}
    return (*rule, *sorted({*values, *tries, parameter.default, now} - {None}))


@dataclass(frozen=True, eq=False)
class Choice:
    """A strategy as the explorer offers it, with what is fixed about it.

    `label` is what people read, `fixed` are parameters that no slider moves.
    """

    label: str
    strategy: Strategy
    fixed: Mapping[str, Any] = field(default_factory=dict)

    @property
    def sliders(self) -> tuple[str, ...]:
        """The sliders that this choice listens to: those of parameters that are worth trying."""
        own = self.strategy.parameters
        return tuple(name for name in own if own[name].tries and name not in self.fixed)


def choices(own: Sequence[Strategy | str] = (), operation: Operation = SPMM) -> dict[str, Choice]:
    """Return what can be chosen, by label: `own` strategies first, then all of their operation.

    After a strategy come its variants, where a parameter is one of two words or flags, and the
    strategy with its defaults, whatever the sliders say.
    """
    named: dict[str, Choice] = {}
    others = [each for each in REGISTRY if each.operation == operation]
    for strategy in [*(find_strategy(each, operation) for each in own), *others]:
        every = [Choice(strategy.name, strategy)]
        for name, each in strategy.parameters.items():
            if len(each.choices) == 2 and each.default in each.choices and not each.tries:
                other = next(value for value in each.choices if value != each.default)
                every.append(Choice(f"{strategy.name}, {name}={other}", strategy, {name: other}))
        default = {name: strategy.parameters[name].default for name in every[0].sliders}
        if default:
            words = " x ".join(str(value) for value in default.values() if value is not None)
            every.append(Choice(f"{strategy.name}, default {words}".strip(), strategy, default))
        for choice in every:
            named.setdefault(choice.label, choice)
    return named


@dataclass(eq=False)
class Side:
    """One strategy with one setting on one graph. What is slow is made when it is asked for."""

    choice: Choice
    graph: Graph
    n_cols: int
    parameters: Mapping[str, Any]

    @cached_property
    def summary(self) -> PartitionSummary:
        """What the partition does to the graph; counted where there is no closed form."""
        return summary(self.choice.strategy, self.graph, self.n_cols, self.parameters)

    @cached_property
    def plan(self) -> Plan:
        """The plan itself."""
        return self.choice.strategy.plan(self.graph, self.n_cols, **self.parameters)

    @cached_property
    def loads(self) -> LoadMap | None:
        """The work of a sample of the blocks; None for a library."""
        return sampled_loads(self.plan) if self.plan.has_workload else None


@dataclass(frozen=True)
class Settings:
    """Everything that can be chosen in the explorer; `given` are parameters that were set."""

    graph: str
    first: str
    second: str
    n_cols: int = 64
    row: int = 0
    block: int = 0
    given: Mapping[str, Any] = field(default_factory=dict)


class State:
    """The explorer without its looks.

    A row of the graph is followed through every change: `settings.block` is where it is now.

    Parameters
    ----------
    graph : Graph
    own : Strategy or str, or sequence of them
        Strategies to offer besides those there are; the first is shown first.
    **settings
        As of `change`, where they should not be the defaults.
    """

    def __init__(
        self, graph: Graph, own: Strategy | str | Sequence[Strategy | str] = (), **settings: Any
    ) -> None:
        own = [own] if isinstance(own, Strategy | str) else own
        operation = getattr(own[0], "operation", SPMM) if own else SPMM
        self.choices = choices(own, operation)
        self._opened: dict[str, Graph] = {graph.name: graph}
        self.graphs = tuple(dict.fromkeys([graph.name, *bundled_graphs()]))
        self._sides: dict[Any, Side] = {}
        self._times: dict[Any, pd.DataFrame] = {}
        self._slots: dict[Any, int | None] = {}
        self.traced: Traced | None = None
        usual = choices((), operation)
        second = next(label for label in usual if usual[label].fixed)
        self.settings = Settings(graph.name, next(iter(self.choices)), second, row=longest(graph))
        self.change(**settings)
        self.before: dict[str, PartitionSummary] = {}

    @property
    def graph(self) -> Graph:
        """The graph that is shown."""
        return self._graph(self.settings.graph)

    def _graph(self, name: str) -> Graph:
        if name not in self._opened:
            self._opened[name] = load_graph(name)
        return self._opened[name]

    @property
    def first(self) -> Side:
        """The strategy that is looked at."""
        return self._side(self.settings, self.settings.first)

    @property
    def second(self) -> Side:
        """The one it is compared with."""
        return self._side(self.settings, self.settings.second)

    @property
    def sliders(self) -> dict[str, tuple[Parameter, Any]]:
        """The parameters that have a slider now, each with its value: the first's, then more."""
        return {
            name: (side.choice.strategy.parameters[name], side.parameters[name])
            for side in (self.first, self.second)
            for name in side.choice.sliders
            if side is self.first or name not in self.first.choice.sliders
        }

    def _side(self, settings: Settings, label: str) -> Side:
        choice = self.choices[label]
        parameters = {**choice.strategy.defaults(), **choice.fixed}
        for name in {*choice.sliders} & {*settings.given}:
            with contextlib.suppress(PartitionError):  # another strategy's range may be wider
                own = choice.strategy.parameters[name]
                parameters[name] = own.checked(name, settings.given[name])
        key = (settings.graph, label, settings.n_cols, *parameters.items())
        side = self._sides.pop(key, None)
        if side is None:
            side = Side(choice, self._graph(settings.graph), settings.n_cols, parameters)
        self._sides[key] = side  # the one used last is the last to go
        while len(self._sides) > _KEPT:
            del self._sides[next(iter(self._sides))]
        return side

    def change(self, **settings: Any) -> None:
        """Change settings; nothing changes if one of them cannot be.

        Parameters
        ----------
        **settings
            Of `Settings`, or parameters of the strategies that have a slider. With `row`, `block`
            follows; with `block`, `row` is the block's first.

        Raises
        ------
        ArgumentError
            If there is no such setting, graph, strategy, row or block, or a number is out of range.
        AccelvizError
            What the strategy says of parameters that it cannot have.
        """
        fields = {name: settings[name] for name in settings if name in Settings.__annotations__}
        wanted = replace(
            self.settings, **{name: self._checked(name, fields[name]) for name in fields}
        )
        given = {
            name: self._parameter(wanted, name).checked(name, value)
            for name, value in settings.items()
            if name not in fields
        }
        wanted = replace(wanted, given={**wanted.given, **given})
        if wanted.graph != self.settings.graph and "row" not in settings:
            wanted = replace(wanted, row=longest(self._graph(wanted.graph)))
        follow = self._at_block if "block" in settings and "row" not in settings else self._follow
        wanted = follow(wanted)
        shown = {"first": self.first.summary, "second": self.second.summary}
        for label in (wanted.first, wanted.second):
            self._side(wanted, label).summary  # noqa: B018 - fails here rather than half-way
        if wanted != self.settings:
            if not {"row", "block"} >= set(settings):  # looking elsewhere is no other setting
                self.before = shown if wanted.graph == self.settings.graph else {}
            self.traced = None
        self.settings = wanted

    def _parameter(self, wanted: Settings, name: str) -> Parameter:
        """Find who has the parameter, those that are shown first."""
        for label in (wanted.first, wanted.second, *self.choices):
            if name in self.choices[label].sliders:
                return self.choices[label].strategy.parameters[name]
        every = (*Settings.__annotations__, *(n for c in self.choices.values() for n in c.sliders))
        known = ", ".join(name for name in dict.fromkeys(every) if name != "given")
        raise ArgumentError(name, "there is no such setting", known)

    def _checked(self, name: str, value: Any) -> Any:
        known = {"graph": self.graphs, "first": [*self.choices], "second": [*self.choices]}
        if name in known:
            if value not in known[name]:
                raise ArgumentError(name, f"there is no {value!r}", ", ".join(known[name]))
            return value
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise ArgumentError(name, f"got {value!r}", "an integer")
        return int(value)

    def _follow(self, wanted: Settings) -> Settings:
        """Find the block that the row is in now."""
        graph, plan = self._graph(wanted.graph), self._side(wanted, wanted.first).plan
        last = max(graph.n_rows - 1, 0)
        if not 0 <= wanted.row <= last:
            raise ArgumentError("row", f"got {wanted.row}", f"0 to {last}")
        if not graph.n_rows or not plan.has_workload:
            return replace(wanted, block=0)
        blocks = find_row(plan, wanted.row).blocks or (0,)
        return replace(wanted, block=min(blocks, key=lambda block: abs(block - wanted.block)))

    def _at_block(self, wanted: Settings) -> Settings:
        """Take the first row of the block."""
        plan = self._side(wanted, wanted.first).plan
        if not plan.has_workload:
            return replace(wanted, block=0)
        last = max(plan.launch.n_blocks - 1, 0)
        if not 0 <= wanted.block <= last:
            raise ArgumentError("block", f"got {wanted.block}", f"0 to {last}")
        work = plan.workload(wanted.block, min(wanted.block + 1, plan.launch.n_blocks))
        return replace(wanted, row=int(plan.output_rows[work.row[0]])) if len(work) else wanted

    def row_of_degree(self, low: int, high: int) -> int:
        """Return the first row that has `low` to `high` nonzeros."""
        found = np.flatnonzero((self.graph.degrees >= low) & (self.graph.degrees <= high))
        if not found.size:
            raise ArgumentError("degree", f"no row has {low} to {high} nonzeros", "another degree")
        return int(found[0])

    @property
    def place(self) -> RowPlace | None:
        """Where the row that is followed is; None where that is not known."""
        plan = self.first.plan
        if not plan.has_workload or not self.graph.n_rows:
            return None
        return find_row(plan, self.settings.row)

    @property
    def work(self) -> Workload | None:
        """What the warps of the block shown do; None where there is no block."""
        plan = self.first.plan
        if not plan.has_workload or not plan.launch.n_blocks:
            return None
        return plan.workload(self.settings.block, self.settings.block + 1)

    @property
    def second_loads(self) -> LoadMap | None:
        """The second strategy's sample of blocks; None if it would take too long, or is unknown."""
        side, warps = self.second, self.second.summary.warps
        planned = "plan" in side.__dict__
        return side.loads if warps is not None and (planned or warps <= MOST_WARPS) else None

    def recorded_curve(self, side: Side) -> dict[int, float]:
        """Return the recorded medians in microseconds over the first parameter with a slider."""
        if not side.choice.sliders:
            return {}
        times, strategy = self._recorded(side), side.choice.strategy
        over = side.choice.sliders[0]
        return recorded_curve(times, strategy, side.n_cols, side.parameters, over)

    def _recorded(self, side: Side) -> pd.DataFrame:
        name, strategy = side.graph.name, side.choice.strategy.name
        if name not in self._times:
            self._times[name] = recorded_times(side.graph)
        times, key = self._times[name], (name, strategy, side.n_cols)
        if key not in self._times:
            own = (times["strategy"] == strategy) & (times["columns"] == side.n_cols)
            self._times[key] = times[own]
        return self._times[key]

    def timing(self, side: Side, **other: Any) -> Timing:
        """Return what was recorded of a side's setting, and what its warp time predicts.

        `other` are parameters in place of the side's.
        """
        graph, strategy = side.graph, side.choice.strategy

        def slots(parameters: Mapping[str, Any]) -> int | None:
            if parameters == side.parameters:
                return side.summary.slots
            key = (graph.name, strategy.name, side.n_cols, *sorted(parameters.items()))
            if key not in self._slots:
                found = strategy.closed_form(strategy.degrees(graph), side.n_cols, **parameters)
                self._slots[key] = None if found is None else found.slots
            return self._slots[key]

        parameters = {**side.parameters, **other}
        return timing(self._recorded(side), strategy, side.n_cols, parameters, slots)

    def trace(self, run: Callable[..., pd.DataFrame] = trace) -> Traced:
        """Run the block shown in the emulator and record what each lane touches.

        Raises
        ------
        ArgumentError
            If the graph is too large for the emulator's copies of its arrays.
        AccelvizError
            As `accelviz.trace` does; where there is no C++ compiler, DeviceUnavailable.
        """
        plan, operation = self.first.plan, self.first.plan.operation
        dense = [
            each.shape(plan.sizes) for each in operation.operands.values() if not each.of_nonzeros
        ]
        size = sum(array.nbytes for array in plan.arrays.values())
        size += 2 * FLOAT_BYTES * sum(map(math.prod, dense))
        if size > TRACE_BYTES:
            raise ArgumentError(
                "graph",
                f"a trace would copy {size / 1e6:,.0f} MB of matrices",
                f"at most {TRACE_BYTES / 1e6:,.0f} MB: a smaller graph or fewer columns",
            )
        inputs = random_inputs(operation, plan.pattern, plan.widths)
        self.traced = Traced(run(plan, *inputs, block=self.settings.block))
        return self.traced


@dataclass(eq=False)
class Traced:
    """A trace of one block, cut into requests, and the request that is shown."""

    table: pd.DataFrame
    step: int = 0

    @cached_property
    def steps(self) -> list[int]:
        """The steps of the trace, in order; each is one instruction of one warp."""
        return sorted(self.table["step"].unique().tolist())

    @property
    def lanes(self) -> pd.DataFrame:
        """What each lane does in the request that is shown."""
        return self.table[self.table["step"] == self.steps[self.step]] if self.steps else self.table

    def go(self, step: int) -> None:
        """Show another request, the nearest there is."""
        self.step = min(max(step, 0), max(len(self.steps) - 1, 0))


def longest(graph: Graph) -> int:
    """Return the row with the most nonzeros, which shows most about a partition."""
    return int(graph.degrees.argmax()) if graph.n_rows else 0
