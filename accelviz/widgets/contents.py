"""Data that the explorer's page draws: graphs, strategies, recorded times, glossary.

Each function returns a dict for `pack`, whose fields `src/types.ts` declares.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from accelviz.errors import AccelvizError, ArgumentError
from accelviz.graph import Graph
from accelviz.measure.prediction import recorded_graphs, recorded_times
from accelviz.plans import Operation, Setting, Strategy
from accelviz.plans import operation as axes
from accelviz.widgets.offers import COLUMNS, offered, scheme_tables
from accelviz.widgets.pack import Differences

#: Most nonzeros of a graph whose column indices the page includes, in about two bytes each.
MAX_COLUMN_INDICES = 1_000_000
#: Lines and columns of the picture of a larger graph's matrix.
DENSITY_SIDE = 96


def graph_content(graph: Graph, row: int = 0) -> dict[str, Any]:
    """Return a graph's size, degrees and column indices; of a large graph only `row`'s."""
    content: dict[str, Any] = {
        "name": graph.name,
        "rows": graph.shape[0],
        "cols": graph.shape[1],
        "degrees": graph.degrees,
    }
    if graph.nnz <= MAX_COLUMN_INDICES:
        content["columns"] = Differences(graph.column_indices)
    else:
        content["row_columns"] = [{"row": row, "columns": row_columns(graph, row)}]
        content["density"] = density(graph)
    return content


def density(graph: Graph, side: int = DENSITY_SIDE) -> Any:
    """Return where a matrix has nonzeros, as counts of its nonzeros on a coarse grid.

    Returns
    -------
    array of uint8, shape (side * side,)
        Line by line, the logarithm of the count in each cell, 0 for none and 255 for the most.
    """
    edges = -(-np.arange(side + 1) * graph.n_rows // side)
    counts = np.zeros((side, side), dtype=np.int64)
    for line, (first, last) in enumerate(itertools.pairwise(graph.row_pointers[edges])):
        columns = graph.column_indices[first:last].astype(np.int64) * side // graph.n_cols
        counts[line] = np.bincount(columns, minlength=side)
    shades = np.log1p(counts) / max(np.log1p(counts.max(initial=0)), 1e-9)
    return np.ceil(255 * shades).astype(np.uint8).ravel()


def row_columns(graph: Graph, row: int) -> Any:
    """Return the column indices of a row."""
    first, last = graph.row_pointers[row : row + 2]
    return graph.column_indices[first:last]


def times_content(graph: Graph, operation: Operation) -> dict[str, Any]:
    """Return the times recorded on a GPU for this graph, or else the graphs that have some."""
    times = recorded_times(graph, operation)
    where = ""
    if len(times):
        dates = " to ".join(sorted({times["date"].min(), times["date"].max()}))
        where = f"{', '.join(times['hardware'].unique())}, {dates}"
    run, runs = pd.factorize(times["run"])
    first = times.iloc[[int(np.argmax(run == i)) for i in range(len(runs))]]
    return {
        "where": where,
        "graphs": [] if where else recorded_graphs(operation),
        "strategy": times["strategy"].tolist(),
        "columns": times["columns"].tolist(),
        "setting": times["setting"].tolist(),
        "median": times["median_us"].round(3).tolist(),
        "low": times["quartile1_us"].round(3).tolist(),
        "high": times["quartile3_us"].round(3).tolist(),
        "run": run.tolist(),
        "runs": [
            {"where": name, "launch": round(float(launch), 3)}
            for name, launch in zip(_run_names(first), first["launch_us"], strict=True)
        ],
        "limit": times["gather_limit_us"].round(3).tolist(),
    }


def _run_names(runs: pd.DataFrame) -> list[str]:
    """Return hardware and date of each run, with the time of day where a date has several runs."""
    days = runs["hardware"] + ", " + runs["date"]
    times = days + " " + runs["run"].str[11:16]
    return days.where(~days.duplicated(keep=False), times).tolist()


def operation_content(operation: Operation) -> dict[str, Any]:
    """Return the names and roles of an operation's operands.

    Returns
    -------
    dict
        `name`, `formula` and `by_sender` of the operation; `title`, name and formula.
        `reads`, the operand with the row that a nonzero reads, and `at_nonzeros`, whether that
        operand has a row per nonzero instead of a row per neighbor. `beside`, a second operand or
        None: with a row per matrix row or, if `at_nonzeros`, with a row per nonzero.
        `numbers`, inputs with one number per "row" or per "neighbor".
        `writes`, the output; `per_nonzero`, whether it has a row per nonzero; `wide`, whether it
        has `n_cols` columns. `arrays`, operands with `n_cols` columns: whether each is gathered.

    Raises
    ------
    ArgumentError
        If no operand has a row per node or per nonzero, as in image convolutions.
    """
    row_axis, neighbor_axis = axes.ROWS, axes.COLUMNS
    if operation.by_sender:
        row_axis, neighbor_axis = neighbor_axis, row_axis
    wide = [operand for operand in operation.operands.values() if "n_cols" in operand.axes]
    at_nonzeros = [operand for operand in operation.dense if operand.of_nonzeros]
    gathered = [x for x in wide if x.gathered and x.axes[0] == neighbor_axis]
    beside = [x for x in operation.inputs if x in wide and x.axes[0] == row_axis]
    if not gathered:
        beside = at_nonzeros[:-1]
    row_outputs = [x for x in operation.outputs if x in wide and x.axes[0] == row_axis]
    outputs = row_outputs or [x for x in operation.outputs if x.of_nonzeros]
    if not outputs or not (gathered or at_nonzeros):
        problem = f"no matrix of {operation.name} has a row for each node or nonzero"
        raise ArgumentError("strategies", problem, "of an operation such as spmm, sddmm or gat")
    output = outputs[0]
    return {
        **{name: getattr(operation, name) for name in ("name", "formula", "by_sender")},
        "title": f"{operation.name} ({operation.formula})",
        "reads": (gathered or at_nonzeros[-1:])[0].name,
        "at_nonzeros": not gathered,
        "beside": beside[0].name if beside else None,
        "numbers": {
            x.name: "row" if x.axes[0] == row_axis else "neighbor"
            for x in operation.inputs
            if x not in wide and x.axes and x.axes[0] in (row_axis, neighbor_axis)
        },
        "writes": output.name,
        "per_nonzero": output.of_nonzeros,
        "wide": output in wide,
        "arrays": {operand.name: operand.gathered for operand in wide},
    }


def strategies_content(
    strategies: Sequence[Strategy], graph: Graph, n_cols: int, chosen: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return the strategies, their parameters with the values offered, and their schemes.

    Parameters
    ----------
    strategies : sequence of Strategy
    graph : Graph
        Rules choose parameters from its size and degrees.
    n_cols : int
    chosen : mapping
        Values of parameters, by name; a strategy whose parameter cannot have one uses the default.
    """
    contents = []
    for strategy in strategies:
        declared = strategy.parameters
        start = {
            name: _accepted(parameter, chosen.get(name, parameter.default))
            for name, parameter in declared.items()
        }
        offers = {name: offered(declared[name], value) for name, value in start.items()}
        several = {name: values for name, values in offers.items() if len(values) > 1}
        controls = {"n_cols": column_counts(n_cols), **several}
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
    """Return a value that the parameter accepts, else its default."""
    try:
        return parameter.checked("parameter", value)
    except AccelvizError:
        return parameter.default


