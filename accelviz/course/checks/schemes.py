"""Checks of assignment A3: a student's own partition scheme, compared with the papers' schemes.

A partition scheme (`Strategy`) distributes a matrix's nonzeros over thread blocks and warps. The
student's object stays in the submission's process. `StudentScheme` fetches its plan as plain data,
validates it, and presents it to the checks as a strategy of the library.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from accelviz.course.autograde.common import clean
from accelviz.course.checks import hidden
from accelviz.course.checks.common import case, graph_data, integers, require, share_of
from accelviz.course.checks.export import COLUMNS, FREE_BYTES
from accelviz.course.checks.export import table as as_table
from accelviz.course.checks.metrics import N_COLS, Metrics, compared
from accelviz.course.checks.remote import call_in_submission, link_of, name_of
from accelviz.devices import find_device
from accelviz.graph import Graph
from accelviz.measure import check, features
from accelviz.measure.accuracy import Oracle
from accelviz.ordering import Permutation
from accelviz.plans import Buffers, Layout, Plan, Provenance, Strategy, Widths
from accelviz.plans.launch import Call, LaunchConfig
from accelviz.plans.settings import Settings
from accelviz.strategies import REGISTRY, SPMM
from accelviz.strategies import plan as make_plan
from accelviz.workload import Workload

Graphs = Mapping[str, Graph]
#: Warps of a block. One warp would never wait for another; CUDA allows at most 32.
MIN_WARPS, MAX_WARPS = 4, 32


def form(strategy: Any, graph: Graph) -> None:
    """Require a named strategy of the student's own whose plan covers a graph.

    Parameters
    ----------
    strategy : Strategy
        The student's.
    graph : Graph

    Raises
    ------
    AssertionError, AccelvizError
        If it is no Strategy, has no name of its own, is derived from one of the papers' schemes,
        has blocks of fewer than 4 or more than 32 warps, or does not cover the graph.
    """
    covers(strategy, {graph.name: graph})


def covers(strategy: Any, graphs: Graphs) -> None:
    """Require that every nonzero of every graph be covered exactly once; see `form`."""
    for name, graph in graphs.items():
        with case(name):
            planned(strategy, graph).check()


def slices(strategy: Any, graphs: Graphs) -> None:
    """Require that `slice_workload` of any range of blocks return that part of the workload."""
    for name, graph in graphs.items():
        with case(name):
            scheme = _scheme(strategy, graph, N_COLS)
            plan = scheme.plan(graph, N_COLS)
            plan.check()
            whole, n_blocks = plan.workload(), plan.launch.n_blocks
            ranges = [(0, 0)]
            for step in (1, 7, max(1, n_blocks // 2)):
                starts = range(0, n_blocks, step)
                ranges += [(start, min(start + step, n_blocks)) for start in starts]
            parts = scheme.parts(ranges)
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
    """Carry the plan out on the CPU and compare the result with float64.

    The output is full of NaN before. `columns` are the column counts of the dense matrix.

    Raises
    ------
    AssertionError, AccelvizError
        If a result is in the wrong row, never written, or added to a row that was not cleared.
    """
    for name, graph in graphs.items():
        X = features(graph.shape[1], max(columns), seed=graph.nnz)
        oracle = Oracle(graph, X)
        for n_cols in columns:
            with case(f"{name}, {n_cols} columns"):
                plan = planned(strategy, graph, n_cols)
                plan.check()
                _require_one_block_per_row(plan)
                check(plan, find_device("cpu").prepare(plan), {"X": X[:, :n_cols]}, oracle)


def earned(strategy: Any, graphs: Graphs, metric: str, points: float) -> float:
    """Return points for one metric: none at the row split's value, all at Accel-GCN's.

    Parameters
    ----------
    strategy : Strategy
    graphs : mapping of str to Graph
        The share of the points is the mean over these graphs.
    metric : {"waiting", "busiest_warp", "metadata_bytes", "cut_parts"}
        A field of `Metrics`. `busiest_warp` earns all points at 64 nonzeros or fewer and none at
        the row split's busiest warp, or at 1,024 nonzeros if that is more. `metadata_bytes` earns
        none at the warp-level partition's, `cut_parts` none at the larger of merge path's and
        GNNAdvisor's; both are multiplied by the share that `waiting` earns. See `metrics.shares`.
    points : float
        Points of the question.

    Returns
    -------
    float
        0 to `points`, to two decimals.

    Raises
    ------
    Exception
        The error of the first graph, if every graph has one. A graph with an error, such as one
        that is not covered, earns nothing.
    """
    shares, problems = [], []
    for graph in graphs.values():
        try:
            shares.append(float(getattr(_compared(strategy, graph)[-1], metric)))
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
        A row for each graph and metric, with the columns `graph`, `metric`, `yours`, `none` (value
        that earns no points), `all` (value that earns all points) and `share`, 0 to 1.
    """
    tables = []
    for name, graph in graphs.items():
        index = ["yours", "none", "all", "share"]
        rows = pd.DataFrame([*_compared(strategy, graph)], index=index)
        tables.append(rows.T.rename_axis("metric").reset_index().assign(graph=name))
    columns = ["graph", "metric", *index]
    return pd.concat(tables, ignore_index=True)[columns]


