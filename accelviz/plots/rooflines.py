"""The roofline of measurements: work per byte against work per second, and what bounds it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from accelviz.errors import ArgumentError
from accelviz.measure.comparison import Cases
from accelviz.measure.roofline import MODELS, roofline_table, shares
from accelviz.plots.labels import HALO, label_points, write_title
from accelviz.plots.quantities import percent_text
from accelviz.plots.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    VERMILLION,
    new_axes,
    tell,
    tidy,
)

#: In the order of the strategies; colour and shape both tell them apart.
_COLOURS = (BLUE, ORANGE, GREEN, BLACK, PURPLE, SKY, VERMILLION)
_MARKS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
#: Most cases (graphs times column counts) that are named, and most whose limits are not faint.
_NAMED, _CLEAR = 6, 40
#: What a share is a share of.
_ROOFS = {"compulsory": "roof that copy bandwidth sets", "gather": "random-gather limit"}
_NUMBER = FuncFormatter(lambda value, _: f"{value:,.10g}")


def roofline(
    table: pd.DataFrame,
    graphs: str | Iterable[str] | None = None,
    columns: int | Iterable[int] | None = None,
    strategies: Cases | None = None,
    *,
    model: str = "compulsory",
    state: str = "warm",
    peak_gflops: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw what strategies achieve below what the machine's bandwidth allows.

    Parameters
    ----------
    table : DataFrame
        Results of one machine, with the columns of `records.COLUMNS`.
    graphs : str or iterable of str, optional
        Names in the table; all of it if not given.
    columns : int or iterable of int, optional
        Columns of the features; all if not given.
    strategies : str, iterable of str, or mapping of str to str, optional
        Cases (see `analysis.comparison`), or names for them; all if not given. The title speaks of
        the first.
    model : {"compulsory", "gather"}
        How bytes are counted, which the picture states: every input and output once, or a row of X
        for each nonzero.
    state : {"warm", "cold"}
        Which times.
    peak_gflops : float, optional
        Of the machine in float32, for the flat part of the roof. It is not measured.
    ax : Axes, optional
        Where to draw; a new figure if not given.

    Returns
    -------
    Axes
        Both axes logarithmic. The sloped roof is the measured bandwidth of a large copy. A short
        line above each case is its random-gather limit. Cases that take no longer than an empty
        launch are left out, and the picture says so.

    Raises
    ------
    ArgumentError
        If a graph, a column count or a case is not there, or nothing is left to show; see
        `analysis.roofline.roofline_table`.
    """
    found = roofline_table(
        _chosen(table, graphs, columns),
        strategies,
        model=model,
        state=state,
        peak_gflops=peak_gflops,
    )
    if found.empty:
        raise ArgumentError(
            "table",
            f"an empty launch takes as long as the limits of all {found.attrs['left_out']} times",
            "larger graphs or more columns",
        )
    cases = found.drop_duplicates(["graph", "fingerprint", "columns"])
    few = len(cases) <= _NAMED
    ax = new_axes(ax, figsize=(8, 5.2) if len(cases) == 1 else (10, 5.2))
    ax.set_xscale("log")
    ax.set_yscale("log")
    _limits(ax, found, few)
    _roofs(ax, cases, model, peak_gflops, faint=len(cases) > _CLEAR)
    names = list(dict.fromkeys(found["strategy"]))
    looks = {
        name: (_COLOURS[i % len(_COLOURS)], _MARKS[i % len(_MARKS)]) for i, name in enumerate(names)
    }
    for name in reversed(names):  # the first one on top
        part = found[found["strategy"] == name]
        colour, mark = looks[name]
        ax.plot(
            part["intensity"],
            part["gflops"],
            mark,
            color=colour,
            mec="white",
            mew=0.4,
            ms=8 if few else 5.5,
            alpha=1 if few else 0.75,
            zorder=4,
        )
    reached = shares(found)
    if len(cases) == 1:
        points = [
            (
                row.intensity,
                row.gflops,
                f"{row.strategy}: {percent_text(row.share)}",
                looks[row.strategy][0],
            )
            for row in found.itertuples()
        ]
        label_points(ax, points)
        case = cases.iloc[0]
        spot = (case["intensity"], case["gather_roof_gflops"], "random-gather limit", VERMILLION)
        label_points(ax, [spot], side=-1)
    else:
        handles = []
        for name, (colour, mark) in looks.items():
            share, low, high = (reached.loc[name, key] for key in ("share", "lowest", "highest"))
            text = f"{name}: {percent_text(share)} ({percent_text(low)} to {percent_text(high)})"
            handles.append(
                Line2D([], [], marker=mark, ls="", color=colour, mec="white", ms=8, label=text)
            )
        handles.append(
            Line2D(
                [],
                [],
                color=VERMILLION,
                marker="_",
                ms=13,
                mew=2.4,
                ls="",
                label="random-gather limit of a case",
            )
        )
        ax.legend(
            handles=handles,
            title=f"share of the {_ROOFS[model]}:\nmean (range)",
            loc="upper left",
            bbox_to_anchor=(1.0, 1.02),
            fontsize=9,
            title_fontsize=9,
            alignment="left",
            frameon=False,
        )
    if few:
        tops = cases.assign(top=cases[["copy_roof_gflops", "gather_roof_gflops"]].max(axis=1))
        spots = [
            (row.intensity, row.top * 1.15, f"{row.graph}, {row.columns} columns", GREY)
            for row in tops.itertuples()
        ]
        label_points(ax, spots, side=-1)
    left_out = found.attrs["left_out"]
    note = (
        f"\nleft out: {left_out} times of cases no longer than an empty launch" if left_out else ""
    )
    if (found["share"] > 1).any():
        note += "\nabove 100 %: caches serve rows of X that the model reads anew"
    ax.set_xlabel(
        f"arithmetic intensity (flop/byte)\nbytes by the {model} model: {MODELS[model]}{note}"
    )
    ax.set_ylabel("GFLOP/s (2 x nonzeros x columns / time)")
    sentence = _sentence(found, reached, len(cases), model, peak_gflops)
    write_title(ax, sentence)
    others = ", ".join(f"{name} {percent_text(reached.loc[name, 'share'])}" for name in names)
    tell(
        ax,
        f"Roofline of {len(cases)} cases by the {model} model of bytes. {sentence}. All: {others}.",
    )
    return tidy(ax)


