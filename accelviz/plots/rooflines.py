"""The roofline of measurements: work per byte against work per second, and what bounds it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from accelviz.errors import ArgumentError
from accelviz.measure.comparison import Cases
from accelviz.measure.roofline import MODELS, roofline_table, shares
from accelviz.plots.drawing import Look, log_ticks, new_axes
from accelviz.plots.labels import HALO, counted, label_points, write_title
from accelviz.plots.quantities import percent_text
from accelviz.plots.style import BLACK, GREY, VERMILLION, strategy_colours, tell, tidy

#: In the order of the strategies; colour and shape both tell them apart.
_MARKS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
#: At most so many cases (graphs times column counts) have a name, and so many a clear limit.
_NAMED, _CLEAR = 6, 40
_LIMITS = ["copy_roof_gflops", "gather_roof_gflops"]
#: By the model of the bytes: the limit that shares refer to.
_ROOFS = {"compulsory": "roof that copy bandwidth sets", "gather": "random-gather limit"}


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

    The sloped roof is the measured bandwidth of a large copy. A short line above each case is its
    random-gather limit. Cases that take no longer than an empty launch are left out, and the
    picture says so.

    Parameters
    ----------
    table, state, ax : see `accelviz.plots`
    graphs : str or iterable of str, optional
        Names in the table; all of it if not given.
    columns : int or iterable of int, optional
        Columns of the features; all if not given.
    strategies : str, iterable of str, or mapping of str to str, optional
        Cases, or names for them; all if not given. The title speaks of
        the first.
    model : {"compulsory", "gather"}
        How bytes are counted: every input and output once, or a row of X for each nonzero. The
        picture states it.
    peak_gflops : float, optional
        What the machine can do at most in float32, in GFLOP/s, for the flat part of the roof. It is
        not measured.

    Raises
    ------
    ArgumentError
        If a graph, a column count or a case is not there, or nothing is left to show; see
        `measure.roofline.roofline_table`.
    """
    table = _chosen(table, graphs, columns)
    found = roofline_table(table, strategies, model=model, state=state, peak_gflops=peak_gflops)
    left_out = found.attrs["left_out"]
    if found.empty:
        problem = f"an empty launch takes as long as the limits of all {left_out} times"
        raise ArgumentError("table", problem, "larger graphs or more columns")
    cases = found.drop_duplicates(["graph", "fingerprint", "columns"])
    few = len(cases) <= _NAMED
    ax = new_axes(ax, figsize=(8, 5.2) if len(cases) == 1 else (10, 5.2))
    ax.set(xscale="log", yscale="log")
    _limits(ax, found, few)
    _roofs(ax, cases, model, peak_gflops, faint=len(cases) > _CLEAR)
    names = list(dict.fromkeys(found["strategy"]))
    looks: dict[str, Look] = {
        name: {"color": colour, "marker": _MARKS[i % len(_MARKS)], "ls": "", "mec": "white"}
        for i, (name, colour) in enumerate(strategy_colours(names).items())
    }
    size: Look = {"ms": 8, "alpha": 1} if few else {"ms": 5.5, "alpha": 0.75}
    for name in reversed(names):  # the first one on top
        part = found[found["strategy"] == name]
        ax.plot(part["intensity"], part["gflops"], mew=0.4, zorder=4, **looks[name], **size)
    reached = shares(found)
    written = {name: list(map(percent_text, row[:3])) for name, *row in reached.itertuples()}
    if len(cases) == 1:
        spots = [
            (x, y, f"{name}: {percent_text(share)}", looks[name]["color"])
            for x, y, name, share in found[["intensity", "gflops", "strategy", "share"]].to_numpy()
        ]
        label_points(ax, spots)
        case = cases.iloc[0]
        spot = (case["intensity"], case["gather_roof_gflops"], "random-gather limit", VERMILLION)
        label_points(ax, [spot], side=-1)
    else:
        handles = [
            Line2D([], [], ms=8, label="{}: {} ({} to {})".format(name, *written[name]), **look)
            for name, look in looks.items()
        ]
        limit: Look = {"color": VERMILLION, "marker": "_", "ms": 13, "mew": 2.4, "ls": ""}
        handles.append(Line2D([], [], label="random-gather limit of a case", **limit))
        title = f"share of the {_ROOFS[model]}:\nmean (range)"
        place: Look = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.02), "alignment": "left"}
        look: Look = {"fontsize": 9, "title_fontsize": 9, "frameon": False}
        ax.legend(handles=handles, title=title, **place, **look)
    if few:
        tops = cases[_LIMITS].max(axis=1) * 1.15
        names_of = cases["graph"].astype(str) + ", " + cases["columns"].astype(str) + " columns"
        spots = [(*each, GREY) for each in zip(cases["intensity"], tops, names_of, strict=True)]
        label_points(ax, spots, side=-1)
    note = f"\nleft out: {left_out} times of cases no longer than an empty launch" * bool(left_out)
    if (found["share"] > 1).any():
        note += "\nabove 100 %: caches serve rows of X that the model reads again"
    label = "arithmetic intensity (flop/byte)"
    ax.set_xlabel(f"{label}\nbytes by the {model} model: {MODELS[model]}{note}")
    ax.set_ylabel("GFLOP/s (2 x nonzeros x columns / time)")
    sentence = _sentence(found, reached, len(cases), model, peak_gflops)
    write_title(ax, sentence)
    others = ", ".join(f"{name} {written[name][0]}" for name in names)
    cases_said = f"{counted(len(cases), 'case')} by the {model} model of bytes"
    tell(ax, f"Roofline of {cases_said}. {sentence}. All: {others}.")
    return tidy(ax)


