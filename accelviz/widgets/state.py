"""What the explorer shows, without any widget: settings in, plans and summaries out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from accelviz.analysis.balance import LoadMap
from accelviz.analysis.lookup import RowPlace, find_row, sampled_loads
from accelviz.datasets import bundled_graphs, load_graph
from accelviz.errors import ArgumentError
from accelviz.executors import trace
from accelviz.graph import Graph
from accelviz.measure import features
from accelviz.measure.prediction import Timing, recorded_curve, recorded_times, timing
from accelviz.ordering import RowDegrees
from accelviz.partition.block_level import MAX_BLOCK_WARPS, MAX_WARP_NZS, WARPS_LIMIT
from accelviz.partition.summary import PartitionSummary
from accelviz.plans import Plan, Strategy
from accelviz.strategies import REGISTRY, find_strategy
from accelviz.workload import Workload

#: What the sliders offer.
BLOCK_WARPS = tuple(range(1, WARPS_LIMIT + 1))
WARP_NZS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024)
COLUMNS = (1, 4, 8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 160, 192, 256, 512)
#: The parameters that have a slider.
SLIDERS = ("max_block_warps", "max_warp_nzs")
#: Memory that a trace may copy: the emulator keeps its own copy of every array.
TRACE_BYTES = 400_000_000
#: Warps up to which the second strategy is planned for its map while a slider moves.
MOST_WARPS = 4_000_000
#: Strategies with a setting that are kept: the two that are shown and the one before.
_KEPT = 3


@dataclass(frozen=True, eq=False)
class Choice:
    """A strategy as the explorer offers it, with what is fixed about it.

    Parameters
    ----------
    label : str
        What people read.
    strategy : Strategy
    fixed : mapping
        Parameters that no slider moves.
    """

    label: str
    strategy: Strategy
    fixed: Mapping[str, Any] = field(default_factory=dict)

    @property
    def sliders(self) -> tuple[str, ...]:
        """The sliders that this choice listens to."""
        own = self.strategy.defaults()
        return tuple(name for name in SLIDERS if name in own and name not in self.fixed)


def choices(own: Sequence[Strategy | str] = ()) -> dict[str, Choice]:
    """Return what can be chosen, by label: `own` strategies first, then all there are."""
    published = {"max_block_warps": MAX_BLOCK_WARPS, "max_warp_nzs": MAX_WARP_NZS}
    every = [Choice(each.name, each) for each in map(find_strategy, own)]
    for strategy in REGISTRY:
        every.append(Choice(strategy.name, strategy))
        if "partition" in strategy.defaults():
            name = strategy.name
            every.append(Choice(f"{name}, warp-level partition", strategy, {"partition": "warp"}))
            every.append(
                Choice(f"{name}, published {MAX_BLOCK_WARPS} x {MAX_WARP_NZS}", strategy, published)
            )
    named: dict[str, Choice] = {}
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
        rows = RowDegrees.of(self.graph)
        found = self.choice.strategy.closed_form(rows, self.n_cols, **self.parameters)
        if found is not None:
            return found
        if not self.plan.has_workload:
            return PartitionSummary()
        return PartitionSummary.counted(self.plan.statistics, self.plan.metadata_bytes)

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
    """Everything that can be chosen in the explorer."""

    graph: str
    first: str = "accel_gcn"
    second: str = "accel_gcn, warp-level partition"
    max_block_warps: int = MAX_BLOCK_WARPS
    max_warp_nzs: int = MAX_WARP_NZS
    n_cols: int = 64
    row: int = 0
    block: int = 0


class State:
    """The explorer without its looks.

    A row of the graph is followed through every change: `settings.block` is where it is now.

    Parameters
    ----------
    graph : Graph
    own : Strategy or str, or sequence of them
        Strategies to offer besides those there are; the first is shown first.
    **settings
        Of `Settings`, where they should not be the defaults.

    Raises
    ------
    ArgumentError
        As `change`.
    """

    def __init__(
        self, graph: Graph, own: Strategy | str | Sequence[Strategy | str] = (), **settings: Any
    ) -> None:
        own = [own] if isinstance(own, Strategy | str) else own
        self.choices = choices(own)
        self._opened: dict[str, Graph] = {graph.name: graph}
        self.graphs = tuple(dict.fromkeys([graph.name, *bundled_graphs()]))
        self._sides: dict[Any, Side] = {}
        self._times: dict[Any, pd.DataFrame] = {}
        self._slots: dict[Any, int | None] = {}
        self.traced: Traced | None = None
        self.before: dict[str, PartitionSummary] = {}
        first = find_strategy(own[0]).name if own else Settings.first
        self.settings = Settings(graph.name, first=first, row=longest_row(graph))
        self.change(**settings)
        self.before = {}

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

    def _side(self, settings: Settings, label: str) -> Side:
        choice = self.choices[label]
        parameters = {
            **{name: getattr(settings, name) for name in choice.sliders},
            **choice.fixed,
        }
        key = (settings.graph, label, settings.n_cols, *sorted(parameters.items()))
        side = self._sides.pop(key, None)
        if side is None:
            graph = self._graph(settings.graph)
            side = Side(choice, graph, settings.n_cols, parameters)
        self._sides[key] = side  # the one used last is the last to go
        while len(self._sides) > _KEPT:
            del self._sides[next(iter(self._sides))]
        return side

    def change(self, **settings: Any) -> None:
        """Change settings; nothing changes if one of them cannot be.

        Parameters
        ----------
        **settings
            Of `Settings`. With `row`, `block` follows; with `block`, `row` is the block's first.

        Raises
        ------
        ArgumentError
            If there is no such setting, graph, strategy, row or block, or a number is out of range.
        AccelvizError
            What the strategy says of parameters that it cannot have.
        """
        for name, value in settings.items():
            settings[name] = self._checked(name, value)
        shown = {"first": self.first.summary, "second": self.second.summary}
        wanted = replace(self.settings, **settings)
        if wanted.graph != self.settings.graph and "row" not in settings:
            wanted = replace(wanted, row=longest_row(self._graph(wanted.graph)))
        if "block" in settings and "row" not in settings:
            wanted = self._at_block(wanted)
        else:
            wanted = self._follow(wanted)
        for label in (wanted.first, wanted.second):
            self._side(wanted, label).summary  # noqa: B018 - fails here rather than half-way
        if wanted != self.settings:
            moved = {"row", "block"} >= set(settings)
            same_graph = wanted.graph == self.settings.graph
            self.before = self.before if moved else shown if same_graph else {}
            self.traced = None
        self.settings = wanted

    def _checked(self, name: str, value: Any) -> Any:
        known: Mapping[str, Sequence[Any]] = {
            "graph": self.graphs,
            "first": tuple(self.choices),
            "second": tuple(self.choices),
        }
        if name not in Settings.__dataclass_fields__:
            raise ArgumentError(
                name, "there is no such setting", ", ".join(Settings.__dataclass_fields__)
            )
        if name in known:
            if value not in known[name]:
                raise ArgumentError(name, f"there is no {value!r}", ", ".join(known[name]))
        elif isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise ArgumentError(name, f"got {value!r}", "an integer")
        return value if name in known else int(value)

    def _follow(self, wanted: Settings) -> Settings:
        """Find the block that the row is in now."""
        graph, side = self._graph(wanted.graph), self._side(wanted, wanted.first)
        last = max(graph.n_rows - 1, 0)
        if not 0 <= wanted.row <= last:
            raise ArgumentError("row", f"got {wanted.row}", f"0 to {last}")
        if not graph.n_rows or not side.plan.has_workload:
            return replace(wanted, block=0)
        place = find_row(side.plan, wanted.row)
        blocks = place.blocks or (0,)
        return replace(wanted, block=min(blocks, key=lambda block: abs(block - wanted.block)))

    def _at_block(self, wanted: Settings) -> Settings:
        """Take the first row of the block."""
        plan = self._side(wanted, wanted.first).plan
        if not plan.has_workload:
            return replace(wanted, block=0)
        if not 0 <= wanted.block < max(plan.launch.n_blocks, 1):
            raise ArgumentError(
                "block", f"got {wanted.block}", f"0 to {max(plan.launch.n_blocks - 1, 0)}"
            )
        if not plan.launch.n_blocks:
            return wanted
        work = plan.workload(wanted.block, wanted.block + 1)
        if not len(work):
            return wanted
        return replace(wanted, row=int(plan.output_rows[work.row[0]]))

    def row_of_degree(self, low: int, high: int) -> int:
        """Return the first row that has `low` to `high` nonzeros.

        Raises
        ------
        ArgumentError
            If there is none.
        """
        degrees = self.graph.degrees
        found = np.flatnonzero((degrees >= low) & (degrees <= high))
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
        warps = self.second.summary.warps
        planned = "plan" in self.second.__dict__
        return self.second.loads if warps is not None and (planned or warps <= MOST_WARPS) else None

    def recorded_curve(self, side: Side) -> dict[int, float]:
        """Return the recorded medians in microseconds for each `max_block_warps`."""
        if SLIDERS[0] not in side.choice.sliders:
            return {}
        times, strategy = self._recorded(side), side.choice.strategy
        return recorded_curve(times, strategy, side.n_cols, side.parameters, SLIDERS[0])

    def _recorded(self, side: Side) -> pd.DataFrame:
        graph, strategy = side.graph, side.choice.strategy
        key = (graph.name, strategy.name, side.n_cols)
        if graph.name not in self._times:
            self._times[graph.name] = recorded_times(graph)
        if key not in self._times:
            times = self._times[graph.name]
            own = (times["strategy"] == strategy.name) & (times["columns"] == side.n_cols)
            self._times[key] = times[own]
        return self._times[key]

    def predicted(self, side: Side, max_block_warps: int) -> float | None:
        """Return what warp time predicts for another `max_block_warps`, in microseconds."""
        parameters = {**side.parameters, SLIDERS[0]: max_block_warps}
        return self._timing(side, parameters).predicted

    def timing(self, side: Side) -> Timing:
        """Return what was recorded of a side's setting, and what its warp time predicts."""
        return self._timing(side, side.parameters)

    def _timing(self, side: Side, parameters: Mapping[str, Any]) -> Timing:
        graph, strategy = side.graph, side.choice.strategy

        def slots(parameters: Mapping[str, Any]) -> int | None:
            if dict(parameters) == dict(side.parameters):
                return side.summary.slots
            key = (graph.name, strategy.name, side.n_cols, *sorted(parameters.items()))
            if key not in self._slots:
                found = strategy.closed_form(RowDegrees.of(graph), side.n_cols, **parameters)
                self._slots[key] = None if found is None else found.slots
            return self._slots[key]

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
        plan = self.first.plan
        rows, senders = self.graph.shape
        dense = 4 * (rows + senders) * plan.n_cols
        size = 2 * dense + sum(array.nbytes for array in plan.arrays.values())
        if size > TRACE_BYTES:
            raise ArgumentError(
                "graph",
                f"a trace would copy {size / 1e6:,.0f} MB of matrices",
                f"at most {TRACE_BYTES / 1e6:,.0f} MB: a smaller graph or fewer columns",
            )
        table = run(plan, features(senders, plan.n_cols), block=self.settings.block)
        self.traced = Traced(table)
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
        if not self.steps:
            return self.table
        return self.table[self.table["step"] == self.steps[self.step]]

    def go(self, step: int) -> None:
        """Show another request, the nearest there is."""
        self.step = min(max(step, 0), max(len(self.steps) - 1, 0))


def longest_row(graph: Graph) -> int:
    """Return the row with the most nonzeros, which shows most about a partition."""
    return int(graph.degrees.argmax()) if graph.n_rows else 0
