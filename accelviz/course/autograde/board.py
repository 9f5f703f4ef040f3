"""What a submission's own scheme is worth on hidden graphs; runs as a test does, apart from it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from accelviz.course.autograde.wire import Lost
from accelviz.course.checks import hidden, metrics, schemes
from accelviz.course.checks.common import case
from accelviz.course.checks.remote import Link
from accelviz.graph import Graph
from accelviz.plans import Plan, Strategy
from accelviz.strategies import plan as make_plan

#: The papers' schemes that a board shows beside the students'.
REFERENCES = ("accel_gcn", "gnnadvisor", "graphblast", "merge_path")


def find_scheme(names: Sequence[str], space: Mapping[str, Any] | None = None) -> Strategy | None:
    """Return the scheme that the notebook of this process (or another's variables) defines.

    Its class has one of these names: an example beside it is not the student's. Without names it is
    the class that was defined last.
    """
    from IPython import get_ipython

    space = get_ipython().user_ns if space is None else space
    classes = [
        value
        for value in space.values()
        if isinstance(value, type)
        and issubclass(value, Strategy)
        and value.__module__ == space.get("__name__")
    ]
    chosen = [value for value in classes if not names or value.__name__ in names]
    return chosen[-1]() if chosen else None


def rows(submission: Link, names: Sequence[str], seed: int) -> list[dict[str, Any]]:
    """Measure a student's scheme on each hidden graph.

    Parameters
    ----------
    submission : Link
    names : sequence of str
        What the scheme's class should be called.
    seed : int
        Of the hidden graphs.

    Returns
    -------
    list of dict
        For each graph: `scheme`, `graph`, `exact_cover`, the metrics of `metrics.Metrics`, `score`
        (mean share of the points, 0 to 1; 0 without an exact cover) and `problem`. None without a
        scheme.
    """
    request = {"do": "run", "function": f"{__name__}:{find_scheme.__name__}"}
    strategy = submission.ask(request, list(names))
    if strategy is None:
        return []
    try:
        name = str(strategy.name)
    except Exception:  # of a student's code
        name = ""
    name = "".join(letter if letter.isprintable() else " " for letter in name[:60])
    make = partial(schemes.planned, strategy)
    return [_row(name, graph, make) for graph in hidden.graphs(seed).values()]


def references(seed: int) -> list[dict[str, Any]]:
    """Measure the papers' schemes in the same way; they are not ranked."""
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
            counted, *_, shares = map(dataclasses.asdict, metrics.compared(plan, graph))
    except Lost:
        raise
    except Exception as error:
        return {**row, "problem": f"{type(error).__name__}: {error}".strip(": ")[:300]}
    score = sum(shares.values()) / len(shares)
    return {**row, **counted, "exact_cover": True, "score": score, "problem": ""}