def _chosen(
    table: pd.DataFrame,
    graphs: str | Iterable[str] | None,
    columns: int | Iterable[int] | None,
) -> pd.DataFrame:
    """Return the rows of those graphs and column counts, refusing what is not there."""
    for name, column, wanted in (("graphs", "graph", graphs), ("columns", "columns", columns)):
        if wanted is None:
            continue
        if column not in table:
            raise ArgumentError("table", f"it has no {column}", "a table of `benchmark`")
        values: list[Any] = [wanted]
        if not isinstance(wanted, str) and isinstance(wanted, Iterable):
            values = list(wanted)
        there = list(dict.fromkeys(table[column]))
        missing = [value for value in values if value not in there]
        if missing or not values:
            known = ", ".join(map(str, there))
            raise ArgumentError(name, f"no times of {missing or 'none'}", f"some of {known}")
        table = table[table[column].isin(values)]
    return table


def _limits(ax: Axes, found: pd.DataFrame, few: bool) -> None:
    """Fix both axes, with room above and left of the roof for the names of the cases."""
    x = found["intensity"]
    roofs = found[["copy_roof_gflops", "gather_roof_gflops", "gflops"]]
    right = 4.0 if few else 2.5
    ax.set_xlim(
        x.min() / (max(4.0, (x.max() / x.min() * right) ** 0.55) if few else 2), x.max() * right
    )
    ax.set_ylim(found["gflops"].min() / 2.5, roofs.max(axis=None) * 2.5)
    for axis in (ax.xaxis, ax.yaxis):
        low, high = axis.get_view_interval()
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 300 * low else (1,)))
        axis.set_major_formatter(_NUMBER)
        axis.set_minor_formatter(NullFormatter())
    ax.grid(color="#E6E6E6", lw=0.7, zorder=0)
    ax.set_axisbelow(True)


