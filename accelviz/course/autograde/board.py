"""Measures a partition scheme on hidden graphs, for the leaderboard.

`rows` runs like a test, in a process apart from the student's code.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

from accelviz.course.autograde.common import clean
from accelviz.course.checks import hidden, metrics, schemes
from accelviz.course.checks.common import case
from accelviz.graph import Graph
from accelviz.plans import Plan
from accelviz.strategies import plan as make_plan

#: The papers' schemes that the leaderboard shows for comparison.
REFERENCES = ("accel_gcn", "gnnadvisor", "graphblast", "merge_path")


def rows(strategy: Any, seed: int) -> list[dict[str, Any]]:
    """Measure a student's scheme on each hidden graph.

    Parameters
    ----------
    strategy : Strategy
    seed : int
        Seed of the hidden graphs.

    Returns
    -------
    list of dict
        For each graph: `scheme`, `graph`, `exact_cover`, the fields of `metrics.Metrics`, `score`
        (mean share of the points, 0 to 1; 0 without an exact cover) and `problem`.
    """
    try:
        name = clean(str(strategy.name)[:60])
    except Exception:  # the student's code may raise anything
        name = ""
    make = partial(schemes.planned, strategy)
    return [_row(name, graph, make) for graph in hidden.graphs(seed).values()]


def references(seed: int) -> list[dict[str, Any]]:
    """Measure the papers' schemes in the same way."""
    return [
        _row(name, graph, partial(make_plan, strategy=name, n_cols=metrics.N_COLS))
        for graph in hidden.graphs(seed).values()
        for name in REFERENCES
    ]


def _row(name: str, graph: Graph, make: Callable[[Graph], Plan]) -> dict[str, Any]:
    row = {"scheme": name, "graph": graph.name, "exact_cover": False, "score": 0.0}
    try:
        with case(graph.name):
            plan = make(graph)
            plan.check()
            measured, *_, shares = map(dataclasses.asdict, metrics.compared(plan, graph))
    except Exception as error:
        return {**row, "problem": f"{type(error).__name__}: {error}".strip(": ")[:300]}
    score = sum(shares.values()) / len(shares)
    return {**row, **measured, "exact_cover": True, "score": score, "problem": ""}
