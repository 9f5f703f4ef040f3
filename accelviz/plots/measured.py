"""Pictures of result tables: who is faster, on which graphs, at which column counts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator

from accelviz.errors import ArgumentError
from accelviz.measure.comparison import (
    RANGE_NAMES,
    RANGES,
    Cases,
    by_graph,
    labelled,
    latest,
    named,
    overall,
    speedups,
)
from accelviz.plots.drawing import Look, log_ticks, new_axes
from accelviz.plots.labels import beside, head, wrapped
from accelviz.plots.style import BLACK, GREY, GRID, VERMILLION, Page, strategy_colours, tell, tidy

#: Behind everything slower than the baseline.
_LOSS = "#FBE9E0"
_HATCH = "////"
#: Room of a mean's bar, of the room of a graph, so that numbers do not touch.
_MEAN_WIDTH = 0.27
#: Above a picture, on the left.
_ABOVE: Look = {"loc": "lower left", "bbox_to_anchor": (-0.01, 0.99), "frameon": False}
#: Column counts from few to many, in Table II's four ranges: lightness tells them apart.
_RANGE_COLOURS = ("#9AD0F5", "#3F9BDC", "#0B5FA5", "#062B4F")
#: Of a number, and of one that sums up.
_WEIGHTS: tuple[Look, Look] = ({"fontsize": 8}, {"fontsize": 9, "fontweight": "bold"})
#: Ticks of ratios, where the range is wide and where it is narrow.
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
    """Draw for each graph how many times as fast as a baseline the strategies are.

    A bar goes up from 1 where the strategy is faster, and down, into the shaded zone, where it is
    slower. Each bar is the geometric mean over the column counts. The last group is the mean over
    the graphs. The first strategy's gains order the graphs; those whose degrees are approximate are
    hatched.

    Parameters
    ----------
    table, state, ax : see `accelviz.plots`
    baseline : str
        The case whose time is divided by the others'.
    strategies : str, iterable of str, or mapping of str to str, optional
        The cases that are compared, or a mapping from names to cases; all but the baseline if not
        given. The first one's values are written at its bars, and the title states its mean.
    called : str, optional
        Name of the baseline in the picture.

    Raises
    ------
    ArgumentError
        If a case is not there, or has no time in a run of the baseline.
    """
    called = called or baseline
    found = _ratios(table, baseline, strategies, state)
    graphs, means = by_graph(found), overall(found)
    values = graphs.set_index(["strategy", "graph"])["speedup"]
    first = values[means.index[0]].sort_values(ascending=False)
    names = list(dict.fromkeys([*first.index, *graphs["graph"]]))
    labels, approximate = _labels(graphs, names)
    ax = new_axes(ax, figsize=(max(8.0, 1.8 + 0.6 * len(names)), 4.8))
    width = 0.82 / len(means)
    wide = max(width, _MEAN_WIDTH)  # each mean has its number written, of which a graph has one
    middle = len(names) + wide * len(means) / 2
    places = np.append(np.arange(len(names)), middle)
    colours = strategy_colours(means.index)
    for i, (strategy, colour) in enumerate(colours.items()):
        heights = np.append(values[strategy].reindex(names), means.loc[strategy, "speedup"])
        steps = np.append(np.full(len(names), width), wide)
        left = places + (i - (len(means) - 1) / 2) * steps
        bars = ax.bar(left, heights - 1, width, bottom=1, color=colour, zorder=2)
        for bar, name, height in zip(bars, [*names, ""], heights, strict=True):
            if name in approximate:
                bar.set(hatch=_HATCH, edgecolor="white", linewidth=0)
            if np.isfinite(height) and (i == 0 or not name):
                _write_value(ax, bar.get_x() + width / 2, height, bold=not name)
    _ratio_axis(ax, "y", pd.concat([graphs["speedup"], means["speedup"]]))
    ax.axvline(len(names) - 0.3, color=GREY, lw=0.8)
    ax.set_xticks(places, [*labels, "mean of\nall graphs"], rotation=40, ha="right", fontsize=9)
    ax.get_xticklabels()[-1].set_fontweight("bold")
    ax.tick_params(axis="x", length=0)
    ax.set(
        xlim=(-0.6, middle + max(0.6, wide * len(means) / 2 + 0.2)),
        ylabel=f"times as fast as {called}",
    )
    handles = [Patch(color=colour, label=name) for name, colour in colours.items()]
    if approximate:
        note = "* degrees approximate"
        handles.append(Patch(facecolor=GREY, hatch=_HATCH, edgecolor="white", lw=0, label=note))
    ax.legend(handles=handles, ncols=len(handles), fontsize=9, **_ABOVE)
    title = _verdict(means, called)
    head(ax, title, 12, pad=24)
    tell(ax, f"Bars of speedups over {called} for {len(names)} graphs. {title}.")
    return tidy(ax)


def time_against_columns(
    table: pd.DataFrame,
    graphs: Sequence[str] | None = None,
    strategies: Cases | None = None,
    *,
    state: str = "warm",
    log: bool = False,
) -> Page:
    """Draw time against the column count, a panel for each graph and a line for each strategy.

    Lines are medians, the bands around them quartiles. Of several runs the latest counts.

    Parameters
    ----------
    table, state : see `accelviz.plots`
    graphs : sequence of str, optional
        Names in the table; all of it if not given.
    strategies : str, iterable of str, or mapping of str to str, optional
        Cases, or names for them; all if not given.
    log : bool
        Logarithmic times. Linear ones begin at 0.

    Raises
    ------
    ArgumentError
        If a case is not there, or one of the graphs has no time.
    """
    rows = latest(labelled(table[table["state"] == state], strategies))
    shown = list(dict.fromkeys(rows["graph"])) if graphs is None else list(graphs)
    missing = set(shown) - set(rows["graph"])
    if missing or not shown:
        there = ", ".join(dict.fromkeys(rows["graph"]))
        raise ArgumentError("graphs", f"no {state} times of {sorted(missing)}", there)
    names = list(named(table, strategies))
    across = min(4, len(shown))
    down = -(-len(shown) // across)
    alt = (
        f"Time of {', '.join(names)} against the columns of the features, "
        f"{rows['columns'].min()} to {rows['columns'].max()}, "
        f"{'a panel for each of' if len(shown) > 1 else 'on'} {', '.join(map(_short, shown))}."
    )
    size = (max(3.1 * across, 5.0) + 0.5, 2.45 * down + 0.7)
    page = Page(alt=alt, figsize=size, layout="constrained", dpi=110)
    panels = page.subplots(down, across, squeeze=False, sharex=True)
    for ax, graph in zip(panels.flat, shown, strict=False):
        _lines(ax, rows[rows["graph"] == graph], names, log)
    for ax in panels.flat[len(shown) :]:
        ax.set_axis_off()
    for ax in panels[-1]:
        ax.set_xlabel("columns of the features", fontsize=9)
    handles = [
        Line2D([], [], color=colour, lw=2.2, label=name)
        for name, colour in strategy_colours(names).items()
    ]
    title = f"Time of one product, {state} cache: lower is faster"
    look: Look = {"title_fontproperties": {"weight": "bold", "size": 12}, "frameon": False}
    place: Look = {"loc": "outside upper center", "ncols": len(names)}
    page.legend(handles=handles, title=title, **place, **look)
    return page


def speedup_ranges(
    table: pd.DataFrame,
    baseline: str,
    strategy: str,
    *,
    state: str = "warm",
    called: tuple[str, str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw how much a strategy gains on each graph, a dot for each column count.

    The side of losses is shaded. A dot's lightness says in which of Table II's ranges its column
    count lies; a bar is a graph's geometric mean, and the last line has the mean of all graphs.

    Parameters
    ----------
    table, state, ax : see `accelviz.plots`
    baseline, strategy : str
        Two cases.
    called : tuple of two str, optional
        Names of baseline and strategy in the picture.

    Raises
    ------
    ArgumentError
        If a case is not there, or has no time in a run of the baseline.
    """
    other, own = called or (baseline, strategy)
    found = _ratios(table, baseline, {own: strategy}, state)
    graphs, means = by_graph(found).sort_values("speedup", ascending=False), overall(found)
    labels, approximate = _labels(graphs, graphs["graph"])
    ax = new_axes(ax, figsize=(8.2, 2.4 + 0.27 * len(graphs)))
    jitter = (-0.24, -0.08, 0.08, 0.24)  # the ranges one under the other, few columns on top
    for y, name in enumerate(graphs["graph"]):
        part = found[found["graph"] == name]
        for (low, high), colour, shift in zip(RANGES, _RANGE_COLOURS, jitter, strict=True):
            inside = part.loc[(part["columns"] > low) & (part["columns"] <= high), "speedup"]
            ax.plot(inside, np.full(len(inside), y + shift), "o", ms=3.6, color=colour, alpha=0.8)
    last = len(graphs) + 0.5
    for y, mean in enumerate(graphs["speedup"]):
        _mean_mark(ax, mean, y, bold=False)
    _mean_mark(ax, means["speedup"].iloc[0], last, bold=True)
    ax.axhline(last - 0.75, color=GREY, lw=0.8)
    ax.set_yticks([*range(len(graphs)), last], [*labels, "mean of all graphs"], fontsize=9)
    ax.get_yticklabels()[-1].set_fontweight("bold")
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(last + 0.6, -1.5)
    _ratio_axis(ax, "x", found["speedup"])
    ax.set_xlabel(f"times as fast as {other}" + "\n* degrees approximate" * bool(approximate))
    handles = [
        Line2D([], [], marker="o", ls="", ms=5, color=colour, label=name)
        for colour, name in zip(_RANGE_COLOURS, RANGE_NAMES, strict=True)
    ]
    handles.append(Line2D([], [], marker="|", ls="", ms=11, mew=2.5, color=BLACK, label="mean"))
    title: Look = {"title": "columns of the features", "title_fontsize": 9, "alignment": "left"}
    room: Look = {"columnspacing": 1.2, "handletextpad": 0.2}
    ax.legend(handles=handles, ncols=len(handles), **title, **room, fontsize=9, **_ABOVE)
    said = _verdict(means, other)
    head(ax, wrapped(said, 1.45, 12), 12, pad=42)
    tell(ax, f"Speedups over {other} of {len(graphs)} graphs by column count. {said}.")
    return tidy(ax)