def _roofs(
    ax: Axes, cases: pd.DataFrame, model: str, peak_gflops: float | None, *, faint: bool
) -> None:
    """Draw the copy bandwidth, the limits of gathering, and the peak where it is known."""
    if peak_gflops is not None:
        ax.set_ylim(top=max(ax.get_ylim()[1], peak_gflops * 1.6))
        ax.axhline(peak_gflops, color=BLACK, lw=1.6, zorder=2)
        text = f"float32 peak {_tera(peak_gflops, 'FLOP/s')}"
        _beside_line(ax, ax.get_xlim()[0] * 1.05, peak_gflops, text, 0, "left")
    speed = float(cases["copy_gb_per_s"].median())
    machine = cases["hardware"].iloc[0]
    _slope(ax, speed, f"{machine} copy {_tera(speed, 'B/s')}", peak_gflops, BLACK)
    if model == "gather":
        _gather_slopes(ax, cases["gather_gb_per_s"], peak_gflops)
    ax.plot(
        cases["intensity"],
        cases["gather_roof_gflops"],
        "_",
        color=VERMILLION,
        ms=9 if faint else 18,
        mew=1.4 if faint else 2.6,
        alpha=0.6 if faint else 1.0,
        zorder=3,
    )
    if not faint:
        tops = cases[["copy_roof_gflops", "gather_roof_gflops"]].max(axis=1)
        ax.vlines(cases["intensity"], ax.get_ylim()[0], tops, color=GREY, lw=0.7, ls=":", zorder=1)


def _gather_slopes(ax: Axes, speeds: pd.Series, peak_gflops: float | None) -> None:
    """Draw what random gathers allow; their speed depends on the size of X, so it may be a band."""
    low, high = float(speeds.min()), float(speeds.max())
    text = f"random gather {_tera(high, 'B/s')}"
    if high > 1.02 * low:
        text = f"random gather {low / 1000:.3g} to {_tera(high, 'B/s')}"
        _slope(ax, low, "", peak_gflops, VERMILLION)
        x = np.array(ax.get_xlim())
        ax.fill_between(x, x * low, x * high, color=VERMILLION, alpha=0.08, lw=0, zorder=0)
    _slope(ax, high, text, peak_gflops, VERMILLION)


def _slope(ax: Axes, gb_per_s: float, name: str, peak_gflops: float | None, colour: str) -> None:
    """Draw what a bandwidth allows, and its name along it."""
    left, right = ax.get_xlim()
    end = right if peak_gflops is None else min(right, peak_gflops / gb_per_s)
    gather = colour != BLACK
    ax.plot(
        [left, end],
        [left * gb_per_s, end * gb_per_s],
        color=colour,
        lw=1.0 if gather else 1.6,
        ls="--" if gather else "-",
        zorder=2,
    )
    # Where the line leaves the picture, above or at the right: gathers above it, copies below.
    at = min(end, ax.get_ylim()[1] / gb_per_s) * (0.87 if gather else 0.95)
    angle = float(np.degrees(np.arctan(gb_per_s)))
    _beside_line(ax, at, at * gb_per_s, name, angle, "right", above=gather, colour=colour)


def _beside_line(
    ax: Axes,
    x: float,
    y: float,
    text: str,
    angle: float,
    ha: str,
    *,
    above: bool = True,
    colour: str = BLACK,
) -> None:
    ax.text(
        x,
        y * (1.06 if above else 0.94),
        text,
        rotation=angle,
        rotation_mode="anchor",
        transform_rotates_text=True,
        ha=ha,
        va="bottom" if above else "top",
        fontsize=9,
        color=colour,
        path_effects=HALO,
        zorder=5,
    )


def _tera(giga: float, unit: str) -> str:
    return f"{giga / 1000:.3g} T{unit}" if giga >= 1000 else f"{giga:.3g} G{unit}"


def _sentence(
    found: pd.DataFrame, reached: pd.DataFrame, cases: int, model: str, peak: float | None
) -> str:
    """Say which part of the roof the first strategy reaches, and that memory is the bound."""
    name = reached.index[0]
    share, low, high = (float(reached.loc[name, key]) for key in ("share", "lowest", "highest"))
    roof = _ROOFS[model]
    bound = peak is not None and (found["roof_gflops"] < peak).all()
    where = f"{found['graph'].iloc[0]}, {found['columns'].iloc[0]} columns"
    if cases > 1:
        where = f"mean of {cases} cases, {percent_text(low)} to {percent_text(high)}"
    start = "Memory-bound: " if bound else ""
    return f"{start}{name} reaches {percent_text(share)} of the {roof} ({where})"
