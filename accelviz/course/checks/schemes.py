"""Assignment A3: a partition scheme of one's own, held against the papers' schemes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from accelviz.course.checks.common import case, integers, multiplied, require, share_of
from accelviz.course.checks.export import COLUMNS
from accelviz.course.checks.export import table as as_table
from accelviz.course.checks.metrics import N_COLS, Metrics, bounds, measured, shares
from accelviz.course.checks.remote import call_beside, link_of
from accelviz.course.checks.shipping import FREE_BYTES
from accelviz.devices import find_device
from accelviz.graph import Graph
from accelviz.measure import features
from accelviz.measure.accuracy import Oracle
from accelviz.ordering import Permutation
from accelviz.plans.launch import Call, LaunchConfig
from accelviz.plans.plan import Buffers, Layout, Plan, Provenance, Strategy, Widths
from accelviz.plans.settings import Settings
from accelviz.strategies import REGISTRY, SPMM
from accelviz.workload import Workload

Graphs = Mapping[str, Graph]
#: A block of one warp waits for nobody, which would be too easy; more than 32 there are not.
FEWEST_WARPS, MOST_WARPS = 4, 32


def form(strategy: Any, graph: Graph) -> None:
    """Ask for what every scheme must be, whatever it does.

    Parameters
    ----------
    strategy : Strategy
        The student's.
    graph : Graph

    Raises
    ------
    AssertionError, AccelvizError
        If it is no Strategy, has no name of its own, is one of the papers' in disguise, has blocks
        of fewer than 4 or more than 32 warps, or does not cover the graph.
    """
    with case(graph.name):
        planned(strategy, graph).check()


def covers(strategy: Any, graphs: Graphs) -> None:
    """Ask for every nonzero exactly once, in every graph; see `form`."""
    for name, graph in graphs.items():
        with case(name):
            planned(strategy, graph).check()


def slices(strategy: Any, graphs: Graphs) -> None:
    """Ask that any range of blocks, asked for alone, be that part of the whole.

    Raises
    ------
    AssertionError
        Naming the blocks.
    """
    for name, graph in graphs.items():
        with case(name):
            plan = planned(strategy, graph)
            plan.check()
            whole = plan.workload()
            blocks = plan.launch.n_blocks
            ranges = [(0, 0)]
            for step in (1, 7, max(1, blocks // 2)):
                ranges += [(start, min(start + step, blocks)) for start in range(0, blocks, step)]
            assert isinstance(plan.strategy, Theirs)
            parts = plan.strategy.parts(ranges)
            require(len(parts) == len(ranges), "a part of the workload is missing")
            require(len(parts[0]) == 0, "slice_workload(0, 0) should have no record")
            for (start, stop), part in zip(ranges[1:], parts[1:], strict=True):
                inside = (whole.block >= start) & (whole.block < stop)
                _same_records(part, whole, inside, (start, stop))


def replays(strategy: Any, graphs: Graphs, columns: tuple[int, ...] = (1, 33, 100)) -> None:
    """Carry the plan out on the CPU and hold the result to float64, into an output full of NaN.

    Raises
    ------
    AssertionError, AccelvizError
        If a result is wrong: in the wrong row, never written, or added to what was not cleared.
    """
    for name, graph in graphs.items():
        X = features(graph.shape[1], max(columns), seed=graph.nnz)
        oracle = Oracle(graph, X)
        for n_cols in columns:
            with case(f"{name}, {n_cols} columns"):
                plan = planned(strategy, graph, n_cols)
                plan.check()
                _require_writing(plan)
                multiplied(plan, find_device("cpu").prepare(plan), X[:, :n_cols], oracle)


def waiting(strategy: Any, graphs: Graphs, points: float) -> float:
    """Return points for little waiting: none at the row split's, all of them at Accel-GCN's.

    Parameters
    ----------
    strategy : Strategy
    graphs : mapping of str to Graph
        The mean over them counts.
    points : float
        How many there are.

    Returns
    -------
    float
        0 to `points`, to two decimals.

    Raises
    ------
    Exception
        What went wrong with the first graph, if something did with all of them. A graph that is not
        covered earns nothing: then no metric means anything.
    """
    return _points(strategy, graphs, points, "waiting")


def busiest_warp(strategy: Any, graphs: Graphs, points: float) -> float:
    """Return points for a small busiest warp, on a logarithmic scale; see `waiting`.

    All of them for 64 nonzeros or fewer, none from the row split's busiest warp on, or from 1,024
    nonzeros where that is more.
    """
    return _points(strategy, graphs, points, "busiest_warp")


def metadata(strategy: Any, graphs: Graphs, points: float) -> float:
    """Return points for little metadata: none at the warp-level partition's, all at Accel-GCN's.

    Multiplied by the share that `waiting` earns; see it for the rest.
    """
    return _points(strategy, graphs, points, "metadata_bytes")


def cut_rows(strategy: Any, graphs: Graphs, points: float) -> float:
    """Return points for few parts of cut rows: all at Accel-GCN's, none at merge path's.

    Or at GNNAdvisor's, where that cuts more. Multiplied by the share that `waiting` earns; see it
    for the rest.
    """
    return _points(strategy, graphs, points, "cut_parts")


def table(strategy: Any, graphs: Graphs) -> pd.DataFrame:
    """Return the metrics of a scheme beside the papers', and the share of the points they earn.

    Parameters
    ----------
    strategy : Strategy
    graphs : mapping of str to Graph

    Returns
    -------
    DataFrame
        For each graph and metric: `yours`, `none` (no points there), `all` (all points there) and
        `share`, 0 to 1.
    """
    lines = []
    for name, graph in graphs.items():
        with case(name):
            plan = planned(strategy, graph)
            plan.check()
            yours = measured(plan)
            yours = replace(yours, metadata_bytes=max(yours.metadata_bytes, _held(plan)))
        measures = (yours, *bounds(graph))
        for metric in fields(Metrics):
            values = (getattr(metrics, metric.name) for metrics in (*measures, shares(*measures)))
            lines.append((name, metric.name, *values))
    return pd.DataFrame(lines, columns=["graph", "metric", "yours", "none", "all", "share"])


def planned(strategy: Any, graph: Graph, n_cols: int = N_COLS) -> Plan:
    """Let a student's scheme plan, and return a plan of the library's own with that workload.

    Only numbers come from the student's: where the blocks begin, which warp has what, the order of
    the rows, the metadata.

    Raises
    ------
    AssertionError
        If the scheme is one of the papers' in disguise, or no scheme at all, or its plan does not
        belong to the graph.
    """
    parts = [graph.row_pointers, graph.column_indices, graph.values]  # noqa: PD011
    graph_data = [*parts, list(graph.shape), graph.name, n_cols]
    exported = call_beside(strategy, "accelviz.course.checks.export:exported", *graph_data)
    require(isinstance(exported, dict), "the scheme gave no plan")
    name = str(exported.get("name"))[:60]
    taken = [paper.name for paper in REGISTRY]
    require(name not in taken, f"there is a scheme of the name {name!r} already")
    blocks, warps = exported.get("blocks"), exported.get("warps")
    zero_outputs = exported.get("zero_outputs")
    require(
        isinstance(warps, int) and FEWEST_WARPS <= warps <= MOST_WARPS,
        f"blocks have {warps} warps, and should have {FEWEST_WARPS} to {MOST_WARPS}",
    )
    most = 10 * (graph.nnz + graph.n_rows) + 1_000
    require(
        isinstance(blocks, int) and 0 <= blocks <= most,
        f"the grid has {blocks} blocks, and should have 0 to {most:,}",
    )
    require(
        isinstance(zero_outputs, list | tuple) and set(zero_outputs) <= {"Y"},
        f'zero_outputs is {zero_outputs!r}, and should be ("Y",) or ()',
    )
    order, metadata = exported.get("order"), exported.get("metadata")
    permutation = None
    if order is not None:
        rows = integers("order", order, (graph.n_rows,))
        permutation = Permutation(rows.astype(np.int32))
        require(np.array_equal(permutation.order, rows), "the order's numbers overflow")
    walked, nonzero_order = graph.pattern, None
    if permutation is not None:
        walked, nonzero_order = permutation.apply_to_pattern(graph.pattern)
    theirs = Theirs(
        strategy, exported, graph_data, None if permutation is None else permutation.order
    )
    (whole,) = theirs.parts([(0, int(blocks))])
    inside = len(whole) == 0 or (whole.block[0] >= 0 and whole.block[-1] < blocks)
    require(inside and not np.any(np.diff(whole.block) < 0), "blocks are out of order, or too many")
    theirs.launched = LaunchConfig((int(blocks), 1, 1), int(warps)), tuple(zero_outputs)
    theirs.layout = Layout(
        graph.pattern,
        partial(_part, whole),
        walked,
        permutation,
        nonzero_order,
        None if metadata is None else np.asarray(metadata),
    )
    return theirs.plan(graph, n_cols)


class Theirs(Strategy):
    """What a student's scheme told, as a strategy of the library's own kind.

    Parameters
    ----------
    strategy : Strategy or Remote
        The student's.
    exported, graph_data
        What `export.exported` returned, and what it was given.
    order : array or None
        Of the rows.

    Attributes
    ----------
    layout : Layout
    launched : tuple of LaunchConfig and tuple of str
        The launch, and the outputs to zero before it.
    held : int
        Bytes that its `slice_workload` has, beyond names and a few numbers.
    """

    operation = SPMM
    name = "theirs"
    layout: Layout
    launched: tuple[LaunchConfig, tuple[str, ...]]

    def __init__(
        self, strategy: Any, exported: dict[str, Any], graph_data: Any, order: Any
    ) -> None:
        self.name = str(exported.get("name"))[:60]  # type: ignore[misc]
        held = exported.get("held")
        require(isinstance(held, bytes), "what the workload holds is not known")
        self.held = max(0, len(held or b"") - FREE_BYTES)
        self._arguments, self._plan = (held, graph_data, order), exported.get("plan")
        self._link = link_of(strategy)

    def parts(self, ranges: list[tuple[int, int]]) -> list[Workload]:
        """Return parts of the workload, asked for in a process that has run the cells alone.

        In a notebook of the student's own, there is no other process.
        """
        if self._link is None:
            assert isinstance(self._plan, Plan)
            exported = [as_table(self._plan.workload(*blocks)) for blocks in ranges]
        else:
            request = {"do": "run", "function": "accelviz.course.checks.export:slices"}
            exported = self._link.twin.ask(request, *self._arguments, ranges)
        require(isinstance(exported, list), "the workload is no table")
        return [_workload(blocks) for blocks in exported]

    def build(self, graph: Graph, widths: Widths, settings: Settings) -> Plan:
        """Return the plan."""
        launch, zero_outputs = self.launched
        return Plan(
            self.layout,
            (Call(launch),),
            Buffers(zero_outputs=zero_outputs),
            Provenance(self, graph.values, widths, settings),
        )


def _held(plan: Plan) -> int:
    return plan.strategy.held if isinstance(plan.strategy, Theirs) else 0


def _workload(table: Any) -> Workload:
    columns = integers("the workload", table, np.shape(table))
    require(columns.ndim == 2 and columns.shape[0] == 5, "the workload has five columns")
    require(np.abs(columns[[1, 2, 4]]).max(initial=0) < 1 << 31, "the workload's numbers overflow")
    return Workload(*columns)


def _part(whole: Workload, start: int, stop: int) -> Workload:
    """Return a part of a workload that was asked for once, as a whole."""
    first, last = np.searchsorted(whole.block, [start, stop])
    return Workload(*(whole[name][first:last] for name in COLUMNS))


def _require_writing(plan: Plan) -> None:
    """Require that each row be written by one block, unless the output is cleared first.

    The replay on the CPU adds up whole rows, and would not notice several blocks.
    """
    if plan.zero_outputs:
        return
    work = plan.workload()
    blocks = np.bincount(
        np.unique(np.stack([work.row, work.block]), axis=1)[0], minlength=plan.walked.n_rows
    )
    for wrong, fault in ((blocks == 0, "has no line"), (blocks > 1, "lies in several blocks")):
        if wrong.any():
            row = int(wrong.argmax())
            raise AssertionError(
                f'row {row} of the walked pattern {fault}; zero_outputs=("Y",) is needed'
            )


def _same_records(
    part: Workload, whole: Workload, inside: npt.NDArray[np.bool_], blocks: tuple[int, int]
) -> None:
    for name in COLUMNS:
        require(
            np.array_equal(part[name], whole[name][inside]),
            f"slice_workload{blocks} gives other records than slice_workload for all blocks: the "
            f"column {name} differs",
        )


def _points(strategy: Any, graphs: Graphs, points: float, metric: str) -> float:
    earned, problems = [], []
    for name, graph in graphs.items():
        try:
            measures = table(strategy, {name: graph})
            earned.append(float(measures.loc[measures["metric"] == metric, "share"].iloc[0]))
        except Exception as error:  # of a student's code, which may raise anything
            problems.append(error)
    if not earned:
        raise problems[0]
    return share_of(points, sum(earned) / len(graphs))