def _ratios(table: pd.DataFrame, baseline: str, cases: Cases | None, state: str) -> pd.DataFrame:
    found = speedups(table[table["state"] == state], baseline, cases)
    if found.empty:
        raise ArgumentError("table", f"no {state} time beside one of {baseline!r}", "one run")
    return found


def _verdict(means: pd.DataFrame, baseline: str) -> str:
    """Say what the first strategy's mean is, and on how many graphs it loses."""
    name, mean = means.index[0], means.iloc[0]
    losses = f"slower on {mean['losses'] or 'none'} of {mean['graphs']} graphs"
    return f"{name}: {mean['speedup']:.2f} times as fast as {baseline}, {losses}"


def _labels(graphs: pd.DataFrame, names: Iterable[str]) -> tuple[list[str], set[str]]:
    """Return what graphs are called, starred where approximate, and which of them are."""
    approximate = set(graphs.loc[graphs["graph_kind"] == "approximate twin", "graph"])
    return [_short(name) + "*" * (name in approximate) for name in names], approximate


def _write_value(ax: Axes, x: float, value: float, *, bold: bool) -> None:
    place: Look = {"va": "bottom", "color": BLACK}
    if value < 1:
        place = {"va": "top", "color": VERMILLION}
    place |= {"ha": "center", "rotation": 90, "zorder": 4}
    shift = (0, 2 if value >= 1 else -2)
    beside(ax, f"{value:.2f}", (x, value), shift, **place, **_WEIGHTS[bold])