def measures(strategy: Any, seed: int) -> list[dict[str, Any]]:
    """Measure a scheme on each of the graphs of `hidden.graphs`, for the leaderboard.

    Parameters
    ----------
    strategy : Strategy or str
        The student's, or the name of a paper's.
    seed : int

    Returns
    -------
    list of dict
        For each graph: `scheme`, `graph`, `exact_cover`, the fields of `Metrics`, `score` (mean
        share of the points, 0 to 1; 0 without an exact cover) and `problem`.
    """
    rows, name = list[dict[str, Any]](), strategy
    if not isinstance(strategy, str):
        name = ""
        with contextlib.suppress(Exception):  # the student's code may raise anything
            name = clean(str(strategy.name)[:60])
    for graph in hidden.graphs(seed).values():
        row = {"scheme": name, "graph": graph.name, "exact_cover": False, "score": 0.0}
        try:
            measured, *_, shares = map(dataclasses.asdict, _compared(strategy, graph))
            score = sum(shares.values()) / len(shares)
            row |= {**measured, "exact_cover": True, "score": score, "problem": ""}
        except Exception as error:
            row["problem"] = f"{type(error).__name__}: {error}".strip(": ")[:300]
        rows.append(row)
    return rows


def _compared(strategy: Any, graph: Graph) -> tuple[Metrics, Metrics, Metrics, Metrics]:
    with case(graph.name):
        is_paper = isinstance(strategy, str)
        plan = make_plan(graph, strategy, N_COLS) if is_paper else planned(strategy, graph)
        plan.check()
        return compared(plan, graph)


def planned(strategy: Any, graph: Graph, n_cols: int = N_COLS) -> Plan:
    """Plan with a student's scheme and return the result as a plan of the library's own classes.

    Only numbers come from the student's code: workload, order of the rows, metadata.
    """
    return _scheme(strategy, graph, n_cols).plan(graph, n_cols)


def _scheme(strategy: Any, graph: Graph, n_cols: int) -> StudentScheme:
    """Return a scheme's plan for a graph, which all tests of a submission share."""
    link = link_of(strategy)
    shared = {} if link is None else link.shared
    data = (getattr(item, "tobytes", item.__repr__)() for item in graph_data(graph))
    key = name_of(strategy), *data, n_cols
    if key not in shared:
        shared[key] = StudentScheme(strategy, graph, n_cols)
    return shared[key]


