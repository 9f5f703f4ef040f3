"""Speedups from a result table: a baseline's time over another time of the same run.

A case is the name of a strategy, followed by conditions on its parameters, `key=value` or
`key!=value`: "cusparse algorithm=default", "gnnadvisor ngs!=32".

`by_graph`, `by_columns`, `overall` and `table_two` compute geometric means of `ratios`, the result
of `speedups`. They raise ArgumentError if it has several machines or states.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from accelviz.errors import ArgumentError

Cases = str | Iterable[str] | Mapping[str, str]

#: Columns in which two times must agree to be divided by each other.
CELL = [
    *("run", "hardware", "device", "operation", "graph", "fingerprint"),
    *("columns", "dtype", "state"),
]
_NEEDED = [*CELL, "graph_kind", "strategy", "parameters", "median_us"]
#: Columns in which averaged times must agree.
_EQUAL = ("hardware", "device", "operation", "state")
#: Table II's ranges of column counts.
RANGE_NAMES = ("[16, 32]", "(32, 64]", "(64, 96]", "(96, 128]")


def selected(table: pd.DataFrame, case: str, needed: Iterable[str] = _NEEDED) -> pd.DataFrame:
    """Return the records of a case.

    Parameters
    ----------
    table : DataFrame
        Results with the columns of `records.COLUMNS`.
    case : str
        Such as "accel_gcn partition=warp combined_warp=True".
    needed : iterable of str
        Columns that the table must have, including `strategy` and `parameters`.

    Raises
    ------
    ArgumentError
        If the table lacks the strategy, the parameters or a column.
    """
    missing = [name for name in needed if name not in table]
    if missing:
        raise ArgumentError("table", f"it has no {', '.join(missing)}", "a table of `benchmark`")
    name, *conditions = case.split() or [""]
    rows = table[table["strategy"] == name]
    if rows.empty:
        known = ", ".join(sorted(table["strategy"].unique()))
        raise ArgumentError("case", f"no {name!r} was measured", f"one of {known}")
    texts = [text if isinstance(text, str) else "" for text in rows["parameters"]]
    keep = np.ones(len(rows), dtype=np.bool_)
    for condition in conditions:
        key, equals, value = condition.partition("=")
        if not equals:
            raise ArgumentError("case", f"got {condition!r} in {case!r}", "key=value or key!=value")
        pair = f"{key.removesuffix('!')}={value}"
        keep &= np.array([(pair in text.split()) != key.endswith("!") for text in texts])
    if not keep.any():
        raise ArgumentError("case", f"no {case!r} was measured", f"{name} with {_examples(texts)}")
    return rows[keep]


def labelled(table: pd.DataFrame, cases: Cases | None = None) -> pd.DataFrame:
    """Return the times of cases, one record per case and combination of `CELL`.

    Parameters
    ----------
    table : DataFrame
        Results with the columns of `records.COLUMNS`.
    cases : str, iterable of str, or mapping of str to str, optional
        Cases, or a mapping of names to cases. The default is all strategies.

    Returns
    -------
    DataFrame
        Records with a time, case by case, with a new index and the name of the case as `strategy`.
        If a case was measured twice in one run, the first record is used.

    Raises
    ------
    ArgumentError
        If the table lacks a case, or one run measured several settings that match a case.
    """
    parts = []
    for name, case in named(table, cases).items():
        rows = selected(table, case)
        rows = rows[rows["median_us"].notna()]
        settings = rows.groupby(CELL, dropna=False)["parameters"].nunique()
        if (settings > 1).any():
            examples = _examples(rows["parameters"])
            problem = f"{case!r} was measured with several settings: {examples}"
            raise ArgumentError("case", problem, f"which of them, as in '{case} key=value'")
        parts.append(rows.drop_duplicates(CELL).assign(strategy=name))
    return pd.concat(parts, ignore_index=True) if parts else table.iloc[:0]


def named(table: pd.DataFrame, cases: Cases | None) -> dict[str, str]:
    """Return a mapping of names to cases; by default all strategies of the table."""
    if cases is None:
        cases = list(dict.fromkeys(table["strategy"]))
    if isinstance(cases, Mapping):
        return dict(cases)
    return {case: case for case in ([cases] if isinstance(cases, str) else cases)}


def latest(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows without those that a later run repeats; the order is kept."""
    keys = [name for name in (*CELL, "strategy") if name != "run"]
    is_repeated = rows.sort_values("run", kind="stable").duplicated(keys, keep="last")
    return rows[~is_repeated.reindex(rows.index)]


