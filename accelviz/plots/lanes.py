"""Which lane reads which column when: what Accel-GCN's combined warp changes (Figure 4a, b)."""

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
    count = min(max(2, -(-n_cols // WARP_SIZE)), MOST_WARPS)
    visited, bars = {}, {}
    for title, traced in traces.items():
        visited[title] = visits = lanes.column_visits(traced, n_cols, array=array)
        chosen = visits[visits["warp"].isin(list(warps or ()))]
        chosen = lanes.first_warps(visits, count) if warps is None else chosen
        bars[title] = lanes.stack_runs(lanes.column_runs(chosen))
    turns, lines = (
        max(1, *(int(table[name].max()) + 1 for table in bars.values() if len(table)), 1)
        for name in ("turn", "line")
    )
    drawn = min(turns, MOST_TURNS)
    size = (10, float(np.clip(1.9 + 0.15 * drawn * lines, 3.4, 7.5)))
    panels = draw.new_panels(size, 1, len(traces), sharey=True)
    unnamed: dict[str, str] = {}
    for ax, (title, table) in zip(panels, bars.items(), strict=True):
        ax.set(xlim=(0, n_cols), ylim=(drawn, 0))
        step = WARP_SIZE * -(-n_cols // (8 * WARP_SIZE))
        ax.xaxis.set_major_locator(FixedLocator([*range(0, n_cols - step // 4, step), n_cols]))
        ax.yaxis.set_major_locator(MaxNLocator(8, integer=True))
        colours = _bars(ax, table[table["turn"] < drawn], drawn, n_cols)
        unnamed |= colours
        label = [f"column of {array}"]
        if not colours:
            label.append(f"in a bar: first lane, warp and row of {array}, last lane")
        if turns > drawn:
            label.append(f"the first {drawn:,} of {turns:,} turns are shown")
        text = "\n".join(draw.wrap(line, len(traces), 9.5) for line in label)
        ax.set_xlabel(text, fontsize=9.5)
        accesses = traces[title]
        costs = requests(accesses[(accesses["array"] == array).to_numpy(bool)])
        shown_warps = table["worker"].nunique()
        _headings(ax, title, costs, visited[title], shown_warps, n_cols, array, len(traces))
    panels[0].set_ylabel(f"time: turns of each warp to read {array}")
    if unnamed:
        handles = [Patch(color=colour, label=name) for name, colour in unnamed.items()]
        look: Look = {"ncols": min(len(handles), 6), "fontsize": 8.5, "frameon": False}
        panels[0].figure.legend(handles=handles, loc="outside lower center", **look)
    return panels


def _bars(ax: Axes, bars: pd.DataFrame, turns: int, n_cols: int) -> dict[str, str]:
    """Draw the bars; return the warps' names with their colours where they fit in no bar."""
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
    several = len(bars["block"].unique()) > 1
    blocks = "block " + bars["block"].astype(str) + " " if several else ""
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
        _write(ax, bar, wide / n_cols * bar.columns)
    return {}


def _write(ax: Axes, bar: Any, wide: float) -> None:
    """Write into a bar its warp, row and lanes, as far as there is room."""
    style: Look = {"va": "center", "fontsize": _BAR_TEXT, "color": ink(bar.colour), "clip_on": True}
    room = wide / _LETTER
    if room > 8 + len(bar.name):
        pad = 0.5 * _LETTER / wide * bar.columns
        ax.text(bar.column + pad, bar.middle, str(bar.first_lane), ha="left", **style)
        if bar.lanes > 1:
            end = bar.column + bar.columns - pad
            ax.text(end, bar.middle, str(bar.last_lane), ha="right", **style)
        room -= 6
    row, short = f"row {bar.row:,}", f"w{bar.warp}"
    texts = (f"{bar.name} reads {row}", f"{bar.name}: {row}", f"{short}: {row}", bar.name, short)
    text = next((text for text in texts if len(text) + 1 < room), "")
    ax.text(bar.column + bar.columns / 2, bar.middle, text, ha="center", **style)


def _headings(
    ax: Axes,
    title: str,
    costs: pd.DataFrame,
    visits: pd.DataFrame,
    shown_warps: int,
    n_cols: int,
    array: str,
    panels: int,
) -> None:
    """Say above a picture how much of a row is read at once, and what the requests cost."""
    if not len(costs):
        draw.write_heading(ax, title)
        add_alt(ax, f"{title}: nothing is read.")
        return
    again, columns = lanes.turns_per_row(visits), lanes.columns_at_once(visits)
    at_once = f"all {n_cols}" if columns == n_cols else f"{columns} of {n_cols}"
    at_once += " columns of a row at once"
    cost = (
        f"a warp comes to a row of {array} {'once' if again == 1 else f'{again} times'}; "
        f"{len(costs):,} requests, {costs['lanes'].mean():.3g} lanes and "
        f"{costs['sectors'].mean():.3g} sectors each; {shown_warps} of "
        f"{len(visits[['block', 'warp']].drop_duplicates())} warps that read are shown"
    )
    below = draw.wrap(cost, panels, 8.5)
    # Bold letters are wider.
    heading = f"{draw.wrap(title, panels, 12)}:\n{draw.wrap(at_once, panels, 12)}"
    draw.write_heading(ax, heading, pad=7 + 11.5 * (1 + below.count("\n")))
    draw.write_above(ax, below, 4, 8.5, va="bottom")
    add_alt(ax, f"{title}: the lanes read {at_once}; {cost}.")