class StudentScheme(Strategy):
    """A student's scheme after it has planned for one graph, as a strategy of the library.

    `held` is the size in bytes of the data that `slice_workload` keeps, less `FREE_BYTES`. Raises
    AssertionError if the plan's data are malformed or outside the limits of the assignment.
    """

    operation = SPMM
    name = "theirs"

    def __init__(self, strategy: Any, graph: Graph, n_cols: int) -> None:
        matrix = graph_data(graph)
        data = call_in_submission(
            strategy, "accelviz.course.checks.export:exported", matrix, n_cols
        )
        require(isinstance(data, dict), "the scheme gave no plan")
        self.name = str(data.get("name"))[:60]  # type: ignore[misc]
        is_paper = self.name in [paper.name for paper in REGISTRY]
        require(not is_paper, f"there is a scheme of the name {self.name!r} already")
        blocks, warps, zeros = (data.get(name) for name in ("blocks", "warps", "zero_outputs"))
        _require_between("blocks have {} warps", warps, MIN_WARPS, MAX_WARPS)
        max_blocks = 10 * (graph.nnz + graph.n_rows) + 1_000
        _require_between("the grid has {} blocks", blocks, 0, max_blocks)
        require(
            isinstance(zeros, list | tuple) and set(zeros) <= {"Y"},
            f'zero_outputs is {zeros!r}, and should be ("Y",) or ()',
        )
        order, permutation, nonzero_order = data.get("order"), None, None
        walked = graph.pattern
        if order is not None:
            rows = integers("order", order, (graph.n_rows,))
            permutation = Permutation(rows.astype(np.int32))
            require(np.array_equal(permutation.order, rows), "the order's numbers overflow")
            walked, nonzero_order = permutation.apply_to_pattern(graph.pattern)
        held, metadata = data.get("held"), data.get("metadata")
        require(isinstance(held, bytes), "what the workload holds is not known")
        self.held = max(0, len(held or b"") - FREE_BYTES)
        self._plan, self._link = data.get("plan"), link_of(strategy)
        self._arguments = (held, matrix, None if permutation is None else permutation.order)
        (whole,) = self.parts([(0, int(blocks))])
        in_grid = len(whole) == 0 or (whole.block[0] >= 0 and whole.block[-1] < blocks)
        in_order = in_grid and not np.any(np.diff(whole.block) < 0)
        require(in_order, "blocks are out of order, or too many")
        self._launch = LaunchConfig((int(blocks), 1, 1), int(warps))
        self._buffers = Buffers(zero_outputs=tuple(zeros))
        self._layout = Layout(
            graph.pattern,
            partial(_blocks_of, whole),
            walked,
            permutation,
            nonzero_order,
            None if metadata is None else np.asarray(metadata),
        )

    def parts(self, ranges: list[tuple[int, int]]) -> list[Workload]:
        """Return the workload of each range of blocks, computed in the twin process.

        The twin has run the same cells but has not planned for this graph (see `export`). Outside
        of grading there is no twin, and the plan in this process computes them.
        """
        if self._link is None:
            assert isinstance(self._plan, Plan)
            tables = [as_table(self._plan.workload(*blocks)) for blocks in ranges]
        else:
            request = {"do": "run", "function": "accelviz.course.checks.export:slices"}
            tables = self._link.to("twin").request(request, *self._arguments, ranges)
        require(isinstance(tables, list), "the workload is no table")
        parts = []
        for records in tables:
            columns = integers("the workload", records, np.shape(records))
            is_table = columns.ndim == 2 and columns.shape[0] == 5
            require(is_table, "the workload has five columns")
            is_int32 = np.abs(columns[[1, 2, 4]]).max(initial=0) < 1 << 31
            require(is_int32, "the workload's numbers overflow")
            parts.append(Workload(*columns))
        return parts

    def build(self, graph: Graph, widths: Widths, settings: Settings) -> Plan:
        """Return the plan."""
        provenance = Provenance(self, graph.values, widths, settings)
        return Plan(self._layout, (Call(self._launch),), self._buffers, provenance)


def _require_between(text: str, number: Any, least: int, most: int) -> None:
    require(
        isinstance(number, int) and least <= number <= most,
        f"{text.format(number)}, and should have {least} to {most:,}",
    )


def _blocks_of(whole: Workload, start: int, stop: int) -> Workload:
    first, last = np.searchsorted(whole.block, [start, stop])
    return Workload(*(whole[name][first:last] for name in COLUMNS))


def _require_one_block_per_row(plan: Plan) -> None:
    """Require that exactly one block write each row, unless the output is cleared first.

    The replay on the CPU adds up whole rows, so it cannot detect rows of several blocks.
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
