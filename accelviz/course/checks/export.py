"""What a student's scheme planned, as plain data; runs beside the student's code."""

from __future__ import annotations

from typing import Any

import numpy as np

from accelviz.course.checks.common import require
from accelviz.course.checks.shipping import matrix, packed, unpacked
from accelviz.graph import Graph
from accelviz.ordering import Permutation
from accelviz.plans import Plan, Strategy
from accelviz.strategies import REGISTRY, SPMM
from accelviz.strategies import plan as make_plan

#: A workload's columns, in order.
COLUMNS = ("block", "warp", "row", "nz_start", "nz_count")


def exported(
    strategy: Any, pointers: Any, columns: Any, values: Any, shape: Any, name: str, n_cols: int
) -> dict[str, Any]:
    """Let a scheme plan for a graph, and return what there is to know of the plan.

    Returns
    -------
    dict
        `name`, `blocks`, `warps`, `zero_outputs`, `order` of the rows (or None), `metadata` (or
        None), what `slice_workload` holds (`held`), and the `plan` itself.

    Raises
    ------
    AssertionError
        If the scheme is one of the papers' in disguise, or no scheme at all, or its plan does not
        belong to the graph.
    """
    graph = Graph(pointers, columns, values, tuple(shape), name)
    require(isinstance(strategy, Strategy), f"{strategy!r} is no object of a class of Strategy")
    require(
        not isinstance(strategy, tuple(map(type, REGISTRY))),
        f"{type(strategy).__name__} is derived from a scheme that is there already",
    )
    named = isinstance(strategy.name, str) and strategy.name.strip()
    require(named, "the scheme has no name")
    plan = make_plan(graph, strategy, n_cols, operation=SPMM)
    require(isinstance(plan, Plan), f"build returns a {type(plan).__name__}, and should a Plan")
    slice_workload = plan.layout.slice_workload
    require(callable(slice_workload), "the plan has no slice_workload")
    assert slice_workload is not None
    same_pattern = plan.pattern is graph.pattern
    require(same_pattern, "the plan's pattern is not that of the graph that build was given")
    require(plan.n_cols == n_cols, f"the plan is for {plan.n_cols} columns instead of {n_cols}")
    warps, launched = plan.workers_per_block, plan.launch.warps_per_block
    require(
        warps == launched, f"blocks have {warps} warps, and should have {launched}, as launched"
    )
    _check_matrix(plan)
    known = matrix(graph, plan.permutation, plan.layout.nonzero_order, plan.walked)
    return {
        "name": strategy.name,
        "blocks": int(plan.launch.n_blocks),
        "warps": int(warps),
        "zero_outputs": list(plan.zero_outputs),
        "order": None if plan.permutation is None else plan.permutation.order,
        "metadata": plan.metadata,
        "held": packed(slice_workload, known),
        "plan": plan,
    }


def slices(held: bytes, graph_data: Any, order: Any, ranges: list[tuple[int, int]]) -> list[Any]:
    """Return parts of a workload, int64 (5, records) each; runs where only the cells were run.

    Parameters
    ----------
    held : bytes
        From `exported`.
    graph_data : sequence
        What `exported` was given of the graph.
    order : array or None
        Of the rows.
    ranges : list of (int, int)
        Of blocks.
    """
    pointers, columns, values, shape, name, _ = graph_data
    graph = Graph(pointers, columns, values, tuple(shape), name)
    permutation, walked, nonzero_order = None, graph.pattern, None
    if order is not None:
        permutation = Permutation(order)
        walked, nonzero_order = permutation.apply_to_pattern(graph.pattern)
    function = unpacked(held, matrix(graph, permutation, nonzero_order, walked))
    return [table(function(start, stop)) for start, stop in ranges]


def table(work: Any) -> Any:
    """Return a workload as int64, shape (5, records)."""
    return np.stack([np.asarray(work[name], dtype=np.int64) for name in COLUMNS])


def _check_matrix(plan: Plan) -> None:
    """Require that the walked pattern be the graph's, its rows in the permutation's order."""
    actual = plan.layout.nonzero_order
    if plan.permutation is None:
        same = plan.walked is plan.pattern and actual is None
        require(same, "without a permutation, walked and nonzero_order are not to be given")
        return
    expected, order = plan.permutation.apply_to_pattern(plan.pattern)
    for name in ("row_pointers", "column_indices"):
        require(
            np.array_equal(getattr(expected, name), getattr(plan.walked, name)),
            f"the {name} of walked are not those of the pattern with its rows permuted",
        )
    require(
        actual is not None and np.array_equal(actual, order),
        "nonzero_order is not the one that apply_to_pattern gives beside the walked pattern",
    )
