"""Which lane reads which column when: what Accel-GCN's combined warp changes (Figure 4a, b)."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb
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
from accelviz.plots.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    VERMILLION,
    YELLOW,
    new_figure,
    tell,
    tidy,
)

#: Turns that a picture shows at most, and warps unless it is told which.
MOST_TURNS, MOST_WARPS = 96, 12
#: Of the warps, in turn.
WARP_COLOURS = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILLION, YELLOW, GREY)
#: Inches that a line of text needs, and a letter.
_TEXT_HEIGHT, _LETTER = 0.115, 0.056
_BAR_TEXT = 7
#: Inches of a figure's width that its panels have together, and of a letter of one point.
_WIDTH, _POINT = 9.0, 0.0076


def lane_map(
    traces: Mapping[str, pd.DataFrame],
    n_cols: int,
    *,
    array: str = "X",
    warps: Sequence[int] | None = None,
    axes: Sequence[Axes] | None = None,
) -> list[Axes]:
    """Draw which lanes read which columns of X in which turn, with the same axes for all traces.

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
    axes : sequence of Axes, optional
        One for each trace; a new figure if not given.

    Returns
    -------
    list of Axes
        Side by side. A bar is lanes of one request that read neighboring columns of one row,
        coloured by warp. It is as high as a turn, or as its part of it where the warps read several
        rows in one turn. Where there is room it says which warp, its first and last lane, and the
        row. At most `MOST_TURNS` turns are drawn, and the picture says of how many.

    Raises
    ------
    ArgumentError
        If there is no trace, or `n_cols` is below 1.
    """
    if not traces:
        raise ArgumentError("traces", "no trace", "one or more, by title")
    everything = {
        title: column_visits(traced, n_cols, array=array) for title, traced in traces.items()
    }
    count = min(max(2, -(-n_cols // WARP_SIZE)), MOST_WARPS)
    bars = {}
    for title, visits in everything.items():
        if warps is None:
            visits = first_warps(visits, count)
        else:
            visits = visits[visits["warp"].isin(list(warps))]
        bars[title] = stack_runs(column_runs(visits))
    turns = max(1, *(int(each["turn"].max()) + 1 for each in bars.values() if len(each)), 1)
    drawn = min(turns, MOST_TURNS)
    if axes is None:
        lines = drawn * max(1, *(_lines(each) for each in bars.values()), 1)
        size = (10, float(np.clip(1.9 + 0.15 * lines, 3.4, 7.5)))
        axes = list(
            new_figure(figsize=size).subplots(1, len(traces), squeeze=False, sharey=True)[0]
        )
    for ax, (title, found) in zip(axes, bars.items(), strict=True):
        texts = _draw(
            ax, found[found["turn"] < drawn], drawn, n_cols, below=44 if turns > drawn else 32
        )
        ax.set_xlim(0, n_cols)
        ax.set_ylim(drawn, 0)
        ax.xaxis.set_major_locator(FixedLocator(_ticks(n_cols)))
        ax.yaxis.set_major_locator(MaxNLocator(8, integer=True))
        label = f"column of {array}"
        if texts:
            said = f"in a bar: first lane, warp and row of {array}, last lane"
            label += f"\n{wrapped(said, len(traces), 9.5)}"
        if turns > drawn:
            said = f"the first {drawn:,} of {turns:,} turns are shown"
            label += f"\n{wrapped(said, len(traces), 9.5)}"
        ax.set_xlabel(label, fontsize=9.5)
        _name(ax, title, traces[title], everything[title], found, n_cols, array, len(traces))
    axes[0].set_ylabel(f"time: turns of each warp to read {array}")
    return list(axes)


def _ticks(n_cols: int) -> list[int]:
    """Return multiples of the warp size up to the last column, and this."""
    step = WARP_SIZE * -(-n_cols // (8 * WARP_SIZE))
    return [*range(0, n_cols - step // 4, step), n_cols]


def _lines(bars: pd.DataFrame) -> int:
    return int(bars["line"].max()) + 1 if len(bars) else 1


def _draw(ax: Axes, bars: pd.DataFrame, turns: int, n_cols: int, *, below: float) -> bool:
    """Draw the bars, and say whether there are lanes written in them."""
    for column in range(WARP_SIZE, n_cols, WARP_SIZE):
        ax.axvline(column, color=GREY, lw=0.6, ls=":", zorder=0)
    tidy(ax)
    if not len(bars):
        ax.text(0.5, 0.5, "nothing is read", ha="center", transform=ax.transAxes, color=GREY)
        return False
    height = 1 / _lines(bars)
    left, right = (bars["column"] + add for add in (0, bars["columns"]))
    top = bars["turn"] + bars["line"] * height
    wide, high = _inches(ax)
    colours = [WARP_COLOURS[worker % len(WARP_COLOURS)] for worker in bars["worker"]]
    ax.add_collection(
        PolyCollection(
            rectangles(left, right, top, top + height),
            facecolors=colours,
            edgecolors="white",
            linewidths=0.5 if height * high / turns > 0.04 else 0.0,
        ),
        autolim=False,
    )
    if height * high / turns < _TEXT_HEIGHT:
        _legend(ax, bars, below)
        return False
    several = _several_blocks(bars)
    ends = False
    for bar, colour in zip(bars.itertuples(), colours, strict=True):
        ends |= _write(ax, bar, colour, height, wide / n_cols * float(bar.columns), several)
    return ends


def _several_blocks(bars: pd.DataFrame) -> bool:
    return bool((bars["block"] != bars["block"].iloc[0]).any())


def wrapped(text: str, panels: float, size: float) -> str:
    """Break text of so many points into lines that fit one of `panels` panels side by side."""
    return textwrap.fill(text, max(12, int(_WIDTH / panels / (size * _POINT))))


def rectangles(left: Any, right: Any, top: Any, bottom: Any) -> Any:
    """Return the corners of rectangles given as arrays, shape (n, 4, 2)."""
    x = np.stack([left, right, right, left], axis=1)
    y = np.stack([top, top, bottom, bottom], axis=1)
    return np.stack([x, y], axis=2)


def _inches(ax: Axes) -> tuple[float, float]:
    """Return about how wide and high the axes will be, in inches."""
    extent = ax.get_window_extent()
    return float(extent.width / ax.figure.dpi), float(extent.height / ax.figure.dpi)


def _write(ax: Axes, bar: Any, colour: str, height: float, wide: float, several: bool) -> bool:
    """Write into a bar its warp, first and last lane and row, as far as there is room.

    Returns whether there is room for the lanes.
    """
    red, green, blue = to_rgb(colour)
    ink = "white" if 0.3 * red + 0.59 * green + 0.11 * blue < 0.5 else BLACK
    y = bar.turn + (bar.line + 0.5) * height
    style: dict[str, Any] = {"va": "center", "fontsize": _BAR_TEXT, "color": ink, "clip_on": True}
    warp = f"block {bar.block} warp {bar.warp}" if several else f"warp {bar.warp}"
    room = wide / _LETTER
    ends = (str(bar.first_lane), str(bar.last_lane))
    taken = 0.0
    if room > 8 + len(warp):
        pad = 0.5 * _LETTER / wide * bar.columns
        ax.text(bar.column + pad, y, ends[0], ha="left", **style)
        if bar.lanes > 1:
            ax.text(bar.column + bar.columns - pad, y, ends[1], ha="right", **style)
        taken = 6.0
    row = f"row {bar.row:,}"
    texts = (f"{warp} reads {row}", f"{warp}: {row}", f"w{bar.warp}: {row}", warp, f"w{bar.warp}")
    text = next((each for each in texts if len(each) + taken + 1 < room), "")
    ax.text(bar.column + bar.columns / 2, y, text, ha="center", **style)
    return taken > 0


def _legend(ax: Axes, bars: pd.DataFrame, below: float) -> None:
    """Name the warps below the picture, where their bars are too thin for text."""
    several = _several_blocks(bars)
    named = bars.drop_duplicates("worker").sort_values("worker")
    handles = [
        Patch(
            color=WARP_COLOURS[bar.worker % len(WARP_COLOURS)],
            label=f"block {bar.block} warp {bar.warp}" if several else f"warp {bar.warp}",
        )
        for bar in named.itertuples()
    ]
    ax.legend(
        handles=handles,
        ncols=min(len(handles), 4),
        fontsize=8.5,
        frameon=False,
        loc="upper center",
        bbox_to_anchor=(0.5, 0),
        bbox_transform=ax.transAxes + ScaledTranslation(0, -below / 72, ax.figure.dpi_scale_trans),
        handlelength=1,
        columnspacing=1,
    )


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
        ax.set_title(title, loc="left", fontsize=10.5, fontweight="bold")
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
    pad = 7 + 11.5 * (1 + below.count("\n"))
    ax.set_title(heading, loc="left", fontsize=10.5, fontweight="bold", pad=pad)
    ax.annotate(
        below,
        (0, 1),
        xytext=(0, 4),
        xycoords="axes fraction",
        textcoords="offset points",
        fontsize=8.5,
        color=GREY,
        va="bottom",
        in_layout=False,
    )
    tell(ax, f"{title}: the lanes read {at_once}; {cost}.")
