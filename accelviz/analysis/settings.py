"""Which setting of a sweep is best, and its rows as lines or as a grid, for pictures to show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from accelviz.analysis.sweep import STATISTICS
from accelviz.errors import ArgumentError
from accelviz.strategies import find_strategy

#: The setting that Accel-GCN's authors published: its defaults of what is worth trying.
PUBLISHED: Mapping[str, Any] = {
    name: parameter.default
    for name, parameter in find_strategy("accel_gcn").parameters.items()
    if parameter.tries
}
#: Statistics that are better the smaller they are; the others are neither good nor bad.
LESS_IS_BETTER = {
    *("idle_warps", "idle_share", "largest", "imbalance", "metadata_bytes"),
    *("rows_shared", "rows_cut", "shared_atomics", "global_atomics"),
}


@dataclass(frozen=True, eq=False)
class Line:
    """The rows of a sweep that differ in the parameter along x alone.

    Attributes
    ----------
    key : mapping of str to object
        The parameters that its strategy has and that tell the line from others.
    rows : DataFrame
        In ascending order of x; one row, without x, if the strategy has no such parameter.
    constant : bool
        Whether it is such a single row.
    """

    key: Mapping[str, Any]
    rows: pd.DataFrame
    constant: bool


def parameters(table: pd.DataFrame) -> list[str]:
    """Return the columns that say what the settings are: those before the first statistic."""
    names = list(table.columns)
    return names[: next((i for i, name in enumerate(names) if name in STATISTICS), len(names))]


def varying(table: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """Return those of the columns that have more than one value, a missing one included."""
    return [name for name in names if len(table[name].unique()) > 1]


def telling(table: pd.DataFrame) -> list[str]:
    """Return the parameters that tell settings apart: strategy, and what varies within one.

    A parameter that one strategy has and another has not does not vary by that alone.
    """
    names = varying(table, parameters(table))
    if "strategy" not in names:
        return names
    groups = [rows for _, rows in table.groupby("strategy", sort=False)]
    return [name for name in names if name == "strategy" or any(varying(g, [name]) for g in groups)]


def checked_sweep(table: pd.DataFrame, value: str, *axes: str) -> None:
    """Refuse a table that cannot be shown.

    Raises
    ------
    ArgumentError
        If a column is missing, `value` is no number, or the table does not vary along an axis.
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
            had = f"only {values[0]}" if len(values) else "no value"
            raise ArgumentError(name, f"the table has {had} of it", "a sweep over two or more")


def best(table: pd.DataFrame, value: str) -> tuple[pd.Series | None, int]:
    """Return the row of a sweep with the lowest value, and how many other rows have the same.

    Of equal rows it is the one with the fewest blocks. It is None where no row has a value, or
    where less is not better (`LESS_IS_BETTER`).
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
    """Return the first row that has these parameters and a value; None if no row has."""
    if not setting or not set(setting) <= set(table.columns):
        return None
    rows = table[table[value].notna()]
    for name, wanted in setting.items():
        rows = rows[(rows[name] == wanted).fillna(False).astype(bool)]
    return None if rows.empty else rows.iloc[0]


def lines(table: pd.DataFrame, x: str) -> list[Line]:
    """Take a sweep apart into lines along `x`, one for each value of the others that vary.

    Parameters
    ----------
    table : DataFrame
        As `sweep` returns it.
    x : str
        The parameter along the lines.

    Raises
    ------
    ArgumentError
        If two rows of a line have the same x.
    """
    keys = [name for name in telling(table) if name != x]
    _refuse_several(table, [*keys, x])
    groups = table.groupby(keys, dropna=False, sort=False) if keys else [((), table)]
    result = []
    for values, rows in groups:
        key = {name: entry for name, entry in zip(keys, values, strict=True) if pd.notna(entry)}
        constant = rows[x].isna()
        along = rows[~constant].sort_values(x, kind="stable")
        parts = ((along, False), (rows[constant], True))
        result += [Line(key, part, alone) for part, alone in parts if len(part)]
    return result


def grid(table: pd.DataFrame, value: str, x: str, y: str) -> pd.DataFrame:
    """Lay a statistic out over two parameters.

    Returns
    -------
    DataFrame
        float64: the values of `y` down and those of `x` across, ascending; NaN where there is no
        row or it has no value. `attrs["left_out"]` names the strategies whose rows lack one of the
        parameters.

    Raises
    ------
    ArgumentError
        If two rows have the same place.
    """
    outside = table[x].isna() | table[y].isna()
    inside = table[~outside]
    _refuse_several(inside, [x, y])
    cells = inside.set_index([y, x])[value].unstack().astype("Float64").astype(float)  # noqa: PD010
    names = table.loc[outside, "strategy"].unique() if "strategy" in table else ()
    cells.attrs["left_out"] = list(map(str, names))
    return cells


def _refuse_several(rows: pd.DataFrame, axes: list[str]) -> None:
    several = rows[rows.duplicated(axes, keep=False)]
    for values, same in several.groupby(axes, dropna=False, sort=False):
        setting = ", ".join(f"{name}={value}" for name, value in zip(axes, values, strict=True))
        names = [name for name in varying(same, parameters(same)) if name not in axes]
        raise ArgumentError(
            "table",
            f"{len(same)} rows at {setting}, which differ in {', '.join(names) or 'nothing'}",
            f"rows with one value of {names[0]}" if names else "each setting once",
        )
