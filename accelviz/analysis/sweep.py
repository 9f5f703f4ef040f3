"""What partitions do to a graph over many settings, from its degrees alone."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from accelviz.datasets import load_graph
from accelviz.errors import ArgumentError
from accelviz.graph import Graph
from accelviz.ordering import DegreeHistogram, RowDegrees
from accelviz.partition.summary import PartitionSummary
from accelviz.plans import Operation, Strategy
from accelviz.strategies import SPMM, find_strategy, operation_of

#: The statistics of a setting, in the order of the table's columns.
STATISTICS = (
    *("blocks", "warps", "busy_warps", "idle_warps", "idle_share"),
    *("warp_nzs_mean", "warp_nzs_q1", "warp_nzs_median", "warp_nzs_q3", "largest", "imbalance"),
    *("metadata_bytes", "rows_shared", "rows_cut", "shared_atomics", "global_atomics"),
)


def sweep(
    graph: Any,
    strategies: str | Strategy | Iterable[str | Strategy] | None = None,
    n_cols: int | Iterable[int] = 64,
    *,
    operation: str | Operation | None = None,
    **parameters: Any,
) -> pd.DataFrame:
    """Say what partitions do to a graph, exactly, without building a workload.

    Parameters
    ----------
    graph : Graph, anything `load_graph` takes, DegreeHistogram, or mapping of int to int
        The matrix, or `{degree: rows}`: how many rows have each degree.
    strategies : str, Strategy or iterable of them, optional
        Names from `accelviz.strategies()`, or objects of your own class. If not given, "accel_gcn",
        or the fastest of another operation.
    n_cols : int or iterable of int
        Columns of X. They matter to atomics, and to strategies that partition by columns.
    operation : str or Operation, optional
        What the strategies compute. If not given, what the first strategy object computes, or
        "spmm".
    **parameters
        The strategies' parameters, such as `max_block_warps` and `max_warp_nzs` of Accel-GCN: one
        value or an iterable (a str is one value), in all combinations. A strategy takes those that
        it has, and its defaults for the others.

    Returns
    -------
    DataFrame
        A row for each strategy and combination of its own parameters, with the columns `strategy`,
        `n_cols`, the parameters that are worth trying (those with `Setting.tries`), the others
        that were given (<NA> where a strategy has none of that name or chooses by a rule), and

        - `blocks`, `warps`, `busy_warps`: launched for one tile of columns, and warps with work;
        - `idle_warps`: share of the launched warps without work, 0 to 1;
        - `idle_share`: share of warp time spent idle or waiting for the block's busiest warp;
        - `warp_nzs_mean`, `warp_nzs_q1`, `warp_nzs_median`, `warp_nzs_q3`, `largest`: nonzeros of
          the warps with work;
        - `imbalance`: `largest` over the mean;
        - `metadata_bytes`;
        - `rows_shared`, `rows_cut`: rows that several warps of one block share, and rows whose
          nonzeros lie in several blocks;
        - `shared_atomics`, `global_atomics`: floats added by atomics, over all columns.

        NaN where the degrees do not determine it: where a partition walks the rows in their order,
        a histogram does not say which of them share a block; a library says nothing at all; and of
        a strategy of your own without `describe`, which is counted from its workload, it is not
        known how sums meet. `attrs["graph"]` is the graph's name.

    Raises
    ------
    GraphError
        If the graph is not a valid sparse matrix.
    ArgumentError
        If a degree, a strategy, a parameter or `n_cols` is not what it can be, an iterable is
        empty, or a strategy without closed form is to go by a histogram alone.
    PartitionError
        If a parameter is out of range.

    Examples
    --------
    >>> import accelviz
    >>> table = accelviz.sweep("cora", max_block_warps=[4, 12], max_warp_nzs=32)
    >>> table[["max_block_warps", "blocks", "idle_share"]].round(3)
       max_block_warps  blocks  idle_share
    0                4     700       0.094
    1               12     252       0.340
    """
    name, source = _opened(graph)
    chosen = _strategies(strategies, operation)
    varied_by_name = {
        key: _values(key, value) for key, value in parameters.items() if value is not None
    }
    columns = _values("n_cols", n_cols)
    known = [{**strategy.operation.widths, **strategy.defaults()} for strategy in chosen]
    for key in varied_by_name:
        if not any(key in defaults for defaults in known):
            available = {key: 0 for defaults in known for key in defaults if key != "n_cols"}
            wanted = ", ".join(available) or "none at all"
            raise ArgumentError(key, "no strategy of this sweep has such a parameter", wanted)
    taken = {"strategy", "n_cols", *STATISTICS}
    tried = [
        key
        for strategy in chosen
        for key, parameter in strategy.parameters.items()
        if parameter.tries
    ]
    parameter_names = tuple(dict.fromkeys([*tried, *varied_by_name]))
    if clash := taken.intersection(parameter_names):
        problem = "the table has a column of that name, and so has a strategy a parameter"
        raise ArgumentError(min(clash), problem, "another name for the parameter")
    lines = []
    for strategy, defaults in zip(chosen, known, strict=True):
        varied = {key: values for key, values in varied_by_name.items() if key in defaults}
        for count in columns:
            for setting in itertools.product(*varied.values()):
                parameter = dict(zip(varied, setting, strict=True))
                figures = _figures(summary(strategy, source, count, parameter))
                names = {"strategy": strategy.name, "n_cols": count}
                lines.append({**defaults, **parameter, **names, **figures})
    table = pd.DataFrame(lines, columns=["strategy", "n_cols", *parameter_names, *STATISTICS])
    for key in parameter_names:  # numbers stay whole where some are missing
        if table[key].isna().any():
            table[key] = table[key].convert_dtypes()
    table.attrs["graph"] = name
    return table


def _opened(graph: Any) -> tuple[str, Graph | RowDegrees]:
    if isinstance(graph, DegreeHistogram):
        return "degrees", RowDegrees(graph)
    if isinstance(graph, Mapping):
        return "degrees", RowDegrees(DegreeHistogram.counted(graph))
    loaded = load_graph(graph)
    return loaded.name, loaded


def _strategies(wanted: Any, operation: str | Operation | None) -> list[Strategy]:
    if wanted is None:
        known = operation_of((), operation)
        wanted = "accel_gcn" if known == SPMM else known.fastest
    several: list[Any] = [wanted] if isinstance(wanted, str | Strategy | type) else list(wanted)
    if not several:
        raise ArgumentError("strategies", "got none", "at least one")
    common = operation_of(several, operation)
    return [find_strategy(strategy, common) for strategy in several]


def _values(name: str, value: Any) -> list[Any]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        return [value]
    values = [entry.item() if isinstance(entry, np.generic) else entry for entry in value]
    if not values:
        raise ArgumentError(name, "got no value", "a value or several")
    return values


def summary(
    strategy: Strategy, graph: Graph | RowDegrees, n_cols: int, parameters: Mapping[str, Any]
) -> PartitionSummary:
    """Say what a strategy does to a graph: in closed form if it has one, else by counting.

    Nothing is known of a library.

    Raises
    ------
    ArgumentError
        If the strategy has no closed form and there are only degrees to go by.
    """
    closed_form = strategy.closed_form(graph, n_cols, **parameters)
    if closed_form is not None:
        return closed_form
    if isinstance(graph, RowDegrees):
        if strategy.described(graph, n_cols, **parameters) is not None:
            return PartitionSummary()
        unknown = f"{strategy.name!r} has no `describe`, so degrees alone do not say what it does"
        raise ArgumentError(
            "strategies", unknown, "the graph itself, whose workload can be counted"
        )
    plan = strategy.plan(graph, n_cols, **parameters)
    return plan.statistics if plan.has_workload else PartitionSummary()


def _figures(summary: PartitionSummary) -> dict[str, float]:
    quartiles = [summary.quantile(share) for share in (0.25, 0.5, 0.75)]
    of_warps = dict(zip(STATISTICS[5:9], (summary.mean, *quartiles), strict=True))
    figures = {name: of_warps.get(name, getattr(summary, name, None)) for name in STATISTICS}
    return {name: float("nan") if value is None else value for name, value in figures.items()}
