"""What the page draws from: graphs, strategies, recorded times, terms. Settings are the page's."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from accelviz.errors import AccelvizError, ArgumentError
from accelviz.graph import Graph
from accelviz.measure.prediction import recorded_graphs, recorded_times
from accelviz.plans import Operation, Setting, Strategy
from accelviz.plans import operation as axes
from accelviz.widgets.offers import COLUMNS, offered, scheme_tables
from accelviz.widgets.pack import Differences

#: Nonzeros up to which a graph's columns are in the page: about two bytes each, compressed.
MOST_COLUMNS = 1_000_000


def graph_content(graph: Graph, row: int = 0) -> dict[str, Any]:
    """Return a graph: its degrees, and its columns or, of a large one, those of a row."""
    content: dict[str, Any] = {
        "name": graph.name,
        "rows": graph.shape[0],
        "cols": graph.shape[1],
        "degrees": graph.degrees,
    }
    if graph.nnz <= MOST_COLUMNS:
        content["columns"] = Differences(graph.column_indices)
    else:
        content["row_columns"] = [{"row": row, "columns": columns_of(graph, row)}]
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
    walked, gathered = axes.ROWS, axes.COLUMNS
    if operation.by_sender:
        walked, gathered = gathered, walked
    wide = [operand for operand in operation.operands.values() if "n_cols" in operand.axes]
    at_nonzeros = [operand for operand in operation.dense if operand.of_nonzeros]
    gathers = [x for x in wide if x.gathered and x.axes[0] == gathered]
    beside = [x for x in operation.inputs if x in wide and x.axes[0] == walked]
    if not gathers:
        beside = at_nonzeros[:-1]
    of_rows = [x for x in operation.outputs if x in wide and x.axes[0] == walked]
    written = of_rows or [x for x in operation.outputs if x.of_nonzeros]
    if not written or not (gathers or at_nonzeros):
        problem = f"no matrix of {operation.name} has a row for each node or nonzero"
        raise ArgumentError("strategies", problem, "of an operation such as spmm, sddmm or gat")
    output = written[0]
    return {
        **{name: getattr(operation, name) for name in ("name", "formula", "by_sender")},
        "title": f"{operation.name} ({operation.formula})",
        "reads": (gathers or at_nonzeros[-1:])[0].name,
        "at_nonzeros": not gathers,
        "beside": beside[0].name if beside else None,
        "numbers": {
            x.name: "row" if x.axes[0] == walked else "neighbor"
            for x in operation.inputs
            if x not in wide and x.axes and x.axes[0] in (walked, gathered)
        },
        "writes": output.name,
        "per_nonzero": output.of_nonzeros,
        "wide": output in wide,
        "arrays": {operand.name: operand.gathered for operand in wide},
    }


def strategies_content(
    strategies: Sequence[Strategy], graph: Graph, n_cols: int, chosen: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return the strategies: their parameters with the values offered, and their schemes.

    Parameters
    ----------
    strategies : sequence of Strategy
    graph : Graph
        Rules use its size.
    n_cols : int
    chosen : mapping
        Parameters that are offered, and set, besides the usual ones.
    """
    columns = columns_offered(n_cols)
    contents = []
    for strategy in strategies:
        declared = strategy.parameters
        start = {
            name: _accepted(parameter, chosen.get(name, parameter.default))
            for name, parameter in declared.items()
        }
        offers = {name: offered(declared[name], value) for name, value in start.items()}
        controls = {"n_cols": columns, **{n: o for n, o in offers.items() if len(o) > 1}}
        contents.append(
            {
                "name": strategy.name,
                "summary": strategy.summary,
                "worker": strategy.worker,
                "owner": strategy.metadata_owner,
                "parameters": [
                    {
                        "name": name,
                        "meaning": parameter.meaning,
                        "default": parameter.default,
                        "value": start[name],
                        "values": list(offers[name]),
                    }
                    for name, parameter in declared.items()
                ],
                "scheme": scheme_tables(strategy, graph, controls, {**start, "n_cols": n_cols}),
            }
        )
    return contents


def _accepted(parameter: Setting, value: Any) -> Any:
    """Return a value if the parameter can have it, else its default: ranges differ."""
    try:
        return parameter.checked("parameter", value)
    except AccelvizError:
        return parameter.default


def columns_offered(n_cols: int) -> list[int]:
    """Return the column counts of the control, the present one included."""
    return sorted({*COLUMNS, n_cols})


def listed_content(
    strategy: Strategy, graph: Graph, n_cols: int, parameters: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the workload of a strategy, record by record, where the page cannot compute it."""
    plan = strategy.plan(graph, n_cols, **parameters)
    content: dict[str, Any] = {
        "strategy": strategy.name,
        "graph": graph.name,
        "nCols": n_cols,
        "parameters": dict(parameters),
        "resolved": {name: plan.parameters[name] for name in strategy.parameters},
    }
    if not plan.has_workload:
        return content
    work = plan.workload()
    counted = strategy.closed_form(graph, n_cols, **parameters) or plan.statistics
    loads = counted.loads
    content |= {
        "blocks": plan.launch.n_blocks,
        "warps": plan.workers_per_block,
        "order": None if plan.permutation is None else plan.permutation.order,
        "bounds": np.searchsorted(work.block, np.arange(plan.launch.n_blocks + 1)),
        "warp": work.warp,
        "row": work.row,
        "start": work.nz_start,
        "count": work.nz_count,
        "summary": {
            **{name: value for name, value in vars(counted).items() if name != "loads"},
            "loads": loads and {"nonzeros": loads.nonzeros, "warps": loads.warps},
        },
    }
    if plan.metadata is not None and plan.metadata.dtype.itemsize == 4:
        words = plan.metadata.reshape(len(plan.metadata), -1)
        names = list(strategy.metadata_words)
        content["metadata"] = {"words": words, "wide": words.shape[1], "names": names}
    return content


@functools.cache
def glossary() -> dict[str, str]:
    """Return the terms of the lessons' glossary and what they mean."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package, package.parent):
        path = folder / "notebooks" / "glossary.md"
        if path.exists():
            return dict(re.findall(r"\*\*(.+?)\*\*: (.+?) \(\[", path.read_text("utf-8")))
    return {}
