"""Who is how much faster than whom, from a table of results: ratios inside one run only.

A case is a strategy's name, with words that its parameters must (`key=value`) or must not
(`key!=value`) have: "cusparse algorithm=default", "gnnadvisor ngs!=32".

`by_graph`, `by_columns`, `overall` and `table_two` average what `speedups` gives, their parameter
`ratios`: of one machine and one state, else they raise ArgumentError. A mean is a geometric one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from accelviz.errors import ArgumentError

Cases = str | Iterable[str] | Mapping[str, str]

#: What two times must have in common to be divided by each other.
CELL = [
    *("run", "hardware", "device", "operation", "graph", "fingerprint"),
    *("columns", "dtype", "state"),
]
_NEEDED = [*CELL, "graph_kind", "strategy", "parameters", "median_us"]
#: What is the same in everything that is averaged into a number.
_ONE = ("hardware", "device", "operation", "state")
#: Table II's ranges of column counts.
RANGE_NAMES = ("[16, 32]", "(32, 64]", "(64, 96]", "(96, 128]")


def selected(table: pd.DataFrame, case: str, needed: Iterable[str] = _NEEDED) -> pd.DataFrame:
    """Return the rows of a case.

    Parameters
    ----------
    table : DataFrame
        Results with the columns of `records.COLUMNS`.
    case : str
        Such as "accel_gcn partition=warp combined_warp=True".
    needed : iterable of str
        Columns that the table must have, `strategy` and `parameters` among them.

    Raises
    ------
    ArgumentError
        If the table has no such strategy or no such parameters, or lacks a column.
    """
    missing = [name for name in needed if name not in table]
    if missing:
        raise ArgumentError("table", f"it has no {', '.join(missing)}", "a table of `benchmark`")
    name, *words = case.split() or [""]
    rows = table[table["strategy"] == name]
    if rows.empty:
        known = ", ".join(sorted(table["strategy"].unique()))
        raise ArgumentError("case", f"no {name!r} was measured", f"one of {known}")
    texts = [text if isinstance(text, str) else "" for text in rows["parameters"]]
    keep = np.ones(len(rows), dtype=np.bool_)
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise ArgumentError("case", f"got {word!r} in {case!r}", "key=value or key!=value")
        pair = f"{key.removesuffix('!')}={value}"
        keep &= np.array([(pair in text.split()) != key.endswith("!") for text in texts])
    if not keep.any():
        raise ArgumentError("case", f"no {case!r} was measured", f"{name} with {_some(texts)}")
    return rows[keep]


def labelled(table: pd.DataFrame, cases: Cases | None = None) -> pd.DataFrame:
    """Return a time for each case in each cell, named as the caller wants.

    Parameters
    ----------
    table : DataFrame
        Results with the columns of `records.COLUMNS`.
    cases : str, iterable of str, or mapping of str to str, optional
        Cases, or what to call them to the case; all strategies if not given.

    Returns
    -------
    DataFrame
        The rows that have a time, case by case, numbered anew, with the names in the column
        `strategy`. Of a case measured twice in one run the first is taken.

    Raises
    ------
    ArgumentError
        If a case is not there, or several settings of one case meet in one cell.
    """
    parts = []
    for name, case in named(table, cases).items():
        rows = selected(table, case)
        rows = rows[rows["median_us"].notna()]
        settings = rows.groupby(CELL, dropna=False)["parameters"].nunique()
        if (settings > 1).any():
            several = f"{case!r} was measured with several settings: {_some(rows['parameters'])}"
            raise ArgumentError("case", several, f"which of them, as in '{case} key=value'")
        parts.append(rows.drop_duplicates(CELL).assign(strategy=name))
    return pd.concat(parts, ignore_index=True) if parts else table.iloc[:0]


def named(table: pd.DataFrame, cases: Cases | None) -> dict[str, str]:
    """Return what each case is called, in order; all strategies of the table if none is given."""
    if cases is None:
        cases = list(dict.fromkeys(table["strategy"]))
    if isinstance(cases, Mapping):
        return dict(cases)
    return {case: case for case in ([cases] if isinstance(cases, str) else cases)}


def latest(rows: pd.DataFrame) -> pd.DataFrame:
    """Keep, of rows that differ in the run alone, those of the latest; the order stays."""
    same = [name for name in (*CELL, "strategy") if name != "run"]
    old = rows.sort_values("run", kind="stable").duplicated(same, keep="last")
    return rows[~old.reindex(rows.index)]


def speedups(table: pd.DataFrame, baseline: str, cases: Cases | None = None) -> pd.DataFrame:
    """Divide a baseline's times by those of others, each pair inside one run.

    Parameters
    ----------
    table : DataFrame
        Results with the columns of `records.COLUMNS`.
    baseline : str
        The case whose time is divided: a speedup above 1 means faster than it.
    cases : str, iterable of str, or mapping of str to str, optional
        Who is compared, or names for them; all strategies but the baseline's if not given.

    Returns
    -------
    DataFrame
        A row for each case, graph, column count and state, with the columns `strategy` (the name),
        `baseline_us`, `median_us` and `speedup` beside those that say what was measured. Of several
        runs the latest counts. `attrs["dropped"]` counts the times that are left out because their
        run did not measure the baseline on the same graph, columns and state.

    Raises
    ------
    ArgumentError
        If a case is not there, or several settings of one case meet.

    Examples
    --------
    >>> import accelviz
    >>> from accelviz.measure.comparison import speedups
    >>> table = accelviz.benchmark("cora", ["accel_gcn", "graphblast"], 16, "cpu", progress=False)
    >>> speedups(table, "graphblast")[["strategy", "graph", "columns", "state"]].to_numpy().tolist()
    [['accel_gcn', 'cora', 16, 'warm'], ['accel_gcn', 'cora', 16, 'cold']]
    """
    divided = labelled(table, [baseline])[[*CELL, "median_us"]]
    if cases is None:
        cases = [name for name in dict.fromkeys(table["strategy"]) if name != baseline.split()[0]]
    rows = labelled(table, cases)
    pairs = rows.merge(divided.rename(columns={"median_us": "baseline_us"}), on=CELL)
    columns = [*CELL, "graph_kind", "strategy", "parameters", "baseline_us", "median_us"]
    result = latest(pairs)[columns].reset_index(drop=True)
    result["speedup"] = result["baseline_us"] / result["median_us"]
    result.attrs["dropped"] = len(rows) - len(pairs)
    return result


def shuffled_over_natural(table: pd.DataFrame, cases: Cases | None = None) -> pd.DataFrame:
    """Divide the time on a shuffled graph by that on the same graph in natural order.

    Parameters
    ----------
    table : DataFrame
        Results with graphs called "name" and "name-shuffled", maybe of different runs.
    cases
        As of `labelled`.

    Returns
    -------
    DataFrame
        A line a case, a column a column count: the geometric mean over the graphs that have both.
    """
    times = latest(labelled(table, cases))
    shuffled = times["graph"].str.endswith("-shuffled")
    times = times.assign(twin=times["graph"].str.removesuffix("-shuffled"))
    pairs = times[shuffled].merge(times[~shuffled], on=["strategy", "columns", "twin"])
    pairs["factor"] = pairs["median_us_x"] / pairs["median_us_y"]
    means = pairs.pivot_table("factor", "strategy", "columns", aggfunc=geometric_mean)
    return means.reindex([name for name in named(table, cases) if name in means.index])


def geometric_mean(values: npt.ArrayLike) -> float:
    """Return the geometric mean of positive numbers, as ratios need; NaN if there is no number.

    Raises
    ------
    ArgumentError
        If one of them is not positive.
    """
    array = np.asarray(values, dtype=np.float64)
    if not (array > 0).all():
        raise ArgumentError("values", "one is not positive", "positive numbers")
    return float(np.exp(np.log(array).mean())) if array.size else float("nan")


#: What both averages below tell of a group of speedups.
_SUMMARY: dict[str, Any] = {
    "speedup": ("speedup", geometric_mean),
    "lowest": ("speedup", "min"),
    "highest": ("speedup", "max"),
    "cases": ("speedup", "size"),
}


def _losses(values: pd.Series) -> int:
    return int((values < 1).sum())


def by_graph(ratios: pd.DataFrame) -> pd.DataFrame:
    """Average each graph's speedups over its column counts.

    A row for each strategy and graph: `speedup`, `lowest`, `highest`, `cases`, `graph_kind`.
    """
    _check_one(ratios)
    groups = ratios.groupby(["strategy", "graph"], sort=False)
    return groups.agg(**_SUMMARY, graph_kind=("graph_kind", "first")).reset_index()


def by_columns(ratios: pd.DataFrame) -> pd.DataFrame:
    """Average the speedups at each column count over the graphs.

    A row for each strategy and column count, ascending: `speedup`, `lowest`, `highest`, `cases` and
    `losses` (graphs below 1).
    """
    _check_one(ratios)
    ordered = ratios.sort_values("columns", kind="stable")
    groups = ordered.groupby(["strategy", "columns"], sort=False)
    return groups.agg(**_SUMMARY, losses=("speedup", _losses)).reset_index()


def overall(ratios: pd.DataFrame) -> pd.DataFrame:
    """Average the graphs' speedups, every graph counting the same.

    A row for each strategy, its index: `speedup`, `graphs`, `losses` (graphs below 1), and the best
    and the worst graph: `highest`, `highest_graph`, `lowest`, `lowest_graph`.
    """
    graphs = by_graph(ratios)[["strategy", "speedup", "graph"]]
    groups = graphs.sort_values("speedup", kind="stable").groupby("strategy")
    means = groups["speedup"].agg(speedup=geometric_mean, graphs="size", losses=_losses)
    for name, which in (("highest", groups.last()), ("lowest", groups.first())):
        means[[name, f"{name}_graph"]] = which
    return means.reindex(graphs["strategy"].unique())


def table_two(ratios: pd.DataFrame) -> pd.DataFrame:
    """Lay one strategy's speedups out as Table II does: by ranges of column counts, in percent.

    A row for each range, [16, 32], (32, 64], (64, 96], (96, 128]: `average`, `max` and `min` over
    all graphs and column counts in it, and how many `cases` those are; NaN where there are none.
    """
    _check_one(ratios, "strategy", *_ONE)
    groups = ratios.groupby(column_ranges(ratios["columns"]), observed=False)["speedup"]
    table = groups.agg(average=geometric_mean, max="max", min="min", cases="size")
    return table * [100, 100, 100, 1]


def column_ranges(columns: pd.Series) -> pd.Series:
    """Return the range of Table II that each column count lies in, as a categorical."""
    return pd.cut(columns, [15, 32, 64, 96, 128], labels=RANGE_NAMES)


def _check_one(ratios: pd.DataFrame, *names: str) -> None:
    for name in names or _ONE:
        values = ratios[name].unique()
        if len(values) > 1:
            text = ", ".join(map(str, values))
            raise ArgumentError("ratios", f"more than one {name}: {text}", "rows of one of them")


def _some(texts: Iterable[str]) -> str:
    distinct = [repr(text) for text in dict.fromkeys(texts)]
    return ", ".join(distinct[:4]) + (", ..." if len(distinct) > 4 else "")
