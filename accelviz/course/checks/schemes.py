"""Checks of assignment A3: a student's own partition scheme, compared with the papers' schemes.

The student's object (`course.scheme.Scheme`) stays in the submission's process. `StudentScheme`
fetches its partition and workload as plain data, validates them, and presents them to the checks.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from accelviz.course.autograde.common import clean
from accelviz.course.checks.common import (
    case,
    graph_data,
    integers,
    measurements,
    require,
    share_of,
)
from accelviz.course.checks.metrics import N_COLS, Metrics, compared, measured, papers
from accelviz.course.checks.remote import call_in_submission, link_of, name_of
from accelviz.course.scheme import Partition, Scheme
from accelviz.devices import find_device
from accelviz.graph import Graph, Pattern
from accelviz.measure import check, features
from accelviz.measure.accuracy import Oracle
from accelviz.ordering import Permutation
from accelviz.plans import Plan
from accelviz.strategies import REGISTRY
from accelviz.workload import COLUMNS, Workload

Graphs = Mapping[str, Graph]
#: Warps of a block. One warp would never wait for another; CUDA allows at most 32.
MIN_WARPS, MAX_WARPS = 4, 32


def form(strategy: Any, graph: Graph) -> None:
    """Require a named strategy of the student's own whose plan covers a graph.

    Parameters
    ----------
    strategy : Scheme
        The student's.
    graph : Graph

    Raises
    ------
    AssertionError, AccelvizError
        If it is no Scheme, has no name of its own, has blocks of fewer than 4 or more than 32
        warps, or does not cover the graph.
    """
    covers(strategy, {graph.name: graph})


def covers(strategy: Any, graphs: Graphs) -> None:
    """Require that every nonzero of every graph be covered exactly once; see `form`."""
    for name, graph in graphs.items():
        with case(name):
            planned(strategy, graph).check()


def slices(strategy: Any, graphs: Graphs) -> None:
    """Require that `workload` of any range of blocks return that part of the whole."""
    for name, graph in graphs.items():
        with case(name):
            scheme = _scheme(strategy, graph)
            plan = scheme.plan(graph, N_COLS)
            plan.check()
            whole, n_blocks = plan.workload(), plan.launch.n_blocks
            ranges = [(0, 0)]
            for step in (1, 7, max(1, n_blocks // 2)):
                starts = range(0, n_blocks, step)
                ranges += [(start, min(start + step, n_blocks)) for start in starts]
            parts = scheme.parts(ranges)
            require(len(parts) == len(ranges), "a part of the workload is missing")
            require(len(parts[0]) == 0, "workload of no blocks should have no record")
            for (start, stop), part in zip(ranges, parts, strict=True):
                inside = (whole.block >= start) & (whole.block < stop)
                for column in COLUMNS:
                    require(
                        np.array_equal(part[column], whole[column][inside]),
                        f"workload of blocks {start} to {stop - 1} gives other records than that "
                        f"of all blocks: the column {column} differs",
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
    strategy : Scheme
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
        for name, metrics in papers(graph).items():
            _keep(name, graph, *compared(metrics, graph), paper=name)
        try:
            name, results = _compared(strategy, graph)
            shares.append(float(getattr(results[-1], metric)))
            _keep(name, graph, *results)
        except Exception as error:  # of a student's code, which may raise anything
            problems.append(error)
            _keep("", graph, problem=f"{type(error).__name__}: {error}".strip(": "))
    if not shares:
        raise problems[0]
    return share_of(points, sum(shares) / len(graphs))


def _keep(name: str, graph: Graph, *metrics: Metrics, paper: str = "", problem: str = "") -> None:
    """Keep a row of the leaderboard: metrics and shares (`compared`), or the problem."""
    numbers, *_, shares = map(dataclasses.asdict, metrics) if metrics else ({}, {})
    score = sum(shares.values()) / len(Metrics.__dataclass_fields__)
    row = {"paper": bool(paper), "scheme": clean(name), "graph": graph.name}
    row |= {"exact_cover": not problem, "score": score, "problem": clean(problem)[:300]}
    measurements[paper, graph.name] = row | {key: float(value) for key, value in numbers.items()}


def table(strategy: Any, graphs: Graphs) -> pd.DataFrame:
    """Return the metrics of a scheme beside the papers', and the share of the points they earn.

    Parameters
    ----------
    strategy : Scheme
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
        rows = pd.DataFrame([*_compared(strategy, graph)[1]], index=index)
        tables.append(rows.T.rename_axis("metric").reset_index().assign(graph=name))
    columns = ["graph", "metric", *index]
    return pd.concat(tables, ignore_index=True)[columns]


