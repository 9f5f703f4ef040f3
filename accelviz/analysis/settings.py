"""Which setting of a sweep is best, and its rows as lines or as a grid, for pictures to show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
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
BETTER = ("lowest", "highest", "neither")


@dataclass(frozen=True, eq=False)
class Best:
    """The best rows of a sweep.

    Attributes
    ----------
    row : Series, optional
        The best; of equal rows the one with the fewest blocks. None where no row has a value, or
        where values are neither good nor bad.
    equal : int
        How many other rows have the same value.
    """

    row: pd.Series | None
    equal: int


@dataclass(frozen=True, eq=False)
class Line:
    """The rows of a sweep that differ in the parameter along x alone.

    Attributes
    ----------
    key : mapping of str to object
        Parameters that tell the line from others, and their values, as far as its strategy has
        them.
    rows : DataFrame
        In ascending order of x; one row, without x, if the strategy has no such parameter.
    constant : bool
        Whether it is such a single row.
    """

    key: Mapping[str, Any]
    rows: pd.DataFrame
    constant: bool


@dataclass(frozen=True, eq=False)
class Grid:
    """A statistic of a sweep over two parameters.

    Attributes
    ----------
    x, y : list
        Their values, ascending.
    cells : array of float64, shape (len(y), len(x))
        NaN where there is no row or it has no value.
    left_out : tuple of str
        Strategies whose rows lack one of the parameters.
    """

    x: list[Any]
    y: list[Any]
    cells: npt.NDArray[np.float64]
    left_out: tuple[str, ...]


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
    columns = [str(name) for name in table.columns]
    for name in (value, *axes):
        if name not in table:
            raise ArgumentError(name, "the table has no such column", ", ".join(columns))
    if not pd.api.types.is_numeric_dtype(table[value]):
        raise ArgumentError(value, f"a column of {table[value].dtype}", "numbers, as `blocks` is")
    if len(set(axes)) < len(axes) or value in axes:
        raise ArgumentError("table", f"{value} against {', '.join(axes)}", "columns that differ")
    for name in axes:
        count = table[name].nunique()
        if count < 2:
            had = f"only {table[name].dropna().iloc[0]}" if count else "no value"
            raise ArgumentError(name, f"the table has {had} of it", "a sweep over two or more")


def direction(value: str, better: str | None) -> str:
    """Return which values of a statistic are best: "lowest", "highest" or "neither".

    Raises
    ------
    ArgumentError
        If `better` is another word. None asks for what is known of the statistic.
    """
    if better is None:
        return "lowest" if value in LESS_IS_BETTER else "neither"
    if better not in BETTER:
        raise ArgumentError("better", f"got {better!r}", ", ".join(map(repr, BETTER)))
    return better


def best(table: pd.DataFrame, value: str, better: str) -> Best:
    """Return the best row of a sweep; `better` is one of `BETTER`."""
    rows = table[table[value].notna()]
    if better == "neither" or rows.empty:
        return Best(None, 0)
    wanted = rows[value].min() if better == "lowest" else rows[value].max()
    equal = rows[rows[value] == wanted]
    if "blocks" in equal and equal["blocks"].notna().any():
        return Best(equal.loc[equal["blocks"].idxmin()], len(equal) - 1)
    return Best(equal.iloc[0], len(equal) - 1)


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


def lines(table: pd.DataFrame, x: str, by: str | None = None) -> list[Line]:
    """Take a sweep apart into lines along `x`.

    Parameters
    ----------
    table : DataFrame
        As `sweep` returns it.
    x : str
        The parameter along the lines.
    by : str, optional
        The parameter that tells the lines apart; all others that vary if not given.

    Raises
    ------
    ArgumentError
        If two rows of a line have the same x.
    """
    others = [name for name in telling(table) if name != x]
    if by is not None and by not in table:
        raise ArgumentError("by", f"no column {by!r}", ", ".join(others) or "none varies")
    keys = others if by is None else [by]
    groups = table.groupby(keys, dropna=False, sort=False) if keys else [((), table)]
    result = []
    for values, rows in groups:
        key = {name: entry for name, entry in zip(keys, values, strict=True) if pd.notna(entry)}
        along = rows[rows[x].notna()].sort_values(x, kind="stable")
        _refuse_several(along, [x])
        if len(along):
            result.append(Line(key, along, constant=False))
        constant = rows[rows[x].isna()]
        if len(constant) > 1:
            problem = f"{len(constant)} rows of {_text(key)} without {x}"
            raise ArgumentError("table", problem, "one, or another `by`")
        if len(constant):
            result.append(Line(key, constant, constant=True))
    return result


def grid(table: pd.DataFrame, value: str, x: str, y: str) -> Grid:
    """Lay a statistic out over two parameters.

    Raises
    ------
    ArgumentError
        If two rows have the same place.
    """
    outside = table[x].isna() | table[y].isna()
    inside = table[~outside]
    _refuse_several(inside, [x, y])
    across, down = (sorted(inside[name].unique()) for name in (x, y))
    cells = np.full((len(down), len(across)), np.nan)
    i = np.searchsorted(np.array(down), inside[y].to_numpy())
    j = np.searchsorted(np.array(across), inside[x].to_numpy())
    cells[i, j] = inside[value].to_numpy(dtype=np.float64, na_value=np.nan)
    names = table.loc[outside, "strategy"].unique() if "strategy" in table else ()
    return Grid(across, down, cells, tuple(map(str, names)))


def _refuse_several(rows: pd.DataFrame, axes: list[str]) -> None:
    several = rows[rows.duplicated(axes, keep=False)]
    if several.empty:
        return
    first = several[axes].iloc[0].to_dict()
    same = several[(several[axes] == several[axes].iloc[0]).all(axis=1)]
    names = [name for name in varying(same, parameters(same)) if name not in axes]
    raise ArgumentError(
        "table",
        f"{len(same)} rows at {_text(first)}, which differ in {', '.join(names) or 'nothing'}",
        f"rows with one value of {names[0]}" if names else "each setting once",
    )


def _text(setting: Mapping[Any, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in setting.items())