def speedups(table: pd.DataFrame, baseline: str, cases: Cases | None = None) -> pd.DataFrame:
    """Divide the times of a baseline by the times of other cases in the same run.

    Parameters
    ----------
    table : DataFrame
        Results with the columns of `records.COLUMNS`.
    baseline : str
        Case whose time is divided: a speedup above 1 means faster than the baseline.
    cases : str, iterable of str, or mapping of str to str, optional
        Compared cases, or a mapping of names to cases. The default is all strategies but the
        baseline's.

    Returns
    -------
    DataFrame
        One record per case, graph, column count and state, from the latest run. Columns:
        `strategy` (name of the case), `baseline_us`, `median_us`, `speedup`, and those that
        identify the measurement. `attrs["dropped"]` is the number of times without a baseline of
        the same run, graph, columns and state, which are omitted.

    Raises
    ------
    ArgumentError
        If the table lacks a case, or one run measured several settings that match a case.

    Examples
    --------
    >>> import accelviz
    >>> from accelviz.measure.comparison import speedups
    >>> table = accelviz.benchmark("cora", ["accel_gcn", "graphblast"], 16, "cpu", progress=False)
    >>> speedups(table, "graphblast")[["strategy", "graph", "columns", "state"]].to_numpy().tolist()
    [['accel_gcn', 'cora', 16, 'warm'], ['accel_gcn', 'cora', 16, 'cold']]
    """
    baseline_times = labelled(table, [baseline])[[*CELL, "median_us"]]
    if cases is None:
        cases = [name for name in dict.fromkeys(table["strategy"]) if name != baseline.split()[0]]
    rows = labelled(table, cases)
    pairs = rows.merge(baseline_times.rename(columns={"median_us": "baseline_us"}), on=CELL)
    columns = [*CELL, "graph_kind", "strategy", "parameters", "baseline_us", "median_us"]
    result = latest(pairs)[columns].reset_index(drop=True)
    result["speedup"] = result["baseline_us"] / result["median_us"]
    result.attrs["dropped"] = len(rows) - len(pairs)
    return result


def geometric_mean(values: npt.ArrayLike) -> float:
    """Return the geometric mean of positive numbers; NaN of an empty array.

    Raises
    ------
    ArgumentError
        If a number is not positive.
    """
    array = np.asarray(values, dtype=np.float64)
    if not (array > 0).all():
        raise ArgumentError("values", "one is not positive", "positive numbers")
    return float(np.exp(np.log(array).mean())) if array.size else float("nan")


#: Aggregations of `by_graph` and `by_columns`.
_SUMMARY: dict[str, Any] = {
    "speedup": ("speedup", geometric_mean),
    "lowest": ("speedup", "min"),
    "highest": ("speedup", "max"),
    "cases": ("speedup", "size"),
}


def _losses(values: pd.Series) -> int:
    return int((values < 1).sum())


def by_graph(ratios: pd.DataFrame) -> pd.DataFrame:
    """Average the speedups of each graph over the column counts.

    One record per strategy and graph: `speedup`, `lowest`, `highest`, `cases` (number of averaged
    speedups), `graph_kind`.
    """
    _check_equal(ratios)
    groups = ratios.groupby(["strategy", "graph"], sort=False)
    return groups.agg(**_SUMMARY, graph_kind=("graph_kind", "first")).reset_index()


def by_columns(ratios: pd.DataFrame) -> pd.DataFrame:
    """Average the speedups at each column count over the graphs.

    One record per strategy and column count, ascending: `speedup`, `lowest`, `highest`, `cases`
    (number of averaged speedups) and `losses` (number of them below 1).
    """
    _check_equal(ratios)
    ordered = ratios.sort_values("columns", kind="stable")
    groups = ordered.groupby(["strategy", "columns"], sort=False)
    return groups.agg(**_SUMMARY, losses=("speedup", _losses)).reset_index()


def overall(ratios: pd.DataFrame) -> pd.DataFrame:
    """Average the speedups of the graphs, with equal weights.

    One record per strategy, which is the index: `speedup`, `graphs` (number of graphs), `losses`
    (number of graphs below 1), and the extremes `highest`, `highest_graph`, `lowest` and
    `lowest_graph`.
    """
    graphs = by_graph(ratios)[["strategy", "speedup", "graph"]]
    groups = graphs.sort_values("speedup", kind="stable").groupby("strategy")
    means = groups["speedup"].agg(speedup=geometric_mean, graphs="size", losses=_losses)
    means[["highest", "highest_graph"]] = groups.last()
    means[["lowest", "lowest_graph"]] = groups.first()
    return means.reindex(graphs["strategy"].unique())


def table_two(ratios: pd.DataFrame) -> pd.DataFrame:
    """Summarize one strategy's speedups as Table II of Accel-GCN: by column range, in percent.

    One record per range of `RANGE_NAMES`: `average`, `max` and `min` over all graphs and column
    counts of the range, NaN without any, and `cases`, their number.
    """
    _check_equal(ratios, "strategy", *_EQUAL)
    groups = ratios.groupby(column_ranges(ratios["columns"]), observed=False)["speedup"]
    table = groups.agg(average=geometric_mean, max="max", min="min", cases="size")
    return table * [100, 100, 100, 1]


def column_ranges(columns: pd.Series) -> pd.Series:
    """Return Table II's range of each column count, as a categorical."""
    return pd.cut(columns, [15, 32, 64, 96, 128], labels=RANGE_NAMES)


def _check_equal(ratios: pd.DataFrame, *names: str) -> None:
    for name in names or _EQUAL:
        values = ratios[name].unique()
        if len(values) > 1:
            text = ", ".join(map(str, values))
            raise ArgumentError("ratios", f"more than one {name}: {text}", "rows of one of them")


def _examples(texts: Iterable[str]) -> str:
    distinct = [repr(text) for text in dict.fromkeys(texts)]
    return ", ".join(distinct[:4]) + (", ..." if len(distinct) > 4 else "")
