"""What the page draws from: graphs, strategies, recorded times, terms. Settings are the page's."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from accelviz.errors import AccelvizError, ArgumentError
from accelviz.graph import KINDS, Graph
from accelviz.measure.prediction import recorded_graphs, recorded_times
from accelviz.plans import Operation, Strategy
from accelviz.plans.operation import ROWS, SENDERS
from accelviz.plots.style import strategy_colours
from accelviz.widgets.offers import COLUMNS, cut_tables, offered
from accelviz.widgets.pack import Differences

#: Nonzeros up to which a graph's columns are in the page: about two bytes each, compressed.
MOST_COLUMNS = 1_000_000


def graph_content(graph: Graph, row: int = 0) -> dict[str, Any]:
    """Return a graph: its degrees, and its columns or, of a large one, those of a row."""
    content: dict[str, Any] = {
        "name": graph.name,
        "rows": graph.shape[0],
        "cols": graph.shape[1],
        "kind": KINDS.get(graph.kind, graph.kind),
        "degrees": graph.degrees,
    }
    if graph.nnz <= MOST_COLUMNS:
        content["columns"] = Differences(graph.column_indices)
    else:
        content["some"] = [{"row": row, "columns": columns_of(graph, row)}]
    return content


def columns_of(graph: Graph, row: int) -> Any:
    """Return the neighbors of a row."""
    first, last = graph.row_pointers[row : row + 2]
    return graph.column_indices[first:last]


def times_content(graph: Graph, operation: Operation) -> dict[str, Any]:
    """Return what was recorded of an operation on exactly this graph on a GPU, or else on which."""
    times = recorded_times(graph, operation)
    hardware, date = times["hardware"].unique(), times["date"]
    ends = " to ".join(sorted({date.min(), date.max()}) if len(times) else ())
    where = f"{', '.join(hardware)}, {ends}" if len(times) else ""
    return {
        "where": where,
        "graphs": [] if where else recorded_graphs(operation),
        "strategy": times["strategy"].tolist(),
        "columns": times["columns"].tolist(),
        "setting": times["setting"].tolist(),
        "median": times["median_us"].round(3).tolist(),
        "limit": times["gather_limit_us"].round(3).tolist(),
    }


def operation_content(operation: Operation) -> dict[str, Any]:
    """Return what the drawing calls an operation's matrices.

    Returns
    -------
    dict
        `name`, `formula`, `by_sender`; `title`, which is both of the first; `reads`, the operand of
        which each nonzero has a row, and `at_nonzeros`, whether that is a row of its own or its
        neighbor's; `beside`, what is read, too, or None: the operand of which it is the
        followed row's own row, or where `at_nonzeros` another one with rows of nonzeros;
        `numbers`, the inputs with a number for each row or each neighbor, and for which; `writes`
        and `per_nonzero`, the same of the result; `wide`, whether the result has all columns;
        `arrays`, each operand with all columns and whether it is gathered.

    Raises
    ------
    ArgumentError
        If no matrix has a row a node or a nonzero, as with images.
    """
    own, other = (SENDERS, ROWS) if operation.by_sender else (ROWS, SENDERS)
    wide = [each for each in operation.operands.values() if "n_cols" in each.axes]
    at_nonzeros = [each for each in operation.dense if each.of_nonzeros]
    reads = next((each for each in wide if each.gathered and each.axes[0] == other), None)
    beside = [each for each in operation.inputs if each in wide and each.axes[0] == own]
    if reads is None:
        beside = at_nonzeros[:-1]
    of_rows = [each for each in operation.outputs if each in wide and each.axes[0] == own]
    written = of_rows or [each for each in operation.outputs if each.of_nonzeros]
    if not written or not (reads or at_nonzeros):
        problem = f"no matrix of {operation.name} has a row for each node or nonzero"
        raise ArgumentError("strategies", problem, "of an operation such as spmm, sddmm or gat")
    writes = written[0]
    return {
        **{name: getattr(operation, name) for name in ("name", "formula", "by_sender")},
        "title": f"{operation.name} ({operation.formula})",
        "reads": (reads or at_nonzeros[-1]).name,
        "at_nonzeros": reads is None,
        "beside": beside[0].name if beside else None,
        "numbers": {
            each.name: "row" if each.axes[0] == own else "neighbor"
            for each in operation.inputs
            if each not in wide and each.axes and each.axes[0] in (own, other)
        },
        "writes": writes.name,
        "per_nonzero": writes.of_nonzeros,
        "wide": writes in wide,
        "arrays": {each.name: each.gathered for each in wide},
    }


def strategies_content(
    strategies: Sequence[Strategy], graph: Graph, n_cols: int, given: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return the strategies: their parameters with the values offered, and their cuts.

    Parameters
    ----------
    strategies : sequence of Strategy
    graph : Graph
        Rules look at its size.
    n_cols : int
    given : mapping
        Parameters that are offered, and set, besides the usual ones.
    """
    colours = strategy_colours(each.name for each in strategies)
    columns = columns_offered(n_cols)
    found = []
    for strategy in strategies:
        own = strategy.parameters
        start = {name: given.get(name, own[name].default) for name in own}
        offers = {name: offered(own[name], _kept(own[name], start[name])) for name in own}
        start = {name: _kept(own[name], value) for name, value in start.items()}
        axes = {"n_cols": columns, **{n: each for n, each in offers.items() if len(each) > 1}}
        found.append(
            {
                "name": strategy.name,
                "operation": strategy.operation.name,
                "formula": strategy.operation.formula,
                "summary": strategy.summary,
                "worker": strategy.worker,
                "owner": strategy.metadata_owner,
                "colour": colours[strategy.name],
                "parameters": [
                    {
                        "name": name,
                        "meaning": own[name].meaning,
                        "default": own[name].default,
                        "value": start[name],
                        "values": list(offers[name]),
                    }
                    for name in own
                ],
                "cut": cut_tables(strategy, graph, axes, {**start, "n_cols": n_cols}),
            }
        )
    return found


