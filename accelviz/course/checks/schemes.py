"""Assignment A3: a partition scheme of one's own, held against the papers' schemes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from accelviz.course.checks.common import case, integers, require, share_of
from accelviz.course.checks.export import COLUMNS, FREE_BYTES
from accelviz.course.checks.export import table as as_table
from accelviz.course.checks.metrics import N_COLS, compared
from accelviz.course.checks.remote import call_beside, link_of
from accelviz.devices import find_device
from accelviz.graph import Graph
from accelviz.measure import check, features
from accelviz.measure.accuracy import Oracle
from accelviz.ordering import Permutation
from accelviz.plans import Buffers, Layout, Plan, Provenance, Strategy, Widths
from accelviz.plans.launch import Call, LaunchConfig
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
    covers(strategy, {graph.name: graph})


def covers(strategy: Any, graphs: Graphs) -> None:
    """Ask for every nonzero exactly once, in every graph; see `form`."""
    for name, graph in graphs.items():
        with case(name):
            planned(strategy, graph).check()


def slices(strategy: Any, graphs: Graphs) -> None:
    """Ask that any range of blocks, asked for alone, be that part of the whole."""
    for name, graph in graphs.items():
        with case(name):
            theirs = Theirs(strategy, graph, N_COLS)
            plan = theirs.plan(graph, N_COLS)
            plan.check()
            whole, blocks = plan.workload(), plan.launch.n_blocks
            ranges = [(0, 0)]
            for step in (1, 7, max(1, blocks // 2)):
                ranges += [(start, min(start + step, blocks)) for start in range(0, blocks, step)]
            parts = theirs.parts(ranges)
            require(len(parts) == len(ranges), "a part of the workload is missing")
            require(len(parts[0]) == 0, "slice_workload(0, 0) should have no record")
            for (start, stop), part in zip(ranges, parts, strict=True):
                inside = (whole.block >= start) & (whole.block < stop)
                for column in COLUMNS:
                    require(
                        np.array_equal(part[column], whole[column][inside]),
                        f"slice_workload{start, stop} gives other records than slice_workload for "
                        f"all blocks: the column {column} differs",
                    )


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
                check(plan, find_device("cpu").prepare(plan), {"X": X[:, :n_cols]}, oracle)


def earned(strategy: Any, graphs: Graphs, metric: str, points: float) -> float:
    """Return points for one of the `Metrics`: none at the row split's, all at Accel-GCN's.

    Parameters
    ----------
    strategy : Strategy
    graphs : mapping of str to Graph
        The mean over them counts.
    metric : {"waiting", "busiest_warp", "metadata_bytes", "cut_parts"}
        All points of `busiest_warp` are for 64 nonzeros or fewer, none for the row split's busiest
        warp, or 1,024 nonzeros where that is more. No metadata are worth more than those of the
        warp-level partition, no cuts more than those of merge path or GNNAdvisor; both are
        multiplied by the share that `waiting` earns. See `metrics.shares`.
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
    shares, problems = [], []
    for name, graph in graphs.items():
        try:
            measures = table(strategy, {name: graph}).set_index("metric")
            shares.append(float(measures.loc[metric, "share"]))
        except Exception as error:  # of a student's code, which may raise anything
            problems.append(error)
    if not shares:
        raise problems[0]
    return share_of(points, sum(shares) / len(graphs))


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
    tables = []
    for name, graph in graphs.items():
        with case(name):
            plan = planned(strategy, graph)
            plan.check()
            rows = pd.DataFrame([*compared(plan, graph)], index=["yours", "none", "all", "share"])
        tables.append(rows.T.rename_axis("metric").reset_index().assign(graph=name))
    columns = ["graph", "metric", "yours", "none", "all", "share"]
    return pd.concat(tables, ignore_index=True)[columns]


def planned(strategy: Any, graph: Graph, n_cols: int = N_COLS) -> Plan:
    """Let a student's scheme plan, and return a plan of the library's own with that workload.

    Only numbers come from the student's: where the blocks begin, which warp has what, the order of
    the rows, the metadata.
    """
    return Theirs(strategy, graph, n_cols).plan(graph, n_cols)