def column_counts(n_cols: int) -> list[int]:
    """Return the column counts that the control offers, `n_cols` included."""
    return sorted({*COLUMNS, n_cols})


def listed_content(
    strategy: Strategy, graph: Graph, n_cols: int, parameters: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a workload record by record, for a page that cannot compute it."""
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
    statistics = strategy.closed_form(graph, n_cols, **parameters) or plan.statistics
    loads = statistics.loads
    content |= {
        "blocks": plan.launch.n_blocks,
        "warps": plan.workers_per_block,
        "workers": {
            "spacing": plan.hardware.spacing,
            "block_warps": plan.hardware.warps,
            "lanes": plan.hardware.lanes,
        },
        "columns": plan.hardware.columns and vars(plan.hardware.columns),
        "order": None if plan.permutation is None else plan.permutation.order,
        "bounds": np.searchsorted(work.block, np.arange(plan.launch.n_blocks + 1)),
        "warp": work.warp,
        "row": work.row,
        "start": work.nz_start,
        "count": work.nz_count,
        "summary": {
            **{name: value for name, value in vars(statistics).items() if name != "loads"},
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
    """Return the glossary of the lessons: terms and their meanings."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package, package.parent):
        path = folder / "notebooks" / "glossary.md"
        if path.exists():
            return dict(re.findall(r"\*\*(.+?)\*\*: (.+?) \(\[", path.read_text("utf-8")))
    return {}
