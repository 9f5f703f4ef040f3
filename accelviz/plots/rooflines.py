"""Picture of a roofline model: achieved GFLOP/s of measurements against arithmetic intensity.

`measure.roofline` computes the points and roofs.
"""

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

_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
#: Largest number of cases (graphs times column counts) with labels, and with opaque limits.
_MAX_LABELLED, _MAX_OPAQUE = 6, 40
_LIMITS = ["copy_roof_gflops", "gather_roof_gflops"]
#: Name of the roof that shares refer to.
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
    """Draw the achieved GFLOP/s of strategies below the roofs that the machine's bandwidth sets.

    Bytes are those of the compulsory model of `measure.roofline`: every input and output once. The
    sloped roof is the measured bandwidth of a large copy. A short line at each case is its
    random-gather limit; a note states that points above it are due to caches. Cases whose limit is
    at most the time of an empty launch are omitted, and a note states their number.

    Parameters
    ----------
    table, strategies, state : see `accelviz.plots`
    graphs : str or iterable of str, optional
        Graph names; the default is all.
    columns : int or iterable of int, optional
        Column counts of the features; the default is all.
    peak_gflops : float, optional
        Peak of the machine in float32, in GFLOP/s, for the flat part of the roof. It is not
        measured.

    Raises
    ------
    ArgumentError
        If the table lacks a graph, a column count or a case, or all cases are omitted; see
        `measure.roofline.roofline_table`.
    """
    table = _selected(_selected(table, "graphs", "graph", graphs), "columns", "columns", columns)
    times = roofline_table(table, strategies, state=state, peak_gflops=peak_gflops)
    left_out = times.attrs["left_out"]
    if times.empty:
        problem = f"an empty launch takes as long as the limits of all {left_out} times"
        raise ArgumentError("table", problem, "larger graphs or more columns")
    cases = times.drop_duplicates(["graph", "fingerprint", "columns"])
    is_labelled, is_single = len(cases) <= _MAX_LABELLED, len(cases) == 1
    ax = draw.new_axes(ax, figsize=(8 if is_single else 10, 5.2))
    _set_limits(ax, times, is_labelled)
    _draw_roofs(ax, cases, peak_gflops, faint=len(cases) > _MAX_OPAQUE)
    roof_shares = shares(times)
    texts = roof_shares[["share", "lowest", "highest"]].map(percent_text)
    looks: dict[str, Look] = {
        name: {"color": colour, "marker": _MARKERS[i % len(_MARKERS)], "ls": "", "mec": "white"}
        for i, (name, colour) in enumerate(strategy_colours(roof_shares.index).items())
    }
    size: Look = {"ms": 8, "alpha": 1} if is_labelled else {"ms": 5.5, "alpha": 0.75}
    for name in reversed(looks):  # draws the first strategy last, on top
        part = times[times["strategy"] == name]
        ax.plot(part["intensity"], part["gflops"], mew=0.4, zorder=4, **looks[name], **size)
    if is_single:
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
        handles = []
        for row in texts.itertuples():
            label = f"{row.Index}: {row.share} ({row.lowest} to {row.highest})"
            handles.append(Line2D([], [], ms=8, label=label, **looks[row.Index]))
        limit: Look = {"color": VERMILLION, "marker": "_", "ms": 13, "mew": 2.4, "ls": ""}
        handles.append(Line2D([], [], label="random-gather limit of a case", **limit))
        look: Look = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.02), "alignment": "left"}
        look |= {"fontsize": 9, "title_fontsize": 9, "frameon": False}
        ax.legend(handles=handles, title=f"share of the {_ROOF}:\nmean (range)", **look)
    if is_labelled:
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
    title = _title(times, texts, len(cases), peak_gflops)
    all_shares = ", ".join(f"{name} {share}" for name, share in texts["share"].items())
    subject = f"Roofline of {draw.pluralize(len(cases), 'case')} by the compulsory model of bytes"
    return draw.finish(ax, f"{subject}. {title}. All: {all_shares}.", title)


