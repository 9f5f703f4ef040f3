"""Sweep tables, prepared for pictures: the best setting, lines along a parameter, and grids.

A sweep is the table that `accelviz.sweep` returns: one record per setting, which is a combination
of parameters, with parameters in the first columns and statistics in the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from accelviz.analysis.sweep import STATISTICS
from accelviz.errors import ArgumentError
from accelviz.strategies import find_strategy

#: The setting that Accel-GCN's authors published: the defaults of its tunable parameters.
PUBLISHED: Mapping[str, Any] = {
    name: parameter.default
    for name, parameter in find_strategy("accel_gcn").parameters.items()
    if parameter.tries
}
#: Statistics of which a smaller value is better. The other statistics are not ranked.
LESS_IS_BETTER = {
    *("idle_warps", "idle_share", "largest", "imbalance", "metadata_bytes"),
    *("rows_shared", "rows_cut", "shared_atomics", "global_atomics"),
}


@dataclass(frozen=True, eq=False)
class Line:
    """Records of a sweep that differ only in the parameter x.

    Attributes
    ----------
    key : mapping of str to object
        Other parameters, by which the line differs from other lines.
    rows : DataFrame
        Records in ascending order of x; a single record if the strategy lacks the parameter x.
    constant : bool
        Whether the strategy lacks the parameter x.
    """

    key: Mapping[str, Any]
    rows: pd.DataFrame
    constant: bool


def parameters(table: pd.DataFrame) -> list[str]:
    """Return the names of the parameter columns: all columns before the first statistic."""
    names = list(table.columns)
    return names[: next((i for i, name in enumerate(names) if name in STATISTICS), len(names))]


def varying(table: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """Return the columns with more than one value; a missing value counts as a value."""
    return [name for name in names if len(table[name].unique()) > 1]


def distinguishing(table: pd.DataFrame) -> list[str]:
    """Return the parameters that distinguish settings: those that vary within a strategy.

    `strategy` is included if there are several. A parameter that only some strategies have is not
    included for that reason alone.
    """
    names = varying(table, parameters(table))
    if "strategy" not in names:
        return names
    n_values = table.groupby("strategy")[names].nunique(dropna=False).max()
    return [name for name in names if name == "strategy" or n_values[name] > 1]


def checked_sweep(table: pd.DataFrame, value: str, *axes: str) -> None:
    """Check that a sweep can be drawn: `value` against the parameters `axes`.

    Raises
    ------
    ArgumentError
        If a column is missing, `value` is not numeric, or an axis has fewer than two values.
    """
    for name in (value, *axes):
        if name not in table:
            columns = ", ".join(map(str, table.columns))
            raise ArgumentError(name, "the table has no such column", columns)
    if not pd.api.types.is_numeric_dtype(table[value]):
        raise ArgumentError(value, f"a column of {table[value].dtype}", "numbers, as `blocks` is")
    if len({value, *axes}) <= len(axes):
        raise ArgumentError("table", f"{value} against {', '.join(axes)}", "columns that differ")
    for name in axes:
        values = table[name].dropna().unique()
        if len(values) < 2:
            extent = f"only {values[0]}" if len(values) else "no value"
            raise ArgumentError(name, f"the table has {extent} of it", "a sweep over two or more")


def best(table: pd.DataFrame, value: str) -> tuple[pd.Series | None, int]:
    """Return the record with the lowest value, and the number of other records with that value.

    Of several records with the lowest value, it is one with the fewest blocks. It is None if no
    record has a value, or if the statistic is not in `LESS_IS_BETTER`.
    """
    equal = table[table[value] == table[value].min()]
    if value not in LESS_IS_BETTER or equal.empty:
        return None, 0
    if "blocks" in equal:
        equal = equal.sort_values("blocks", kind="stable")
    return equal.iloc[0], len(equal) - 1


def at_setting(
    table: pd.DataFrame, value: str, setting: Mapping[str, Any] | None
) -> pd.Series | None:
    """Return the first record with these parameters and a value; None if there is none."""
    if not setting or not set(setting) <= set(table.columns):
        return None
    rows = table[table[value].notna()]
    for name, parameter in setting.items():
        rows = rows[(rows[name] == parameter).fillna(False).astype(bool)]
    return None if rows.empty else rows.iloc[0]


def lines(table: pd.DataFrame, x: str) -> list[Line]:
    """Split a sweep into lines along `x`, one per combination of the other varying parameters.

    Parameters
    ----------
    table : DataFrame
        From `sweep`.
    x : str
        Parameter along the lines.

    Raises
    ------
    ArgumentError
        If two records of a line have the same x.
    """
    keys = [name for name in distinguishing(table) if name != x]
    _refuse_duplicates(table, [*keys, x])
    groups = table.groupby(keys, dropna=False, sort=False) if keys else [((), table)]
    result = []
    for values, rows in groups:
        key = {name: entry for name, entry in zip(keys, values, strict=True) if pd.notna(entry)}
        constant = rows[x].isna()
        varied = rows[~constant].sort_values(x, kind="stable")
        parts = ((varied, False), (rows[constant], True))
        result += [Line(key, part, is_constant) for part, is_constant in parts if len(part)]
    return result


def grid(table: pd.DataFrame, value: str, x: str, y: str) -> pd.DataFrame:
    """Return a statistic as a matrix over two parameters.

    Returns
    -------
    DataFrame
        float64, shape (values of `y`, values of `x`), both ascending; NaN where the sweep has no
        value. `attrs["left_out"]` lists the strategies that lack one of the parameters.

    Raises
    ------
    ArgumentError
        If two records have the same values of `x` and `y`.
    """
    lacks_axis = table[x].isna() | table[y].isna()
    rows = table[~lacks_axis]
    _refuse_duplicates(rows, [x, y])
    cells = rows.set_index([y, x])[value].unstack().astype("Float64").astype(float)  # noqa: PD010
    names = table.loc[lacks_axis, "strategy"].unique() if "strategy" in table else ()
    cells.attrs["left_out"] = list(map(str, names))
    return cells


def _refuse_duplicates(rows: pd.DataFrame, axes: list[str]) -> None:
    duplicates = rows[rows.duplicated(axes, keep=False)]
    for values, same in duplicates.groupby(axes, dropna=False, sort=False):
        setting = ", ".join(f"{name}={value}" for name, value in zip(axes, values, strict=True))
        names = [name for name in varying(same, parameters(same)) if name not in axes]
        raise ArgumentError(
            "table",
            f"{len(same)} rows at {setting}, which differ in {', '.join(names) or 'nothing'}",
            f"rows with one value of {names[0]}" if names else "each setting once",
        )
