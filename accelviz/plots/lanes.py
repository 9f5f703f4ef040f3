"""Picture of the columns that lanes read over time, as in Accel-GCN, Figures 4a and 4b.

A turn is the rank of a request (a memory instruction of a warp) among those of its warp for one
array; `analysis.lanes` counts them. Combined warps read more columns of a row per turn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, MaxNLocator

from accelviz.analysis import lanes
from accelviz.analysis.traffic import requests
from accelviz.errors import ArgumentError
from accelviz.plans.launch import WARP_SIZE
from accelviz.plots import draw
from accelviz.plots.style import GREY, WARP_COLOURS, Look, add_alt, ink, tidy

#: Largest number of turns in a picture, and default largest number of warps.
MOST_TURNS, MOST_WARPS = 96, 12
#: Height of a line of text and width of a letter, in inches, at the font size of bars in points.
_TEXT_HEIGHT, _LETTER, _BAR_FONT_SIZE = 0.115, 0.056, 7


def lane_map(
    traces: Mapping[str, pd.DataFrame],
    n_cols: int,
    *,
    array: str = "X",
    warps: Sequence[int] | None = None,
) -> list[Axes]:
    """Draw the columns of X that lanes read in each turn, with the same axes for all traces.

    A bar is a run of neighboring columns of one row that lanes of one request read, coloured by
    warp. A turn has the same height for all traces, divided by the rows that are read in it. If
    there is room, a bar has the warp, its first and last lane, and the row. At most `MOST_TURNS`
    turns are drawn; the picture states the total.

    Parameters
    ----------
    traces : mapping of str to DataFrame
        Title to the trace of a block (`accelviz.trace`). If different blocks handle tiles of
        columns of the same rows, trace these blocks together.
    n_cols : int
        Number of columns of X.
    array : str
        Name of the matrix, "X" or "Y".
    warps : sequence of int, optional
        Warps of the block to draw. The default is the first warps that read, as many as are needed
        for all columns with one column per lane, at least 2 and at most `MOST_WARPS`.

    Raises
    ------
    ArgumentError
        If there is no trace, or `n_cols` is below 1.
    """
    if not traces:
        raise ArgumentError("traces", "no trace", "one or more, by title")
    default_count = min(max(2, -(-n_cols // WARP_SIZE)), MOST_WARPS)
    all_visits, bars = {}, {}
    for title, traced in traces.items():
        all_visits[title] = visits = lanes.column_visits(traced, n_cols, array=array)
        if warps is None:
            drawn_visits = lanes.first_warps(visits, default_count)
        else:
            drawn_visits = visits[visits["warp"].isin(list(warps))]
        bars[title] = lanes.stack_runs(lanes.column_runs(drawn_visits))
    largest = pd.concat(bars.values())[["turn", "line"]].max().fillna(0).astype(int)
    turns, lines = largest["turn"] + 1, largest["line"] + 1
    drawn = min(turns, MOST_TURNS)
    size = (10, float(np.clip(1.9 + 0.15 * drawn * lines, 3.4, 7.5)))
    panels = draw.new_panels(size, 1, len(traces), sharey=True)
    legend: dict[str, str] = {}
    for ax, (title, table) in zip(panels, bars.items(), strict=True):
        ax.set(xlim=(0, n_cols), ylim=(drawn, 0))
        step = WARP_SIZE * -(-n_cols // (8 * WARP_SIZE))
        ax.xaxis.set_major_locator(FixedLocator([*range(0, n_cols - step // 4, step), n_cols]))
        ax.yaxis.set_major_locator(MaxNLocator(8, integer=True))
        colours = _draw_bars(ax, table[table["turn"] < drawn], drawn, n_cols)
        legend |= colours
        label = [f"column of {array}"]
        if not colours:
            label.append(f"in a bar: first lane, warp and row of {array}, last lane")
        if turns > drawn:
            label.append(f"the first {drawn:,} of {turns:,} turns are shown")
        text = "\n".join(draw.wrap(line, len(traces), 9.5) for line in label)
        ax.set_xlabel(text, fontsize=9.5)
        accesses = traces[title]
        costs = requests(accesses[(accesses["array"] == array).to_numpy(bool)])
        drawn_warps = table["worker"].nunique()
        _write_titles(ax, title, costs, all_visits[title], drawn_warps, n_cols, array, len(traces))
    panels[0].set_ylabel(f"time: turns of each warp to read {array}")
    if legend:
        handles = [Patch(color=colour, label=name) for name, colour in legend.items()]
        look: Look = {"ncols": min(len(handles), 6), "fontsize": 8.5, "frameon": False}
        panels[0].figure.legend(handles=handles, loc="outside lower center", **look)
    return panels


def _draw_bars(ax: Axes, bars: pd.DataFrame, turns: int, n_cols: int) -> dict[str, str]:
    """Draw the bars; return a legend, warp name to colour, if bars have no room for text."""
    for column in range(WARP_SIZE, n_cols, WARP_SIZE):
        ax.axvline(column, color=GREY, lw=0.6, ls=":", zorder=0)
    tidy(ax)
    if not len(bars):
        draw.label_empty(ax, "nothing is read")
        return {}
    height = 1 / (int(bars["line"].max()) + 1)
    end = bars["column"] + bars["columns"]
    top = bars["turn"] + bars["line"] * height
    wide, high = (length / 72 for length in draw.size_in_points(ax))
    has_several = len(bars["block"].unique()) > 1
    blocks = "block " + bars["block"].astype(str) + " " if has_several else ""
    bars = bars.assign(
        name=blocks + "warp " + bars["warp"].astype(str),
        colour=[WARP_COLOURS[worker % len(WARP_COLOURS)] for worker in bars["worker"]],
        middle=top + height / 2,
    )
    edge: Look = {"edgecolors": "white", "linewidths": 0.5 if height * high / turns > 0.04 else 0.0}
    draw.rectangles(
        ax, bars["column"], end, top, top + height, facecolors=bars["colour"].tolist(), **edge
    )
    if height * high / turns < _TEXT_HEIGHT:
        return dict(bars.sort_values("worker")[["name", "colour"]].to_numpy())
    for bar in bars.itertuples():
        _label_bar(ax, bar, wide / n_cols * bar.columns)
    return {}


def _label_bar(ax: Axes, bar: Any, wide: float) -> None:
    """Write the warp, row and lanes into a bar of width `wide` inches, if there is room."""
    style: Look = {
        "va": "center",
        "fontsize": _BAR_FONT_SIZE,
        "color": ink(bar.colour),
        "clip_on": True,
    }
    letters = wide / _LETTER
    if letters > 8 + len(bar.name):
        pad = 0.5 * _LETTER / wide * bar.columns
        ax.text(bar.column + pad, bar.middle, str(bar.first_lane), ha="left", **style)
        if bar.lanes > 1:
            end = bar.column + bar.columns - pad
            ax.text(end, bar.middle, str(bar.last_lane), ha="right", **style)
        letters -= 6
    row, short = f"row {bar.row:,}", f"w{bar.warp}"
    texts = (f"{bar.name} reads {row}", f"{bar.name}: {row}", f"{short}: {row}", bar.name, short)
    text = next((text for text in texts if len(text) + 1 < letters), "")
    ax.text(bar.column + bar.columns / 2, bar.middle, text, ha="center", **style)


def _write_titles(
    ax: Axes,
    title: str,
    costs: pd.DataFrame,
    visits: pd.DataFrame,
    drawn_warps: int,
    n_cols: int,
    array: str,
    panels: int,
) -> None:
    """Write the columns per turn of a row and the cost of the requests above a panel."""
    if not len(costs):
        draw.write_heading(ax, title)
        add_alt(ax, f"{title}: nothing is read.")
        return
    turns, columns = lanes.turns_per_row(visits), lanes.columns_at_once(visits)
    at_once = f"all {n_cols}" if columns == n_cols else f"{columns} of {n_cols}"
    at_once += " columns of a row at once"
    cost = (
        f"a warp comes to a row of {array} {'once' if turns == 1 else f'{turns} times'}; "
        f"{len(costs):,} requests, {costs['lanes'].mean():.3g} lanes and "
        f"{costs['sectors'].mean():.3g} sectors each; {drawn_warps} of "
        f"{len(visits[['block', 'warp']].drop_duplicates())} warps that read are shown"
    )
    subtitle = draw.wrap(cost, panels, 8.5)
    # Wrapped as for size 12, because bold letters are wider.
    heading = f"{draw.wrap(title, panels, 12)}:\n{draw.wrap(at_once, panels, 12)}"
    draw.write_heading(ax, heading, pad=7 + 11.5 * (1 + subtitle.count("\n")))
    draw.write_above(ax, subtitle, 4, 8.5, va="bottom")
    add_alt(ax, f"{title}: the lanes read {at_once}; {cost}.")