def _selected(table: pd.DataFrame, argument: str, column: str, selection: Any) -> pd.DataFrame:
    if selection is None:
        return table
    if column not in table:
        raise ArgumentError("table", f"it has no {column}", "a table of `benchmark`")
    is_value = isinstance(selection, str) or not isinstance(selection, Iterable)
    values = [selection] if is_value else list(selection)
    known = list(dict.fromkeys(table[column]))
    missing = [value for value in values if value not in known]
    if missing or not values:
        expected = f"some of {', '.join(map(str, known))}"
        raise ArgumentError(argument, f"no times of {missing or 'none'}", expected)
    return table[table[column].isin(values)]


def _set_limits(ax: Axes, times: pd.DataFrame, is_labelled: bool) -> None:
    """Set scales and limits of both axes, with margins for the labels of the cases."""
    ax.set(xscale="log", yscale="log")
    x = times["intensity"]
    right_factor = 4.0 if is_labelled else 2.5
    left = max(4.0, (x.max() / x.min() * right_factor) ** 0.55) if is_labelled else 2
    ax.set_xlim(x.min() / left, x.max() * right_factor)
    ax.set_ylim(times["gflops"].min() / 2.5, 2.5 * times[[*_LIMITS, "gflops"]].max(axis=None))
    for axis in (ax.xaxis, ax.yaxis):
        draw.log_ticks(axis, "{x:,.10g}", 300)
    ax.grid(color="#E6E6E6", lw=0.7, zorder=0)
    ax.set_axisbelow(True)


def _draw_roofs(ax: Axes, cases: pd.DataFrame, peak_gflops: float | None, *, faint: bool) -> None:
    bandwidth = float(cases["copy_gb_per_s"].median())
    ridge = np.inf
    if peak_gflops is not None:
        ridge = peak_gflops / bandwidth  # the picture includes the ridge point and the flat roof
        ax.set_xlim(right=max(ax.get_xlim()[1], 4 * ridge))
        ax.set_ylim(top=max(ax.get_ylim()[1], peak_gflops * 1.6))
        ax.axhline(peak_gflops, color=BLACK, lw=1.6, zorder=2)
        spot = (ax.get_xlim()[0] * 1.05, peak_gflops * 1.06)
        text = f"float32 peak {_with_prefix(peak_gflops, 'FLOP/s')}"
        ax.text(*spot, text, fontsize=9, path_effects=HALO, zorder=5)
    x = np.array([ax.get_xlim()[0], min(ridge, ax.get_xlim()[1])])
    ax.plot(x, x * bandwidth, color=BLACK, lw=1.6, zorder=2)
    # The label is below the line, at its upper end within the picture.
    label_x = 0.95 * min(x[1], ax.get_ylim()[1] / bandwidth)
    look: Look = {"rotation": float(np.degrees(np.arctan(bandwidth))), "rotation_mode": "anchor"}
    look |= {"transform_rotates_text": True, "ha": "right", "va": "top", "fontsize": 9, "zorder": 5}
    name = f"{cases['hardware'].iloc[0]} copy {_with_prefix(bandwidth, 'B/s')}"
    ax.text(label_x, label_x * bandwidth * 0.94, name, path_effects=HALO, **look)
    mark: Look = {"ms": 9, "mew": 1.4, "alpha": 0.6} if faint else {"ms": 18, "mew": 2.6}
    x = cases["intensity"]
    ax.plot(x, cases["gather_roof_gflops"], "_", color=VERMILLION, zorder=3, **mark)
    if not faint:
        tops = cases[_LIMITS].max(axis=1)
        ax.vlines(x, ax.get_ylim()[0], tops, color=GREY, lw=0.7, ls=":", zorder=1)


def _with_prefix(giga: float, unit: str) -> str:
    return f"{giga / 1000:.3g} T{unit}" if giga >= 1000 else f"{giga:.3g} G{unit}"


def _title(times: pd.DataFrame, texts: pd.DataFrame, cases: int, peak: float | None) -> str:
    first = texts.iloc[0]
    where = f"{times['graph'].iloc[0]}, {times['columns'].iloc[0]} columns"
    if cases > 1:
        where = f"mean of {cases} cases, {first['lowest']} to {first['highest']}"
    start = "Memory-bound: " if peak is not None and (times["roof_gflops"] < peak).all() else ""
    return f"{start}{first.name} reaches {first['share']} of the {_ROOF} ({where})"
