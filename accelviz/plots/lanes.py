"""Which lane reads which column when: what Accel-GCN's combined warp changes (Figure 4a, b)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, MaxNLocator
from matplotlib.transforms import ScaledTranslation

from accelviz.analysis.lanes import (
    column_runs,
    column_visits,
    columns_at_once,
    first_warps,
    stack_runs,
    turns_per_row,
)
from accelviz.analysis.traffic import requests
from accelviz.errors import ArgumentError
from accelviz.plans.launch import WARP_SIZE
from accelviz.plots.drawing import Look, new_panels, nothing, points, rectangles
from accelviz.plots.labels import beside, head, wrapped
from accelviz.plots.style import GREY, WARP_COLOURS, ink, tell, tidy

#: Turns that a picture shows at most, and warps unless it is told which.
MOST_TURNS, MOST_WARPS = 96, 12
#: Inches that a line of text needs, and a letter.
_TEXT_HEIGHT, _LETTER = 0.115, 0.056
_BAR_TEXT = 7


def lane_map(
    traces: Mapping[str, pd.DataFrame],
    n_cols: int,
    *,
    array: str = "X",
    warps: Sequence[int] | None = None,
    axes: Sequence[Axes] | None = None,
) -> list[Axes]:
    """Draw which lanes read which columns of X in which turn, with the same axes for all traces.

    A bar is lanes of one request that read neighboring columns of one row, coloured by warp. Its
    height is one turn, shared by the rows that the warps read in that turn. Where there is room it
    names the warp, its first and last lane, and the row. At most `MOST_TURNS` turns are drawn, and
    the picture says of how many.

    Parameters
    ----------
    traces : mapping of str to DataFrame
        Title to the trace of a block (`accelviz.trace`). Where tiles of columns are blocks of their
        own, trace those of the same rows together.
    n_cols : int
        Columns of X.
    array : str
        X, or Y.
    warps : sequence of int, optional
        Which warps of the block to show. If not given, as many as 32 lanes at a time need for all
        columns, two at least and `MOST_WARPS` at most: the first that read anything.

    Raises
    ------
    ArgumentError
        If there is no trace, or `n_cols` is below 1.
    """
    if not traces:
        raise ArgumentError("traces", "no trace", "one or more, by title")
    visited = {title: column_visits(each, n_cols, array=array) for title, each in traces.items()}
    count = min(max(2, -(-n_cols // WARP_SIZE)), MOST_WARPS)
    bars = {}
    for title, visits in visited.items():
        mine = visits["warp"].isin(list(warps or ()))
        seen = first_warps(visits, count) if warps is None else visits[mine]
        bars[title] = stack_runs(column_runs(seen))
    turns = max(1, *(int(each["turn"].max()) + 1 for each in bars.values() if len(each)), 1)
    drawn = min(turns, MOST_TURNS)
    lines = drawn * max(1, *(_lines(each) for each in bars.values()), 1)
    size = (10, float(np.clip(1.9 + 0.15 * lines, 3.4, 7.5)))
    axes = new_panels(axes, size, 1, len(traces), sharey=True)
    for ax, (title, found) in zip(axes, bars.items(), strict=True):
        seen = found[found["turn"] < drawn]
        texts = _draw(ax, seen, drawn, n_cols, below=44 if turns > drawn else 32)
        ax.set(xlim=(0, n_cols), ylim=(drawn, 0))
        step = WARP_SIZE * -(-n_cols // (8 * WARP_SIZE))
        ax.xaxis.set_major_locator(FixedLocator([*range(0, n_cols - step // 4, step), n_cols]))
        ax.yaxis.set_major_locator(MaxNLocator(8, integer=True))
        label = [f"column of {array}"]
        if texts:
            label.append(f"in a bar: first lane, warp and row of {array}, last lane")
        if turns > drawn:
            label.append(f"the first {drawn:,} of {turns:,} turns are shown")
        ax.set_xlabel("\n".join(wrapped(line, len(traces), 9.5) for line in label), fontsize=9.5)
        _name(ax, title, traces[title], visited[title], found, n_cols, array, len(traces))
    axes[0].set_ylabel(f"time: turns of each warp to read {array}")
    return axes


def _lines(bars: pd.DataFrame) -> int:
    return int(bars["line"].max()) + 1 if len(bars) else 1


def _draw(ax: Axes, bars: pd.DataFrame, turns: int, n_cols: int, *, below: float) -> bool:
    """Draw the bars, and say whether there are lanes written in them."""
    for column in range(WARP_SIZE, n_cols, WARP_SIZE):
        ax.axvline(column, color=GREY, lw=0.6, ls=":", zorder=0)
    tidy(ax)
    if not len(bars):
        nothing(ax, "nothing is read")
        return False
    height = 1 / _lines(bars)
    left, right = (bars["column"] + add for add in (0, bars["columns"]))
    top = bars["turn"] + bars["line"] * height
    wide, high = (length / 72 for length in points(ax))
    colours = [WARP_COLOURS[worker % len(WARP_COLOURS)] for worker in bars["worker"]]
    edge: Look = {"edgecolors": "white", "linewidths": 0.5 if height * high / turns > 0.04 else 0.0}
    rectangles(ax, left, right, top, top + height, facecolors=colours, **edge)
    if height * high / turns < _TEXT_HEIGHT:
        _legend(ax, bars, below)
        return False
    ends = False
    for bar, name, colour in zip(bars.itertuples(), _names(bars), colours, strict=True):
        ends |= _write(ax, bar, name, colour, height, wide / n_cols * float(bar.columns))
    return ends


def _names(bars: pd.DataFrame) -> list[str]:
    """Name the warp of each bar, and its block where there are several."""
    several = len(set(bars["block"])) > 1
    return [f"block {bar.block} " * several + f"warp {bar.warp}" for bar in bars.itertuples()]


def _write(ax: Axes, bar: Any, warp: str, colour: str, height: float, wide: float) -> bool:
    """Write into a bar its warp, row and lanes, as far as there is room; say if the lanes fit."""
    y = bar.turn + (bar.line + 0.5) * height
    style: Look = {"va": "center", "fontsize": _BAR_TEXT, "color": ink(colour), "clip_on": True}
    room = wide / _LETTER
    taken = 0.0
    if room > 8 + len(warp):
        pad = 0.5 * _LETTER / wide * bar.columns
        ax.text(bar.column + pad, y, str(bar.first_lane), ha="left", **style)
        if bar.lanes > 1:
            end = bar.column + bar.columns - pad
            ax.text(end, y, str(bar.last_lane), ha="right", **style)
        taken = 6.0
    row = f"row {bar.row:,}"
    texts = (f"{warp} reads {row}", f"{warp}: {row}", f"w{bar.warp}: {row}", warp, f"w{bar.warp}")
    text = next((each for each in texts if len(each) + taken + 1 < room), "")
    ax.text(bar.column + bar.columns / 2, y, text, ha="center", **style)
    return taken > 0


def _legend(ax: Axes, bars: pd.DataFrame, below: float) -> None:
    """Name the warps below the picture, where their bars are too thin for text."""
    named = bars.drop_duplicates("worker").sort_values("worker")
    handles = [
        Patch(color=WARP_COLOURS[worker % len(WARP_COLOURS)], label=name)
        for worker, name in zip(named["worker"], _names(named), strict=True)
    ]
    place = ax.transAxes + ScaledTranslation(0, -below / 72, ax.figure.dpi_scale_trans)
    look: Look = {"ncols": min(len(handles), 4), "fontsize": 8.5, "frameon": False}
    look |= {"loc": "upper center", "handlelength": 1, "columnspacing": 1}
    ax.legend(handles=handles, bbox_to_anchor=(0.5, 0), bbox_transform=place, **look)


def _name(
    ax: Axes,
    title: str,
    traced: pd.DataFrame,
    visits: pd.DataFrame,
    bars: pd.DataFrame,
    n_cols: int,
    array: str,
    panels: int,
) -> None:
    """Say above a picture how much of a row is read at once, and what the requests cost."""
    found = requests(traced)
    found = found[(found["array"] == array).to_numpy(bool)]
    if not len(found):
        head(ax, title)
        tell(ax, f"{title}: nothing is read.")
        return
    again = turns_per_row(visits)
    columns, warps = columns_at_once(visits), len(visits[["block", "warp"]].drop_duplicates())
    many = f"all {n_cols}" if columns == n_cols else f"{columns} of {n_cols}"
    at_once = f"{many} columns of a row at once"
    times = "once" if again == 1 else f"{again} times"
    cost = (
        f"a warp comes to a row of {array} {times}; {len(found):,} requests, "
        f"{found['lanes'].mean():.3g} lanes and {found['sectors'].mean():.3g} sectors each; "
        f"{bars['worker'].nunique()} of {warps} warps that read are shown"
    )
    heading = f"{wrapped(title, panels, 12)}:\n{wrapped(at_once, panels, 12)}"  # bold is wider
    below = wrapped(cost, panels, 8.5)
    head(ax, heading, pad=7 + 11.5 * (1 + below.count("\n")))
    small: Look = {"xycoords": "axes fraction", "va": "bottom", "fontsize": 8.5, "color": GREY}
    beside(ax, below, (0, 1), (0, 4), in_layout=False, **small)
    tell(ax, f"{title}: the lanes read {at_once}; {cost}.")
