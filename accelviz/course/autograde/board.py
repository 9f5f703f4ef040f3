"""What a submission's own scheme is worth on hidden graphs; runs in the submission's kernel."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any

from accelviz.course.checks import hidden, metrics, schemes
from accelviz.graph import Graph
from accelviz.plans import Strategy
from accelviz.strategies import plan as make_plan

#: The kind of output that carries the result out of the kernel.
JSON = "application/json"
#: The papers' schemes that a board shows beside the students'.
REFERENCES = ("accel_gcn", "gnnadvisor", "graphblast", "merge_path")


def find_scheme(namespace: Mapping[str, Any], names: Collection[str] = ()) -> Strategy | None:
    """Return the scheme that a notebook defines.

    Parameters
    ----------
    namespace : mapping
        The notebook's variables.
    names : collection of str
        What its class should be called; else it is the class that was defined last.
    """
    own = [
        value
        for value in namespace.values()
        if isinstance(value, type)
        and issubclass(value, Strategy)
        and value.__module__ == namespace.get("__name__")
    ]
    named = [value for value in own if value.__name__ in names]
    chosen = named or own
    return chosen[-1]() if chosen else None


def rows(strategy: Strategy, seed: int) -> list[dict[str, Any]]:
    """Measure a student's scheme on each hidden graph.

    Parameters
    ----------
    strategy : Strategy
    seed : int
        Of the hidden graphs.

    Returns
    -------
    list of dict
        For each graph: `scheme`, `graph`, `exact_cover`, the metrics of `metrics.Metrics`, `score`
        (mean share of the points, 0 to 1; 0 without an exact cover) and `problem`.
    """
    return [_row(strategy, name, graph) for name, graph in hidden.graphs(seed).items()]


def _row(strategy: Strategy, name: str, graph: Graph) -> dict[str, Any]:
    row = {"scheme": str(strategy.name), "graph": name, "exact_cover": False, "score": 0.0}
    try:
        schemes.covers(strategy, {name: graph})
        row["exact_cover"] = True
        table = schemes.table(strategy, {name: graph})
    except Exception as error:
        return {**row, "problem": f"{type(error).__name__}: {error}".strip(": ")[:300]}
    counted = dict(zip(table["metric"], map(float, table["yours"]), strict=True))
    return {**row, **counted, "score": float(table["share"].mean()), "problem": ""}


def references(seed: int) -> list[dict[str, Any]]:
    """Measure the papers' schemes in the same way; they are not ranked."""
    found = []
    for name, graph in hidden.graphs(seed).items():
        bounds = metrics.bounds(graph)
        for strategy in REFERENCES:
            plan = make_plan(graph, strategy, metrics.N_COLS)
            counted = metrics.measured(plan)
            counted = dataclasses.replace(counted, metadata_bytes=plan.metadata_bytes)
            earned = dataclasses.astuple(metrics.shares(counted, *bounds))
            row = {"scheme": strategy, "graph": name, "exact_cover": True, "problem": ""}
            score = sum(earned) / len(earned)
            found.append({**row, **dataclasses.asdict(counted), "score": score})
    return found


def show(namespace: Mapping[str, Any], names: Collection[str], seed: int) -> None:
    """Show the rows of a notebook's scheme as JSON."""
    from IPython.display import display

    strategy = find_scheme(namespace, names)
    content = [] if strategy is None else rows(strategy, seed)
    display({JSON: content}, raw=True)