def _kept(parameter: Any, value: Any) -> Any:
    """Return a value if the parameter can have it, else its default: ranges differ."""
    try:
        return parameter.checked("parameter", value)
    except AccelvizError:
        return parameter.default


def columns_offered(n_cols: int) -> list[int]:
    """Return the column counts of the control, the present one included."""
    return sorted({*COLUMNS, n_cols})


def listed_content(strategy: Strategy, graph: Graph, n_cols: int, given: Mapping[str, Any]) -> Any:
    """Return the workload of a strategy that names no cut, record by record, and what it counts."""
    plan = strategy.plan(graph, n_cols, **given)
    content: dict[str, Any] = {
        "strategy": strategy.name,
        "graph": graph.name,
        "nCols": n_cols,
        "given": dict(given),
        "settled": {name: plan.parameters[name] for name in strategy.parameters},
    }
    found = strategy.closed_form(graph, n_cols, **given)
    if plan.has_workload:
        work = plan.workload()
        counted = found or plan.statistics
        order = None if plan.permutation is None else plan.permutation.order
        bounds = np.searchsorted(work.block, np.arange(plan.launch.n_blocks + 1))
        content |= {
            "blocks": plan.launch.n_blocks,
            "warps": plan.workers_per_block,
            "order": order,
            "bounds": bounds,
            "warp": work.warp,
            "row": work.row,
            "start": work.nz_start,
            "count": work.nz_count,
        }
        loads = counted.loads
        content["summary"] = {
            **{n: v for n, v in vars(counted).items() if n != "loads"},
            "loads": loads and {"nonzeros": loads.nonzeros, "warps": loads.warps},
        }
        if plan.metadata is not None and plan.metadata.dtype.itemsize == 4:
            table = plan.metadata.reshape(len(plan.metadata), -1)
            content["metadata"] = {"words": table, "wide": table.shape[1]}
            content["metadata"]["names"] = list(strategy.metadata_words)
    return content


@functools.cache
def glossary() -> dict[str, str]:
    """Return the terms of the lessons' glossary and what they mean."""
    here = Path(__file__).resolve().parents[1]
    for folder in (here, here.parent):
        path = folder / "notebooks" / "glossary.md"
        if path.exists():
            found = re.findall(r"\*\*(.+?)\*\*: (.+?) \(\[", path.read_text("utf-8"))
            return dict(found)
    return {}
