"""Pictures of speedups: times of a baseline over times of strategies, by graph.

The input is the result table of `benchmark`; `measure.comparison` computes the speedups.
"""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, NullLocator

from accelviz.errors import ArgumentError
from accelviz.measure import comparison
from accelviz.measure.comparison import RANGE_NAMES, Cases
from accelviz.plots import draw
from accelviz.plots.style import BLACK, GREY, GRID, VERMILLION, Look, strategy_colours

_SLOWER_REGION_COLOUR = "#FBE9E0"
_HATCH = "////"
#: Colours of Table II's four ranges of column counts, from light (few) to dark (many).
_RANGE_COLOURS = ("#9AD0F5", "#3F9BDC", "#0B5FA5", "#062B4F")
_BOLD: Look = {"fontsize": 9, "fontweight": "bold"}
#: Ticks of ratios on a wide axis, and on an axis that spans at most a factor of 2.5.
_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.33, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10, 20, 50, 100)
_FINE_TICKS = (0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.75, 2, 2.5)


def speedup_bars(
    table: pd.DataFrame,
    baseline: str = "cusparse",
    strategies: Cases | None = None,
    *,
    state: str = "warm",
    called: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the speedups of strategies over a baseline as bars, one group per graph.

    A bar is the geometric mean over the column counts. It goes up from 1 if the strategy is faster,
    and down, into the shaded region, if it is slower. The last group is the mean over the graphs,
    whose values are in the legend. Graphs are ordered by the first strategy's speedup. Bars of
    graphs with approximate degrees are hatched.

    Parameters
    ----------
    table, strategies, state : see `accelviz.plots`
        The default of `strategies` is all but the baseline. Bars of the first are labelled.
    baseline : str
        Case whose time is divided by the times of the others.
    called : str, optional
        Name of the baseline in the picture.

    Raises
    ------
    ArgumentError
        If the table lacks the baseline or a strategy, or no run has times of both.
    """
    called = called or baseline
    ratios = _ratios(table, baseline, strategies, state)
    graphs, means = comparison.by_graph(ratios), comparison.overall(ratios)
    values = graphs.pivot_table("speedup", "graph", "strategy")[means.index]
    values = values.sort_values(means.index[0], ascending=False, kind="stable")
    approximate = approximate_graphs(graphs)
    labels = [graph_label(name, approximate) for name in values.index]
    n = len(values)
    values.loc["mean"] = means["speedup"]
    ax = draw.new_axes(ax, figsize=(max(8.0, 1.8 + 0.6 * n), 4.8))
    colours = strategy_colours(means.index)
    look: Look = {"width": 0.82, "legend": False, "xlabel": "", "zorder": 2}
    # Bars begin at a ratio of 1, so their lengths are ratios minus 1.
    (values - 1).plot.bar(ax=ax, bottom=1, color=colours, **look)
    containers: Any = ax.containers
    for bars in containers:
        for bar, name in zip(bars, labels, strict=False):
            if name.endswith("*"):
                bar.set(hatch=_HATCH, edgecolor="white", linewidth=0)
    heights = values[means.index[0]]
    texts = ["" if np.isnan(height) else f"{height:.2f}" for height in heights]
    numbers = ax.bar_label(containers[0], texts, padding=2, rotation=90, fontsize=8, zorder=4)
    numbers[-1].set(**_BOLD)
    for number, height in zip(numbers, heights, strict=True):
        number.set_color(VERMILLION if height < 1 else BLACK)
    _ratio_axis(ax, "y", pd.concat([graphs["speedup"], means["speedup"]]))
    ax.axvline(n - 0.5, color=GREY, lw=0.8)
    names = [*labels, "mean of\nall graphs"]
    ax.set_xticks(range(n + 1), names, rotation=40, ha="right", fontsize=9)
    ax.get_xticklabels()[-1].set_fontweight("bold")
    ax.tick_params(axis="x", length=0)
    ax.set(xlim=(-0.6, n + 0.6), ylabel=f"times as fast as {called}")
    handles = [
        Patch(color=colour, label=f"{name}: {means.loc[name, 'speedup']:.2f} in the mean")
        for name, colour in colours.items()
    ]
    if approximate:
        note = "* degrees approximate"
        handles.append(Patch(facecolor=GREY, hatch=_HATCH, edgecolor="white", lw=0, label=note))
    columns = min(len(handles), 4)
    ax.legend(handles=handles, ncols=columns, fontsize=9, **draw.LEGEND_ABOVE)
    title = _verdict(means, called)
    draw.write_heading(ax, title, 12, pad=8 + 16 * -(-len(handles) // columns))
    return draw.finish(ax, f"Bars of speedups over {called} for {n} graphs. {title}.")


def speedup_ranges(
    table: pd.DataFrame,
    baseline: str,
    strategy: str,
    *,
    state: str = "warm",
    called: tuple[str, str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the speedups of one strategy over a baseline, one dot per graph and column count.

    Each graph is a line of dots with a bar at its geometric mean; the last line is the mean of all
    graphs. The lightness of a dot is the range of Table II (Accel-GCN) of its column count. The
    region slower than the baseline is shaded.

    Parameters
    ----------
    table, state : see `accelviz.plots`
    baseline, strategy : str
        Two cases.
    called : tuple of two str, optional
        Names of baseline and strategy in the picture.

    Raises
    ------
    ArgumentError
        If the table lacks the baseline or a strategy, or no run has times of both.
    """
    baseline_name, strategy_name = called or (baseline, strategy)
    ratios = _ratios(table, baseline, {strategy_name: strategy}, state)
    graphs = comparison.by_graph(ratios).sort_values("speedup", ascending=False)
    means = comparison.overall(ratios)
    approximate = approximate_graphs(graphs)
    labels = [graph_label(name, approximate) for name in graphs["graph"]]
    ax = draw.new_axes(ax, figsize=(8.2, 2.4 + 0.27 * len(graphs)))
    y = ratios["graph"].map({name: y for y, name in enumerate(graphs["graph"])})
    shifts = (-0.24, -0.08, 0.08, 0.24)  # separates the ranges, with few columns on top
    handles = []
    ranges = comparison.column_ranges(ratios["columns"])
    for name, colour, shift in zip(RANGE_NAMES, _RANGE_COLOURS, shifts, strict=True):
        in_range = ranges == name
        look: Look = {"marker": "o", "ls": "", "color": colour}
        ax.plot(ratios["speedup"][in_range], y[in_range] + shift, ms=3.6, alpha=0.8, **look)
        handles.append(Line2D([], [], ms=5, label=name, **look))
    handles.append(Line2D([], [], marker="|", ls="", ms=11, mew=2.5, color=BLACK, label="mean"))
    last = len(graphs) + 0.5
    for line, mean in [*enumerate(graphs["speedup"]), (last, means["speedup"].iloc[0])]:
        colour, bold = BLACK if mean >= 1 else VERMILLION, line == last
        ax.vlines(mean, line - 0.38, line + 0.38, color=colour, lw=3 if bold else 2.2, zorder=4)
        look = {"va": "center", "color": colour, "transform": ax.get_yaxis_transform()}
        ax.text(1.01, line, f"{mean:.2f}", **look, **(_BOLD if bold else {"fontsize": 9}))
    ax.axhline(last - 0.75, color=GREY, lw=0.8)
    ax.set_yticks([*range(len(graphs)), last], [*labels, "mean of all graphs"], fontsize=9)
    ax.get_yticklabels()[-1].set_fontweight("bold")
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(last + 0.6, -1.5)
    _ratio_axis(ax, "x", ratios["speedup"])
    ax.set_xlabel(
        f"times as fast as {baseline_name}" + "\n* degrees approximate" * bool(approximate)
    )
    look = {"title": "columns of the features", "title_fontsize": 9, "alignment": "left"}
    look |= {"columnspacing": 1.2, "handletextpad": 0.2, "fontsize": 9}
    ax.legend(handles=handles, ncols=len(handles), **look, **draw.LEGEND_ABOVE)
    title = _verdict(means, baseline_name)
    draw.write_heading(ax, draw.wrap(title, 1.7, 12), 12, pad=42)
    alt = f"Speedups over {baseline_name} of {len(graphs)} graphs by column count. {title}."
    return draw.finish(ax, alt)


def _ratios(table: pd.DataFrame, baseline: str, cases: Cases | None, state: str) -> pd.DataFrame:
    ratios = comparison.speedups(table[table["state"] == state], baseline, cases)
    if ratios.empty:
        problem = f"no run has {state} times of {baseline!r} and of another case"
        raise ArgumentError("table", problem, "one run of both")
    return ratios


def _verdict(means: pd.DataFrame, baseline: str) -> str:
    name, mean = means.index[0], means.iloc[0]
    losses = f"slower on {mean['losses'] or 'none'} of {mean['graphs']} graphs"
    return f"{name}: {mean['speedup']:.2f} times as fast as {baseline}, {losses}"


def _ratio_axis(ax: Axes, which: Literal["x", "y"], values: pd.Series) -> None:
    """Set up a logarithmic axis of ratios with a line at 1 and a shaded region below 1."""
    low, high = min(float(values.min()), 1.0), max(float(values.max()), 1.0)
    span = max(high / low, 1.2)
    # Margins for the labels at the ends, and for a side without data.
    low, high = min(low / span**0.15, span**-0.2), max(high * span**0.15, span**0.2)
    vertical = which == "y"
    axis = ax.yaxis if vertical else ax.xaxis
    ax.set(**{f"{which}scale": "log", f"{which}lim": (low, high)})
    ticks = _TICKS if high / low > 2.5 else _FINE_TICKS
    axis.set_major_locator(FixedLocator([tick for tick in ticks if low <= tick <= high]))
    axis.set_major_formatter("{x:g}x")
    axis.set_minor_locator(NullLocator())
    ax.grid(axis=which, color=GRID, lw=0.8, zorder=1)
    ax.set_axisbelow(True)
    (ax.axhspan if vertical else ax.axvspan)(low, 1, color=_SLOWER_REGION_COLOUR, zorder=0, lw=0)
    (ax.axhline if vertical else ax.axvline)(1, color=BLACK, lw=1.2, zorder=3)
    look: Look = {"va": "top", "ha": "center", "transform": ax.get_xaxis_transform()}
    if vertical:
        look = {"va": "center", "rotation": 270, "transform": ax.get_yaxis_transform()}
    for text, colour, middle in (("slower", VERMILLION, low**0.5), ("faster", GREY, high**0.5)):
        x, y = (1.008, middle) if vertical else (middle, 0.985)
        ax.text(x, y, text, color=colour, **look)


def approximate_graphs(table: pd.DataFrame) -> set[str]:
    """Return the names of the graphs in a table whose degrees are approximate."""
    return set(table.loc[table["graph_kind"] == "approximate twin", "graph"])


def graph_label(name: str, approximate: Container[str]) -> str:
    """Return a graph's name without "-twin", starred if it is in `approximate`."""
    return re.sub(r"(-approximate)?-twin", "", name) + "*" * (name in approximate)
