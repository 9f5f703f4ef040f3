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
from accelviz.plots import draw
from accelviz.plots.quantities import percent_text
from accelviz.plots.style import BLACK, GREY, HALO, VERMILLION, Look, strategy_colours

#: In the order of the strategies; colour and shape both tell them apart.
_MARKS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
#: At most so many cases (graphs times column counts) have a name, and so many a clear limit.
_NAMED, _CLEAR = 6, 40
_LIMITS = ["copy_roof_gflops", "gather_roof_gflops"]
#: The limit that shares refer to.
_ROOF = "roof that copy bandwidth sets"


def roofline(
    table: pd.DataFrame,
    graphs: str | Iterable[str] | None = None,
    columns: int | Iterable[int] | None = None,
    strategies: Cases | None = None,
    *,
    state: str = "warm",
    peak_gflops: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw what strategies achieve below what the machine's bandwidth allows.

    Every input and output counts once, the compulsory model of `measure.roofline`. The sloped roof
    is the measured bandwidth of a large copy. A short line above each case is its random-gather
    limit; the picture says where caches take a strategy past it. Cases that take no
    longer than an empty launch are left out, and the picture says so.

    Parameters
    ----------
    table, strategies, state : see `accelviz.plots`
    graphs : str or iterable of str, optional
        Names in the table; all of it if not given.
    columns : int or iterable of int, optional
        Columns of the features; all if not given.
    peak_gflops : float, optional
        What the machine can do at most in float32, in GFLOP/s, for the flat part of the roof. It is
        not measured.

    Raises
    ------
    ArgumentError
        If a graph, a column count or a case is not there, or nothing is left to show; see
        `measure.roofline.roofline_table`.
    """
    table = _chosen(_chosen(table, "graphs", "graph", graphs), "columns", "columns", columns)
    times = roofline_table(table, strategies, state=state, peak_gflops=peak_gflops)
    left_out = times.attrs["left_out"]
    if times.empty:
        problem = f"an empty launch takes as long as the limits of all {left_out} times"
        raise ArgumentError("table", problem, "larger graphs or more columns")
    cases = times.drop_duplicates(["graph", "fingerprint", "columns"])
    few, one = len(cases) <= _NAMED, len(cases) == 1
    ax = draw.new_axes(ax, figsize=(8 if one else 10, 5.2))
    _limits(ax, times, few)
    _roofs(ax, cases, peak_gflops, faint=len(cases) > _CLEAR)
    reached = shares(times)
    written = reached[["share", "lowest", "highest"]].map(percent_text)
    looks: dict[str, Look] = {
        name: {"color": colour, "marker": _MARKS[i % len(_MARKS)], "ls": "", "mec": "white"}
        for i, (name, colour) in enumerate(strategy_colours(reached.index).items())
    }
    size: Look = {"ms": 8, "alpha": 1} if few else {"ms": 5.5, "alpha": 0.75}
    for name in reversed(looks):  # the first one on top
        part = times[times["strategy"] == name]
        ax.plot(part["intensity"], part["gflops"], mew=0.4, zorder=4, **looks[name], **size)
    if one:
        spots = [
            (x, y, f"{name}: {percent_text(share)}", looks[name]["color"])
            for x, y, name, share in times[["intensity", "gflops", "strategy", "share"]].to_numpy()
        ]
        draw.label_points(ax, spots)
        spot = (
            *cases.iloc[0][["intensity", "gather_roof_gflops"]],
            "random-gather limit",
            VERMILLION,
        )
        draw.label_points(ax, [spot], side=-1)
    else:
        texts = (
            f"{row.Index}: {row.share} ({row.lowest} to {row.highest})"
            for row in written.itertuples()
        )
        handles = [
            Line2D([], [], ms=8, label=text, **looks[name])
            for name, text in zip(written.index, texts, strict=True)
        ]
        limit: Look = {"color": VERMILLION, "marker": "_", "ms": 13, "mew": 2.4, "ls": ""}
        handles.append(Line2D([], [], label="random-gather limit of a case", **limit))
        look: Look = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.02), "alignment": "left"}
        look |= {"fontsize": 9, "title_fontsize": 9, "frameon": False}
        ax.legend(handles=handles, title=f"share of the {_ROOF}:\nmean (range)", **look)
    if few:
        tops = cases[_LIMITS].max(axis=1) * 1.15
        names = cases["graph"].astype(str) + ", " + cases["columns"].astype(str) + " columns"
        spots = [(*spot, GREY) for spot in zip(cases["intensity"], tops, names, strict=True)]
        draw.label_points(ax, spots, side=-1)
    notes = [f"bytes by the compulsory model: {MODELS['compulsory']}"]
    if left_out:
        notes.append(f"left out: {left_out} times of cases no longer than an empty launch")
    if (times["gflops"] > times["gather_roof_gflops"]).any():
        notes.append("above the random-gather limit: caches serve rows of X that it reads again")
    ax.set_xlabel("\n".join(["arithmetic intensity (flop/byte)", *notes]))
    ax.set_ylabel("GFLOP/s (2 x nonzeros x columns / time)")
    title = _sentence(times, written, len(cases), peak_gflops)
    of_all = ", ".join(f"{name} {share}" for name, share in written["share"].items())
    subject = f"Roofline of {draw.pluralize(len(cases), 'case')} by the compulsory model of bytes"
    return draw.finish(ax, f"{subject}. {title}. All: {of_all}.", title)


def _chosen(table: pd.DataFrame, argument: str, column: str, wanted: Any) -> pd.DataFrame:
    """Return the rows with these values of a column, refusing what is not there."""
    if wanted is None:
        return table
    if column not in table:
        raise ArgumentError("table", f"it has no {column}", "a table of `benchmark`")
    single = isinstance(wanted, str) or not isinstance(wanted, Iterable)
    values = [wanted] if single else list(wanted)
    known = list(dict.fromkeys(table[column]))
    missing = [value for value in values if value not in known]
    if missing or not values:
        expected = f"some of {', '.join(map(str, known))}"
        raise ArgumentError(argument, f"no times of {missing or 'none'}", expected)
    return table[table[column].isin(values)]


def _limits(ax: Axes, times: pd.DataFrame, few: bool) -> None:
    """Fix both axes, with room above and left of the roof for the names of the cases."""
    ax.set(xscale="log", yscale="log")
    x = times["intensity"]
    room = 4.0 if few else 2.5
    left = max(4.0, (x.max() / x.min() * room) ** 0.55) if few else 2
    ax.set_xlim(x.min() / left, x.max() * room)
    ax.set_ylim(times["gflops"].min() / 2.5, 2.5 * times[[*_LIMITS, "gflops"]].max(axis=None))
    for axis in (ax.xaxis, ax.yaxis):
        draw.log_ticks(axis, "{x:,.10g}", 300)
    ax.grid(color="#E6E6E6", lw=0.7, zorder=0)
    ax.set_axisbelow(True)


def _roofs(ax: Axes, cases: pd.DataFrame, peak_gflops: float | None, *, faint: bool) -> None:
    """Draw the copy bandwidth, the limits of gathering, and the peak where it is known."""
    speed = float(cases["copy_gb_per_s"].median())
    end = np.inf
    if peak_gflops is not None:
        end = peak_gflops / speed  # where the roofs meet is to be seen, with some flat roof
        ax.set_xlim(right=max(ax.get_xlim()[1], 4 * end))
        ax.set_ylim(top=max(ax.get_ylim()[1], peak_gflops * 1.6))
        ax.axhline(peak_gflops, color=BLACK, lw=1.6, zorder=2)
        spot = (ax.get_xlim()[0] * 1.05, peak_gflops * 1.06)
        text = f"float32 peak {_tera(peak_gflops, 'FLOP/s')}"
        ax.text(*spot, text, fontsize=9, path_effects=HALO, zorder=5)
    x = np.array([ax.get_xlim()[0], min(end, ax.get_xlim()[1])])
    ax.plot(x, x * speed, color=BLACK, lw=1.6, zorder=2)
    # The name stands below the line, where that leaves the picture, above or at the right.
    at = 0.95 * min(x[1], ax.get_ylim()[1] / speed)
    look: Look = {"rotation": float(np.degrees(np.arctan(speed))), "rotation_mode": "anchor"}
    look |= {"transform_rotates_text": True, "ha": "right", "va": "top", "fontsize": 9, "zorder": 5}
    name = f"{cases['hardware'].iloc[0]} copy {_tera(speed, 'B/s')}"
    ax.text(at, at * speed * 0.94, name, path_effects=HALO, **look)
    mark: Look = {"ms": 9, "mew": 1.4, "alpha": 0.6} if faint else {"ms": 18, "mew": 2.6}
    x = cases["intensity"]
    ax.plot(x, cases["gather_roof_gflops"], "_", color=VERMILLION, zorder=3, **mark)
    if not faint:
        tops = cases[_LIMITS].max(axis=1)
        ax.vlines(x, ax.get_ylim()[0], tops, color=GREY, lw=0.7, ls=":", zorder=1)


def _tera(giga: float, unit: str) -> str:
    return f"{giga / 1000:.3g} T{unit}" if giga >= 1000 else f"{giga:.3g} G{unit}"


def _sentence(times: pd.DataFrame, written: pd.DataFrame, cases: int, peak: float | None) -> str:
    """Say which part of the roof the first strategy reaches, and that memory is the bound."""
    first = written.iloc[0]
    where = f"{times['graph'].iloc[0]}, {times['columns'].iloc[0]} columns"
    if cases > 1:
        where = f"mean of {cases} cases, {first['lowest']} to {first['highest']}"
    start = "Memory-bound: " if peak is not None and (times["roof_gflops"] < peak).all() else ""
    return f"{start}{first.name} reaches {first['share']} of the {_ROOF} ({where})"