def _chosen(table: pd.DataFrame, graphs: Any, columns: Any) -> pd.DataFrame:
    """Return the rows of those graphs and column counts, refusing what is not there."""
    for name, column, wanted in (("graphs", "graph", graphs), ("columns", "columns", columns)):
        if wanted is None:
            continue
        if column not in table:
            raise ArgumentError("table", f"it has no {column}", "a table of `benchmark`")
        single = isinstance(wanted, str) or not isinstance(wanted, Iterable)
        values = [wanted] if single else list(wanted)
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
    right = 4.0 if few else 2.5
    left = max(4.0, (x.max() / x.min() * right) ** 0.55) if few else 2
    ax.set_xlim(x.min() / left, x.max() * right)
    ax.set_ylim(found["gflops"].min() / 2.5, 2.5 * found[[*_LIMITS, "gflops"]].max(axis=None))
    for axis in (ax.xaxis, ax.yaxis):
        log_ticks(axis, "{x:,.10g}", 300)
    ax.grid(color="#E6E6E6", lw=0.7, zorder=0)
    ax.set_axisbelow(True)


def _roofs(
    ax: Axes, cases: pd.DataFrame, model: str, peak_gflops: float | None, *, faint: bool
) -> None:
    """Draw the copy bandwidth, the limits of gathering, and the peak where it is known."""
    speed = float(cases["copy_gb_per_s"].median())
    if peak_gflops is not None:
        corner = peak_gflops / speed  # where the roofs meet is to be seen, with some flat roof
        ax.set_xlim(right=max(ax.get_xlim()[1], 4 * corner))
        ax.set_ylim(top=max(ax.get_ylim()[1], peak_gflops * 1.6))
        ax.axhline(peak_gflops, color=BLACK, lw=1.6, zorder=2)
        text = f"float32 peak {_tera(peak_gflops, 'FLOP/s')}"
        _beside_line(ax, ax.get_xlim()[0] * 1.05, peak_gflops, text, 0, "left")
    machine = cases["hardware"].iloc[0]
    _slope(ax, speed, f"{machine} copy {_tera(speed, 'B/s')}", peak_gflops, BLACK)
    if model == "gather":  # its speed depends on the size of X, so it may be a band
        low, high = cases["gather_gb_per_s"].min(), cases["gather_gb_per_s"].max()
        band = bool(high > 1.02 * low)
        if band:
            _slope(ax, low, "", peak_gflops, VERMILLION)
            x = np.array(ax.get_xlim())
            ax.fill_between(x, x * low, x * high, color=VERMILLION, alpha=0.08, lw=0, zorder=0)
        text = "random gather " + f"{low / 1000:.3g} to " * band + _tera(high, "B/s")
        _slope(ax, high, text, peak_gflops, VERMILLION)
    look: Look = {"ms": 9, "mew": 1.4, "alpha": 0.6} if faint else {"ms": 18, "mew": 2.6}
    x = cases["intensity"]
    ax.plot(x, cases["gather_roof_gflops"], "_", color=VERMILLION, zorder=3, **look)
    if not faint:
        tops = cases[_LIMITS].max(axis=1)
        ax.vlines(x, ax.get_ylim()[0], tops, color=GREY, lw=0.7, ls=":", zorder=1)


def _slope(ax: Axes, gb_per_s: float, name: str, peak_gflops: float | None, colour: str) -> None:
    """Draw what a bandwidth allows, and its name along it."""
    left, right = ax.get_xlim()
    end = right if peak_gflops is None else min(right, peak_gflops / gb_per_s)
    gather = colour != BLACK
    look: Look = {"lw": 1.0, "ls": "--"} if gather else {"lw": 1.6, "ls": "-"}
    ax.plot([left, end], [left * gb_per_s, end * gb_per_s], color=colour, zorder=2, **look)
    # Where the line leaves the picture, above or at the right: gathers above it, copies below.
    at = min(end, ax.get_ylim()[1] / gb_per_s) * (0.87 if gather else 0.95)
    angle = float(np.degrees(np.arctan(gb_per_s)))
    _beside_line(ax, at, at * gb_per_s, name, angle, "right", colour)


def _beside_line(
    ax: Axes, x: float, y: float, text: str, angle: float, ha: str, colour: str = BLACK
) -> None:
    """Write text along a line: below it if it is the slope of a copy, else above it."""
    above = colour != BLACK or not angle
    turn: Look = {"rotation": angle, "rotation_mode": "anchor", "transform_rotates_text": True}
    place: Look = {"ha": ha, "va": "bottom" if above else "top", "path_effects": HALO, "zorder": 5}
    ax.text(x, y * (1.06 if above else 0.94), text, fontsize=9, color=colour, **turn, **place)


def _tera(giga: float, unit: str) -> str:
    return f"{giga / 1000:.3g} T{unit}" if giga >= 1000 else f"{giga:.3g} G{unit}"


def _sentence(
    found: pd.DataFrame, reached: pd.DataFrame, cases: int, model: str, peak: float | None
) -> str:
    """Say which part of the roof the first strategy reaches, and that memory is the bound."""
    name, share, low, high = next(reached[["share", "lowest", "highest"]].itertuples())
    bound = peak is not None and (found["roof_gflops"] < peak).all()
    where = f"{found['graph'].iloc[0]}, {found['columns'].iloc[0]} columns"
    if cases > 1:
        where = f"mean of {cases} cases, {percent_text(low)} to {percent_text(high)}"
    start = "Memory-bound: " if bound else ""
    return f"{start}{name} reaches {percent_text(share)} of the {_ROOFS[model]} ({where})"