def _compared(strategy: Any, graph: Graph) -> tuple[str, tuple[Metrics, ...]]:
    """Return the name of a student's scheme, and what `compared` returns."""
    with case(graph.name):
        plan = planned(strategy, graph)
        plan.check()
        return plan.strategy.name, compared(measured(plan), graph)


def planned(strategy: Any, graph: Graph, n_cols: int = N_COLS) -> Plan:
    """Plan with a student's scheme and return the result as a plan of the library's own classes.

    Only numbers come from the student's code: workload, order of the rows, metadata.
    """
    return _scheme(strategy, graph).plan(graph, n_cols)


def _scheme(strategy: Any, graph: Graph) -> StudentScheme:
    """Return a scheme's partition of a graph, which all tests of a submission share."""
    link = link_of(strategy)
    shared = {} if link is None else link.shared
    data = (getattr(item, "tobytes", item.__repr__)() for item in graph_data(graph))
    key = name_of(strategy), *data
    if key not in shared:
        shared[key] = StudentScheme(strategy, graph)
    return shared[key]


class StudentScheme(Scheme):
    """A student's scheme after it has partitioned one graph, as plain data.

    Raises AssertionError if the partition is malformed or outside the limits of the assignment.
    """

    name = "theirs"

    def __init__(self, scheme: Any, graph: Graph) -> None:
        # without what `partition` leaves in the scheme, as in grading
        self._scheme, self._data = copy.copy(scheme), graph_data(graph)
        with case("partition"):
            data = call_in_submission(scheme, "accelviz.course.scheme:exported", self._data)
        require(isinstance(data, dict), "the scheme gave no partition")
        self.name = str(data.get("name"))[:60]  # type: ignore[misc]
        is_paper = self.name in [paper.name for paper in REGISTRY]
        require(not is_paper, f"there is a scheme of the name {self.name!r} already")
        order: Any
        blocks, warps, order, metadata = map(data.get, ("blocks", "warps", "order", "metadata"))
        _require_between("blocks have {} warps", warps, MIN_WARPS, MAX_WARPS)
        max_blocks = 10 * (graph.nnz + graph.n_rows) + 1_000
        _require_between("the grid has {} blocks", blocks, 0, max_blocks)
        if order is not None:
            order = integers("order", order, (graph.n_rows,))
            Permutation(order)  # raises GraphError unless it is one
        if metadata is not None:  # in the dtype that the scheme gave them, whose bytes count
            metadata = np.asarray(metadata)
            integers("metadata", metadata, metadata.shape)
        zero_output = bool(data.get("zero_output"))
        self._partition = Partition(blocks, warps, metadata, order, zero_output)
        (whole,) = self.parts([(0, blocks)])
        in_grid = len(whole) == 0 or (whole.block[0] >= 0 and whole.block[-1] < blocks)
        in_order = in_grid and not np.any(np.diff(whole.block) < 0)
        require(in_order, "blocks are out of order, or too many")
        self._whole = whole

    def partition(self, graph: Graph) -> Partition:
        """Return the student's partition."""
        return self._partition

    def workload(self, matrix: Pattern, metadata: Any, start: int, stop: int) -> Workload:
        """Return a part of the student's workload."""
        first, last = np.searchsorted(self._whole.block, [start, stop])
        return Workload(*(self._whole[name][first:last] for name in COLUMNS))

    def parts(self, ranges: list[tuple[int, int]]) -> list[Workload]:
        """Return the workload of each range of blocks, computed in the twin process.

        The twin has run the same cells but has not partitioned this graph: it has the matrix and
        the metadata alone. Outside of grading there is no twin, and this process computes them.
        """
        scheme = self._scheme
        if link := link_of(scheme):
            name = name_of(scheme).removesuffix("()")
            scheme = link.to("twin").request({"do": "get", "name": name})()
        arguments = self._data, self._partition.order, self._partition.metadata, ranges
        with case("workload, where partition was not called"):
            tables = call_in_submission(scheme, "accelviz.course.scheme:slices", *arguments)
        require(isinstance(tables, list), "the workload is no table")
        parts = []
        for records in tables:
            columns = integers("the workload", records, np.shape(records))
            is_table = columns.ndim == 2 and columns.shape[0] == 5
            require(is_table, "the workload has five columns")
            narrow = columns[[1, 2, 4]].astype(np.int32)
            is_int32 = np.array_equal(narrow, columns[[1, 2, 4]])  # also of -2**63
            require(is_int32, "the workload's numbers overflow")
            parts.append(Workload(*columns))
        return parts


def _require_between(text: str, number: Any, least: int, most: int) -> None:
    require(
        isinstance(number, int) and least <= number <= most,
        f"{text.format(number)}, and should have {least} to {most:,}",
    )


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
            "zero_output=True is needed",
        )