def _ratio_axis(ax: Axes, which: Literal["x", "y"], values: pd.Series) -> None:
    """Make an axis of ratios: logarithmic, a line at 1, the side of losses shaded and named."""
    low, high = min(float(values.min()), 1.0), max(float(values.max()), 1.0)
    span = max(high / low, 1.2)
    # Room for what is written at the ends, and for a side that nothing lies on.
    low, high = min(low / span**0.15, span**-0.2), max(high * span**0.15, span**0.2)
    axis = ax.yaxis if which == "y" else ax.xaxis
    ax.set(**{f"{which}scale": "log", f"{which}lim": (low, high)})
    wide = high / low > 2.5
    ticks = [tick for tick in (_TICKS if wide else _FINE_TICKS) if low <= tick <= high]
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_major_formatter("{x:g}x")
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())
    ax.grid(axis=which, color=GRID, lw=0.8, zorder=1)
    ax.set_axisbelow(True)
    (ax.axhspan if which == "y" else ax.axvspan)(low, 1, color=_LOSS, zorder=0, lw=0)
    (ax.axhline if which == "y" else ax.axvline)(1, color=BLACK, lw=1.2, zorder=3)
    for text, colour, middle in (("slower", VERMILLION, low**0.5), ("faster", GREY, high**0.5)):
        if which == "y":
            place: Look = {"va": "center", "rotation": 270, "transform": ax.get_yaxis_transform()}
            ax.text(1.008, middle, text, color=colour, **place)
        else:
            place = {"va": "top", "ha": "center", "transform": ax.get_xaxis_transform()}
            ax.text(middle, 0.985, text, color=colour, **place)


