"""What a student's scheme planned, as plain data; runs where the scheme is."""

from __future__ import annotations

from types import FunctionType
from typing import Any

import numpy as np

from accelviz.course.checks.common import require
from accelviz.course.checks.metrics import held_bytes
from accelviz.course.checks.names import own_work
from accelviz.graph import Graph
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
        `name`, `blocks`, `warps`, `clears`, `order` of the rows (or None), `metadata` (or None),
        `held` bytes, the whole `work` as int64 (5, records), and the `plan` itself.

    Raises
    ------
    AssertionError
        If the scheme is one of the papers' in disguise, or no scheme at all, or its plan does not
        belong to the graph.
    """
    graph = Graph(pointers, columns, values, tuple(shape), name)
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
        warps == plan.launch.warps_per_block,
        f"blocks have {warps} warps, and should have {plan.launch.warps_per_block}, as launched",
    )
    _check_matrix(plan)
    return {
        "name": strategy.name,
        "blocks": int(plan.launch.n_blocks),
        "warps": int(warps),
        "clears": list(plan.cleared),
        "order": None if plan.permutation is None else plan.permutation.order,
        "metadata": plan.metadata,
        "held": int(held_bytes(plan)),
        "work": _table(plan.workload()),
        "plan": plan,
    }


def slices(plan: Any, ranges: list[tuple[int, int]]) -> list[Any]:
    """Return parts of a plan's workload, int64 (5, records) each."""
    return [_table(plan.workload(start, stop)) for start, stop in ranges]


def _table(work: Any) -> Any:
    return np.stack([np.asarray(work[name], dtype=np.int64) for name in COLUMNS])


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
