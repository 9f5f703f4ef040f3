"""`sweep`: statistics of the partition of a graph for many settings, without building workloads."""

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

#: Names of the statistics, in the order of the table's columns.
STATISTICS = (
    # Three groups: the launch; nonzeros per warp with work; metadata, shared rows and atomics.
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
    """Compute statistics of partitions for combinations of parameters, exactly.

    They are computed from the degrees, without building a workload if a strategy has closed forms.

    Parameters
    ----------
    graph : Graph, anything `load_graph` takes, DegreeHistogram, or mapping of int to int
        The matrix, or `{degree: number of rows}`.
    strategies : str, Strategy or iterable of them, optional
        Names from `accelviz.strategies()`, or objects of your own class. If not given, "accel_gcn",
        or the fastest of another operation.
    n_cols : int or iterable of int
        Number of columns of X. It affects atomics, and strategies that partition by columns.
    operation : str or Operation, optional
        Operation. If not given, that of the first strategy object, or "spmm".
    **parameters
        Parameters of the strategies, such as `max_block_warps` and `max_warp_nzs` of Accel-GCN: one
        value or an iterable (a str is one value). All combinations are computed. A strategy ignores
        parameters that it does not have, and uses its defaults for parameters not given.

    Returns
    -------
    DataFrame
        One record per strategy and combination of its parameters. Columns: `strategy`, `n_cols`,
        the tunable parameters (those with `Setting.tries`), other given parameters (<NA> if a
        strategy lacks the parameter or its rule chooses the value), and

        - `blocks`, `warps`, `busy_warps`: launched for one tile of columns, and warps with work;
        - `idle_warps`: share (not number) of the launched warps without work, 0 to 1;
        - `idle_share`: share of warp time spent idle or waiting for the block's busiest warp;
        - `warp_nzs_mean`, `warp_nzs_q1`, `warp_nzs_median`, `warp_nzs_q3`, `largest`: nonzeros of
          the warps with work;
        - `imbalance`: `largest` over the mean;
        - `metadata_bytes`;
        - `rows_shared`, `rows_cut`: rows handled by several warps of one block, and rows handled by
          several blocks;
        - `shared_atomics`, `global_atomics`: floats added by atomics, over all columns.

        A statistic is NaN if it is not determined: for a histogram and a partition that depends on
        the order of rows; for a kernel of a library; and, as to atomics and shared rows, for a
        strategy of your own without `describe`. `attrs["graph"]` is the graph's name.

    Raises
    ------
    GraphError
        If the graph is not a valid sparse matrix.
    ArgumentError
        If a degree, a strategy, a parameter or `n_cols` is invalid, an iterable is empty, or a
        strategy without closed form is used with a histogram.
    PartitionError
        If a parameter is out of range.

    Examples
    --------
    >>> import accelviz
    >>> table = accelviz.sweep("cora", max_block_warps=[4, 12], max_warp_nzs=32)
    >>> table[["max_block_warps", "blocks", "idle_share"]].round(3)
       max_block_warps  blocks  idle_share
    0                4     700       0.024
    1               12     252       0.162
    """
    name, source = _loaded(graph)
    strategy_objects = _strategies(strategies, operation)
    values = {key: _values(key, value) for key, value in parameters.items() if value is not None}
    column_counts = _values("n_cols", n_cols)
    all_defaults = [
        {**strategy.operation.widths, **strategy.defaults()} for strategy in strategy_objects
    ]
    for key in values:
        if not any(key in defaults for defaults in all_defaults):
            known = dict.fromkeys(name for defaults in all_defaults for name in defaults)
            expected = ", ".join(name for name in known if name != "n_cols") or "none at all"
            raise ArgumentError(key, "no strategy of this sweep has such a parameter", expected)
    reserved = {"strategy", "n_cols", *STATISTICS}
    tried = [
        key
        for strategy in strategy_objects
        for key, parameter in strategy.parameters.items()
        if parameter.tries
    ]
    parameter_names = tuple(dict.fromkeys([*tried, *values]))
    if clash := reserved.intersection(parameter_names):
        problem = "a parameter of a strategy has the name of a column of the table"
        raise ArgumentError(min(clash), problem, "another name for the parameter")
    records = []
    for strategy, defaults in zip(strategy_objects, all_defaults, strict=True):
        varied = {key: values[key] for key in values if key in defaults}
        for count in column_counts:
            for combination in itertools.product(*varied.values()):
                setting = dict(zip(varied, combination, strict=True))
                statistics = _statistics(summary(strategy, source, count, setting))
                names = {"strategy": strategy.name, "n_cols": count}
                records.append({**defaults, **setting, **names, **statistics})
    table = pd.DataFrame(records, columns=["strategy", "n_cols", *parameter_names, *STATISTICS])
    for key in parameter_names:  # integers stay integers beside missing values
        if table[key].isna().any():
            table[key] = table[key].convert_dtypes()
    table.attrs["graph"] = name
    return table


def _loaded(graph: Any) -> tuple[str, Graph | RowDegrees]:
    if isinstance(graph, DegreeHistogram):
        return "degrees", RowDegrees(graph)
    if isinstance(graph, Mapping):
        return "degrees", RowDegrees(DegreeHistogram.counted(graph))
    loaded = load_graph(graph)
    return loaded.name, loaded


def _strategies(strategies: Any, operation: str | Operation | None) -> list[Strategy]:
    if strategies is None:
        known = operation_of((), operation)
        strategies = "accel_gcn" if known == SPMM else known.fastest
    is_single = isinstance(strategies, str | Strategy | type)
    listed: list[Any] = [strategies] if is_single else list(strategies)
    if not listed:
        raise ArgumentError("strategies", "got none", "at least one")
    common = operation_of(listed, operation)
    return [find_strategy(strategy, common) for strategy in listed]


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
    """Return a strategy's partition statistics: in closed form, or counted from its workload.

    The summary of a library's kernel (cuSPARSE) is empty.

    Raises
    ------
    ArgumentError
        If the strategy has no closed form and `graph` is a degree histogram.
    """
    closed_form = strategy.closed_form(graph, n_cols, **parameters)
    if closed_form is not None:
        return closed_form
    if isinstance(graph, RowDegrees):
        if strategy.described(graph, n_cols, **parameters) is not None:
            return PartitionSummary()
        problem = f"{strategy.name!r} has no `describe`, so degrees alone do not say what it does"
        raise ArgumentError(
            "strategies", problem, "the graph itself, whose workload can be counted"
        )
    plan = strategy.plan(graph, n_cols, **parameters)
    return plan.statistics if plan.has_workload else PartitionSummary()


def _statistics(summary: PartitionSummary) -> dict[str, float]:
    warp_nzs = {"warp_nzs_mean": summary.mean}
    for name, share in (("q1", 0.25), ("median", 0.5), ("q3", 0.75)):
        warp_nzs[f"warp_nzs_{name}"] = summary.quantile(share)
    values = {name: warp_nzs.get(name, getattr(summary, name, None)) for name in STATISTICS}
    return {name: float("nan") if value is None else value for name, value in values.items()}
