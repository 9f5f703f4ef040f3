"""Assignment A3: a partition scheme of one's own, held against the papers' schemes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from types import FunctionType
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from accelviz.course.checks.common import case, multiplied, require, share_of
from accelviz.course.checks.metrics import N_COLS, Metrics, bounds, measured, shares
from accelviz.course.checks.names import own_work
from accelviz.executors import find_executor
from accelviz.graph import Graph
from accelviz.measure import features
from accelviz.measure.accuracy import Oracle
from accelviz.plans import Plan, Strategy
from accelviz.strategies import REGISTRY, SPMM
from accelviz.strategies import plan as make_plan
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
            for step in (1, 7, max(1, blocks // 2)):
                for start in range(0, blocks, step):
                    stop = min(start + step, blocks)
                    inside = (whole.block >= start) & (whole.block < stop)
                    _same_records(plan.workload(start, stop), whole, inside, (start, stop))
            require(len(plan.workload(0, 0)) == 0, "slice_workload(0, 0) should have no record")


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
                multiplied(plan, find_executor("cpu").prepare(plan), X[:, :n_cols], oracle)


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
        found = (yours, *bounds(graph))
        for each in fields(Metrics):
            values = (getattr(metrics, each.name) for metrics in (*found, shares(*found)))
            lines.append((name, each.name, *values))
    return pd.DataFrame(lines, columns=["graph", "metric", "yours", "none", "all", "share"])


def planned(strategy: Any, graph: Graph, n_cols: int = N_COLS) -> Plan:
    """Let a student's scheme plan, after looking whether it is one of the papers' in disguise.

    Raises
    ------
    AssertionError
        If it is, or if it is no scheme at all.
    """
    require(isinstance(strategy, Strategy), f"{strategy!r} is no object of a class of Strategy")
    papers = [type(each) for each in REGISTRY]
    require(
        not isinstance(strategy, tuple(papers)),
        f"{type(strategy).__name__} is derived from a scheme that is there already",
    )
    named = isinstance(strategy.name, str) and strategy.name.strip()
    require(named, "the scheme has no name")
    taken = [each.name for each in REGISTRY]
    require(strategy.name not in taken, f"there is a scheme of the name {strategy.name!r} already")
    methods = vars(type(strategy)).values()
    with own_work(each for each in methods if isinstance(each, FunctionType)):
        plan = make_plan(graph, strategy, n_cols, operation=SPMM)
    require(isinstance(plan, Plan), f"build returns a {type(plan).__name__}, and should a Plan")
    given = plan.pattern is graph.pattern
    require(given, "the plan's pattern is not that of the graph that build was given")
    require(plan.n_cols == n_cols, f"the plan is for {plan.n_cols} columns instead of {n_cols}")
    warps = plan.workers_per_block
    require(
        warps == plan.launch.warps_per_block and FEWEST_WARPS <= warps <= MOST_WARPS,
        f"blocks have {warps} warps, and should have {FEWEST_WARPS} to {MOST_WARPS}",
    )
    _check_matrix(plan)
    return plan


def _check_matrix(plan: Plan) -> None:
    """Require that the walked pattern be the graph's, its rows in the permutation's order."""
    if plan.permutation is None:
        same = plan.walked is plan.pattern and plan.nonzero_order is None
        require(same, "without a permutation, walked and nonzero_order are not to be given")
        return
    right, order = plan.permutation.apply_to_pattern(plan.pattern)
    for name in ("row_pointers", "column_indices"):
        require(
            np.array_equal(getattr(right, name), getattr(plan.walked, name)),
            f"the {name} of walked are not those of the pattern with its rows permuted",
        )
    found = plan.nonzero_order
    require(
        found is not None and np.array_equal(found, order),
        "nonzero_order is not the one that apply_to_pattern gives beside the walked pattern",
    )


def _require_writing(plan: Plan) -> None:
    """Require that each row be written by one block, unless the output is cleared first.

    The replay on the CPU adds up whole rows, and would not notice several blocks.
    """
    if plan.cleared:
        return
    work = plan.workload()
    blocks = np.bincount(
        np.unique(np.stack([work.row, work.block]), axis=1)[0], minlength=plan.walked.n_rows
    )
    for wrong, what in ((blocks == 0, "has no line"), (blocks > 1, "lies in several blocks")):
        if wrong.any():
            row = int(wrong.argmax())
            raise AssertionError(f'row {row} of the walked pattern {what}; clears=("Y",) is needed')


def _same_records(
    part: Workload, whole: Workload, inside: npt.NDArray[np.bool_], blocks: tuple[int, int]
) -> None:
    for name in ("block", "warp", "row", "nz_start", "nz_count"):
        require(
            np.array_equal(part[name], whole[name][inside]),
            f"slice_workload{blocks} gives other records than slice_workload for all blocks: the "
            f"column {name} differs",
        )


def _points(strategy: Any, graphs: Graphs, points: float, metric: str) -> float:
    earned, problems = [], []
    for name, graph in graphs.items():
        try:
            found = table(strategy, {name: graph})
            earned.append(float(found.loc[found["metric"] == metric, "share"].iloc[0]))
        except Exception as error:  # of a student's code, which may raise anything
            problems.append(error)
    if not earned:
        raise problems[0]
    return share_of(points, sum(earned) / len(graphs))