def _mean_mark(ax: Axes, value: float, y: float, *, bold: bool) -> None:
    colour = BLACK if value >= 1 else VERMILLION
    ax.plot([value, value], [y - 0.38, y + 0.38], color=colour, lw=3 if bold else 2.2, zorder=4)
    look: Look = {"va": "center", "color": colour, "transform": ax.get_yaxis_transform()}
    ax.text(1.01, y, f"{value:.2f}", **look, **_WEIGHTS[bold] | {"fontsize": 9})


def _lines(ax: Axes, rows: pd.DataFrame, names: Sequence[str], log: bool) -> None:
    unit, factor = ("ms", 1e-3) if rows["median_us"].max() >= 2000 else ("µs", 1.0)
    for i, (name, colour) in enumerate(strategy_colours(names).items()):
        line = rows[rows["strategy"] == name].sort_values("columns")
        low, high = line["quartile1_us"] * factor, line["quartile3_us"] * factor
        ax.fill_between(line["columns"], low, high, color=colour, alpha=0.25, lw=0)
        width = 1.4 if i else 2.4
        ax.plot(line["columns"], line["median_us"] * factor, color=colour, lw=width, zorder=3 - i)
    (label,), _ = _labels(rows, rows["graph"].iloc[:1])
    head(ax, label, 10)
    nonzeros = f"{rows['nonzeros'].iloc[0] / 1e6:.2g} M nonzeros"
    ax.set_title(nonzeros, loc="right", fontsize=8, color=GREY)
    ax.set_ylabel(unit, fontsize=9)
    ax.set_xticks([16, 32, 64, 96, 128])
    if log:
        ax.set_yscale("log")
        log_ticks(ax.yaxis, "{x:g}")
    else:
        ax.set_ylim(bottom=0)
    ax.grid(axis="x", color=GRID, lw=0.8)
    tidy(ax)


def _short(name: str) -> str:
    """Return a graph's name without its being a twin, which the caption says."""
    return re.sub(r"(-approximate)?-twin", "", name)