class Theirs(Strategy):
    """What a student's scheme told of a graph, as a strategy of the library's own kind.

    Its `slice_workload` has `held` bytes, beyond names and a few numbers.
    """

    operation = SPMM
    name = "theirs"

    def __init__(self, strategy: Any, graph: Graph, n_cols: int) -> None:
        parts = [graph.row_pointers, graph.column_indices, graph.values]  # noqa: PD011
        graph_data = [*parts, list(graph.shape), graph.name, n_cols]
        told = call_beside(strategy, "accelviz.course.checks.export:exported", *graph_data)
        require(isinstance(told, dict), "the scheme gave no plan")
        self.name = str(told.get("name"))[:60]  # type: ignore[misc]
        taken = self.name in [paper.name for paper in REGISTRY]
        require(not taken, f"there is a scheme of the name {self.name!r} already")
        blocks, warps, zeros = (told.get(name) for name in ("blocks", "warps", "zero_outputs"))
        _require_between("blocks have {} warps", warps, FEWEST_WARPS, MOST_WARPS)
        most = 10 * (graph.nnz + graph.n_rows) + 1_000
        _require_between("the grid has {} blocks", blocks, 0, most)
        require(
            isinstance(zeros, list | tuple) and set(zeros) <= {"Y"},
            f'zero_outputs is {zeros!r}, and should be ("Y",) or ()',
        )
        order, permutation, nonzero_order = told.get("order"), None, None
        walked = graph.pattern
        if order is not None:
            rows = integers("order", order, (graph.n_rows,))
            permutation = Permutation(rows.astype(np.int32))
            require(np.array_equal(permutation.order, rows), "the order's numbers overflow")
            walked, nonzero_order = permutation.apply_to_pattern(graph.pattern)
        held, metadata = told.get("held"), told.get("metadata")
        require(isinstance(held, bytes), "what the workload holds is not known")
        self.held = max(0, len(held or b"") - FREE_BYTES)
        self._plan, self._link = told.get("plan"), link_of(strategy)
        self._arguments = (held, graph_data, None if permutation is None else permutation.order)
        (whole,) = self.parts([(0, int(blocks))])
        inside = len(whole) == 0 or (whole.block[0] >= 0 and whole.block[-1] < blocks)
        in_order = inside and not np.any(np.diff(whole.block) < 0)
        require(in_order, "blocks are out of order, or too many")
        self._launch, self._zeros = LaunchConfig((int(blocks), 1, 1), int(warps)), tuple(zeros)
        self._layout = Layout(
            graph.pattern,
            partial(_part, whole),
            walked,
            permutation,
            nonzero_order,
            None if metadata is None else np.asarray(metadata),
        )

    def parts(self, ranges: list[tuple[int, int]]) -> list[Workload]:
        """Return parts of the workload, asked for in a process that has run the cells alone.

        In a notebook of the student's own, there is no other process.
        """
        if self._link is None:
            assert isinstance(self._plan, Plan)
            tables = [as_table(self._plan.workload(*blocks)) for blocks in ranges]
        else:
            request = {"do": "run", "function": "accelviz.course.checks.export:slices"}
            tables = self._link.twin.ask(request, *self._arguments, ranges)
        require(isinstance(tables, list), "the workload is no table")
        parts = []
        for records in tables:
            columns = integers("the workload", records, np.shape(records))
            five = columns.ndim == 2 and columns.shape[0] == 5
            require(five, "the workload has five columns")
            fits = np.abs(columns[[1, 2, 4]]).max(initial=0) < 1 << 31
            require(fits, "the workload's numbers overflow")
            parts.append(Workload(*columns))
        return parts

    def build(self, graph: Graph, widths: Widths, settings: Settings) -> Plan:
        """Return the plan."""
        made_by = Provenance(self, graph.values, widths, settings)
        buffers = Buffers(zero_outputs=self._zeros)
        return Plan(self._layout, (Call(self._launch),), buffers, made_by)


def _require_between(text: str, number: Any, least: int, most: int) -> None:
    require(
        isinstance(number, int) and least <= number <= most,
        f"{text.format(number)}, and should have {least} to {most:,}",
    )


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
    pairs = np.unique(np.stack([work.row, work.block]), axis=1)
    blocks = np.bincount(pairs[0], minlength=plan.walked.n_rows)
    for wrong, fault in ((blocks == 0, "has no line"), (blocks > 1, "lies in several blocks")):
        require(
            not wrong.any(),
            f"row {wrong.argmax() if wrong.size else 0} of the walked pattern {fault}; "
            'zero_outputs=("Y",) is needed',
        )
