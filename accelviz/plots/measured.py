"""Pictures of result tables: who is faster, where, by which rung, and at what accuracy."""

from __future__ import annotations

import re
from collections.abc import Sequence
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
from accelviz.measure.ladder import RIVAL
from accelviz.plots import draw, style
from accelviz.plots.style import BLACK, GREY, GRID, VERMILLION, Look, strategy_colours, tidy

#: Behind everything slower than the baseline.
_LOSS = "#FBE9E0"
_HATCH = "////"
#: Above a picture, on the left.
_ABOVE: Look = {"loc": "lower left", "bbox_to_anchor": (-0.01, 0.99), "frameon": False}
#: Column counts from few to many, in Table II's four ranges: lightness tells them apart.
_RANGE_COLOURS = ("#9AD0F5", "#3F9BDC", "#0B5FA5", "#062B4F")
#: Of a number that sums up.
_BOLD: Look = {"fontsize": 9, "fontweight": "bold"}
#: Ticks of ratios, where the range is wide and where it is narrow.
_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.33, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10, 20, 50, 100)
_FINE_TICKS = (0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.75, 2, 2.5)
#: Arithmetics, as `dtype` has them, and their markers.
_ARITHMETICS = {"float32": "o", "3xtf32": "D", "tf32": "^", "float16": "v"}


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
    the graphs, whose numbers are in the legend. The first strategy's gains order the graphs; those
    whose degrees are approximate are hatched.

    Parameters
    ----------
    table, strategies, state : see `accelviz.plots`
        All strategies but the baseline if not given. The first one's values are written at its
        bars.
    baseline : str
        The case whose time is divided by the others'.
    called : str, optional
        Name of the baseline in the picture.

    Raises
    ------
    ArgumentError
        If a case is not there, or has no time in a run of the baseline.
    """
    called = called or baseline
    ratios = _ratios(table, baseline, strategies, state)
    graphs, means = comparison.by_graph(ratios), comparison.overall(ratios)
    values = graphs.pivot_table("speedup", "graph", "strategy")[means.index]
    values = values.sort_values(means.index[0], ascending=False, kind="stable")
    labels, hatched = _labels(graphs, values.index)
    n = len(values)
    values.loc["mean"] = means["speedup"]
    ax = draw.new_axes(ax, figsize=(max(8.0, 1.8 + 0.6 * n), 4.8))
    colours = strategy_colours(means.index)
    look: Look = {"width": 0.82, "legend": False, "xlabel": "", "zorder": 2}
    (values - 1).plot.bar(ax=ax, bottom=1, color=colours, **look)
    containers: Any = ax.containers
    for bars in containers:
        for bar, approximate in zip(bars, hatched, strict=False):
            if approximate:
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
    if any(hatched):
        note = "* degrees approximate"
        handles.append(Patch(facecolor=GREY, hatch=_HATCH, edgecolor="white", lw=0, label=note))
    columns = min(len(handles), 4)
    ax.legend(handles=handles, ncols=columns, fontsize=9, **_ABOVE)
    title = _verdict(means, called)
    draw.head(ax, title, 12, pad=8 + 16 * -(-len(handles) // columns))
    return draw.finish(ax, f"Bars of speedups over {called} for {n} graphs. {title}.")


def time_against_columns(
    table: pd.DataFrame,
    graphs: Sequence[str] | None = None,
    strategies: Cases | None = None,
    *,
    state: str = "warm",
    log: bool = False,
) -> style.Page:
    """Draw time against the column count, a panel for each graph and a line for each strategy.

    Lines are medians, the bands around them quartiles. Of several runs the latest counts.

    Parameters
    ----------
    table, strategies, state : see `accelviz.plots`
    graphs : sequence of str, optional
        Names in the table; all of it if not given.
    log : bool
        Logarithmic times. Linear ones begin at 0.

    Raises
    ------
    ArgumentError
        If a case is not there, or one of the graphs has no time.
    """
    rows = comparison.latest(comparison.labelled(table[table["state"] == state], strategies))
    measured = list(dict.fromkeys(rows["graph"]))
    graphs = measured if graphs is None else list(graphs)
    missing = set(graphs) - set(measured)
    if missing or not graphs:
        raise ArgumentError("graphs", f"no {state} times of {sorted(missing)}", ", ".join(measured))
    names = list(comparison.named(table, strategies))
    across = min(4, len(graphs))
    down = -(-len(graphs) // across)
    size = (max(3.1 * across, 5.0) + 0.5, 2.45 * down + 0.7)
    page = style.new_figure(figsize=size, dpi=110)
    panels = page.subplots(down, across, squeeze=False, sharex=True)
    for ax, graph in zip(panels.flat, graphs, strict=False):
        _lines(ax, rows[rows["graph"] == graph], names, log)
    for ax in panels.flat[len(graphs) :]:
        ax.set_axis_off()
    for ax in panels[-1]:
        ax.set_xlabel("columns of the features", fontsize=9)
    handles = [
        Line2D([], [], color=colour, lw=2.2, label=name)
        for name, colour in strategy_colours(names).items()
    ]
    title = f"Time of one product, {state} cache: lower is faster"
    look: Look = {"title_fontproperties": {"weight": "bold", "size": 12}, "frameon": False}
    page.legend(handles=handles, title=title, loc="outside upper center", ncols=len(names), **look)
    page.alt = (
        f"Time of {', '.join(names)} against the columns of the features, "
        f"{rows['columns'].min()} to {rows['columns'].max()}, "
        f"{'a panel for each of' if len(graphs) > 1 else 'on'} {', '.join(map(_short, graphs))}."
    )
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
    table, state : see `accelviz.plots`
    baseline, strategy : str
        Two cases.
    called : tuple of two str, optional
        Names of baseline and strategy in the picture.

    Raises
    ------
    ArgumentError
        If a case is not there, or has no time in a run of the baseline.
    """
    other, ours = called or (baseline, strategy)
    ratios = _ratios(table, baseline, {ours: strategy}, state)
    graphs = comparison.by_graph(ratios).sort_values("speedup", ascending=False)
    means = comparison.overall(ratios)
    labels, approximate = _labels(graphs, graphs["graph"])
    ax = draw.new_axes(ax, figsize=(8.2, 2.4 + 0.27 * len(graphs)))
    line = ratios["graph"].map({name: y for y, name in enumerate(graphs["graph"])})
    jitter = (-0.24, -0.08, 0.08, 0.24)  # the ranges one under the other, few columns on top
    handles = []
    ranges = comparison.column_ranges(ratios["columns"])
    for name, colour, shift in zip(RANGE_NAMES, _RANGE_COLOURS, jitter, strict=True):
        inside = ranges == name
        look: Look = {"marker": "o", "ls": "", "color": colour}
        ax.plot(ratios["speedup"][inside], line[inside] + shift, ms=3.6, alpha=0.8, **look)
        handles.append(Line2D([], [], ms=5, label=name, **look))
    handles.append(Line2D([], [], marker="|", ls="", ms=11, mew=2.5, color=BLACK, label="mean"))
    last = len(graphs) + 0.5
    for y, mean in [*enumerate(graphs["speedup"]), (last, means["speedup"].iloc[0])]:
        colour, bold = BLACK if mean >= 1 else VERMILLION, y == last
        ax.vlines(mean, y - 0.38, y + 0.38, color=colour, lw=3 if bold else 2.2, zorder=4)
        look = {"va": "center", "color": colour, "transform": ax.get_yaxis_transform()}
        ax.text(1.01, y, f"{mean:.2f}", **look, **(_BOLD if bold else {"fontsize": 9}))
    ax.axhline(last - 0.75, color=GREY, lw=0.8)
    ax.set_yticks([*range(len(graphs)), last], [*labels, "mean of all graphs"], fontsize=9)
    ax.get_yticklabels()[-1].set_fontweight("bold")
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(last + 0.6, -1.5)
    _ratio_axis(ax, "x", ratios["speedup"])
    ax.set_xlabel(f"times as fast as {other}" + "\n* degrees approximate" * any(approximate))
    look = {"title": "columns of the features", "title_fontsize": 9, "alignment": "left"}
    look |= {"columnspacing": 1.2, "handletextpad": 0.2, "fontsize": 9}
    ax.legend(handles=handles, ncols=len(handles), **look, **_ABOVE)
    title = _verdict(means, other)
    draw.head(ax, draw.wrapped(title, 1.45, 12), 12, pad=42)
    alt = f"Speedups over {other} of {len(graphs)} graphs by column count. {title}."
    return draw.finish(ax, alt)


def ladder_times(times: pd.DataFrame, shares: pd.DataFrame, graph: str) -> list[Axes]:
    """Draw the rungs from bottom to top against their times, with the limit and the rival.

    Parameters
    ----------
    times, shares : DataFrame
        Of `measure.ladder.climbed`.
    graph : str
        One of theirs.
    """
    times, shares = times[graph], shares[graph]
    rungs = [name for name in times.index if name != RIVAL]
    panels = draw.new_panels((10, 4.6), 1, times.shape[1], sharey=True)
    level = np.arange(len(rungs))
    colour = strategy_colours(["lane_groups"])["lane_groups"]
    text: Look = {"fontsize": 9, "path_effects": style.HALO}
    for ax, d in zip(panels, times, strict=True):
        taken, share, vendor = times.loc[rungs, d], shares.loc[rungs, d], times.loc[RIVAL, d]
        limit = share.iloc[0] * taken.iloc[0]
        ax.axvline(limit, color=style.ORANGE, lw=3)
        ax.axvline(vendor, color=GREY, ls="--")
        ax.plot(taken, level, "o-", color=colour)
        for y, x, reached in zip(level, taken, share, strict=True):
            draw.beside(ax, f"{reached:.0%}", (x, y), (8, 1), va="center", **text)
        ax.set(xscale="log", xlabel="time, us")
        ax.set(xlim=(min(limit, taken.min()) / 2, taken.max() * 2.2), ylim=(-0.5, len(rungs)))
        ax.xaxis.set_major_formatter(style.PLAIN)
        ax.set_yticks(level, rungs)
        side, top = "right" if limit < vendor else "left", len(rungs) - 0.5
        draw.beside(ax, "limit", (limit, top), (0, 0), ha=side, **text)
        draw.beside(ax, RIVAL, (vendor, top), (4, 0), ha="left", color=GREY, **text)
        title = f"{d} columns: {vendor / taken.iloc[-1]:.1f} times as fast as {RIVAL}"
        draw.head(ax, title)
        first = f"{taken.iloc[0] / taken.iloc[-1]:.0f} times as {rungs[0]}"
        reached = f"{share.iloc[-1]:.0%} of the random-gather limit"
        draw.finish(ax, f"{graph}, {title}, {first}, {reached}.")
    return panels


def error_against_speed(
    table: pd.DataFrame, *, over: str = "lane_groups", ax: Axes | None = None
) -> Axes:
    """Draw the error of each strategy and arithmetic against its speed.

    Right is faster, below is more exact. A point is the geometric mean of the ratio of times over
    the cases of the table, and the largest error among them.

    Parameters
    ----------
    table : DataFrame
        With the columns graph, order, operation, columns, strategy, dtype, median_us and error, as
        benchmarks/measure/tensor_modes.py writes them. Of a strategy that has several rows for a
        case, the fastest counts.
    over : str
        The strategy in float32 whose time stands for 1.

    Raises
    ------
    ArgumentError
        If that strategy is not in the table.
    """
    case = [name for name in ("graph", "order", "operation", "columns") if name in table]
    table = table.fillna({"order": ""})  # as a file has graphs in the order they come in
    best = table.loc[table.groupby([*case, "strategy", "dtype"])["median_us"].idxmin()]
    ours = best[(best["strategy"] == over) & (best["dtype"] == "float32")]
    if ours.empty:
        raise ArgumentError("over", f"{over!r} in float32 is not in the table", "one that is")
    both = best.merge(ours[[*case, "median_us"]], on=case, suffixes=("", "_over"))
    both["speed"] = both["median_us_over"] / both["median_us"]
    how = {"speed": comparison.geometric_mean, "error": "max"}
    means = both.groupby(["strategy", "dtype"], as_index=False).agg(how)
    ax = draw.new_axes(ax, figsize=(7.5, 4.2))
    colours = strategy_colours(means["strategy"])
    spots, texts = [], []
    for strategy, dtype, speed, error in means.itertuples(index=False):
        colour = colours[strategy]
        ax.plot(speed, error, color=colour, marker=_ARITHMETICS[dtype], markersize=8)
        spots.append((speed, error, f"{strategy}, {dtype}", colour))
        texts.append(f"{strategy}, {dtype}: {speed:.2f}, {error:.1e}")
    ax.axvline(1, color=GREY, linewidth=0.8)
    ax.set(xscale="log", yscale="log", xlabel=f"times as fast as {over} in float32")
    ax.set_ylabel("largest error over the sum of |a x|")
    ticks = [t for t in (0.05, 0.1, 0.2, 0.5, 1, 2, 4) if t / 2 <= means["speed"].max()]
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.set_xticks([], minor=True)
    ax.set(xlim=(means["speed"].min() / 1.3, means["speed"].max() * 1.3))
    ax.set(ylim=(means["error"].min() / 3, means["error"].max() * 3))
    draw.label_points(ax, spots)
    title = f"Error against speed, {draw.counted(len(ours), 'case')}"
    return draw.finish(ax, f"Speed and largest error: {'; '.join(texts)}.", title)


def _ratios(table: pd.DataFrame, baseline: str, cases: Cases | None, state: str) -> pd.DataFrame:
    ratios = comparison.speedups(table[table["state"] == state], baseline, cases)
    if ratios.empty:
        raise ArgumentError("table", f"no {state} time beside one of {baseline!r}", "one run")
    return ratios


def _verdict(means: pd.DataFrame, baseline: str) -> str:
    """Say what the first strategy's mean is, and on how many graphs it loses."""
    name, mean = means.index[0], means.iloc[0]
    losses = f"slower on {mean['losses'] or 'none'} of {mean['graphs']} graphs"
    return f"{name}: {mean['speedup']:.2f} times as fast as {baseline}, {losses}"


def _labels(graphs: pd.DataFrame, names: Any) -> tuple[list[str], list[bool]]:
    """Return what graphs are called, starred where approximate, and whether each of them is."""
    approximate = set(graphs.loc[graphs["graph_kind"] == "approximate twin", "graph"])
    starred = [name in approximate for name in names]
    return [_short(name) + "*" * star for name, star in zip(names, starred, strict=True)], starred


def _ratio_axis(ax: Axes, which: Literal["x", "y"], values: pd.Series) -> None:
    """Make an axis of ratios: logarithmic, a line at 1, the side of losses shaded and named."""
    low, high = min(float(values.min()), 1.0), max(float(values.max()), 1.0)
    span = max(high / low, 1.2)
    # Room for what is written at the ends, and for a side that nothing lies on.
    low, high = min(low / span**0.15, span**-0.2), max(high * span**0.15, span**0.2)
    up = which == "y"
    axis = ax.yaxis if up else ax.xaxis
    ax.set(**{f"{which}scale": "log", f"{which}lim": (low, high)})
    ticks = _TICKS if high / low > 2.5 else _FINE_TICKS
    axis.set_major_locator(FixedLocator([tick for tick in ticks if low <= tick <= high]))
    axis.set_major_formatter("{x:g}x")
    axis.set_minor_locator(NullLocator())
    ax.grid(axis=which, color=GRID, lw=0.8, zorder=1)
    ax.set_axisbelow(True)
    (ax.axhspan if up else ax.axvspan)(low, 1, color=_LOSS, zorder=0, lw=0)
    (ax.axhline if up else ax.axvline)(1, color=BLACK, lw=1.2, zorder=3)
    look: Look = {"va": "top", "ha": "center", "transform": ax.get_xaxis_transform()}
    if up:
        look = {"va": "center", "rotation": 270, "transform": ax.get_yaxis_transform()}
    for text, colour, middle in (("slower", VERMILLION, low**0.5), ("faster", GREY, high**0.5)):
        x, y = (1.008, middle) if up else (middle, 0.985)
        ax.text(x, y, text, color=colour, **look)


def _lines(ax: Axes, rows: pd.DataFrame, names: Sequence[str], log: bool) -> None:
    unit, factor = ("ms", 1e-3) if rows["median_us"].max() >= 2000 else ("µs", 1.0)
    for i, (name, colour) in enumerate(strategy_colours(names).items()):
        line = rows[rows["strategy"] == name].sort_values("columns").set_index("columns")
        low, middle, high = (
            line[q] * factor for q in ("quartile1_us", "median_us", "quartile3_us")
        )
        ax.fill_between(line.index, low, high, color=colour, alpha=0.25, lw=0)
        ax.plot(line.index, middle, color=colour, lw=1.4 if i else 2.4, zorder=3 - i)
    draw.head(ax, _labels(rows, rows["graph"].iloc[:1])[0][0], 10)
    nonzeros = f"{rows['nonzeros'].iloc[0] / 1e6:.2g} M nonzeros"
    ax.set_title(nonzeros, loc="right", fontsize=8, color=GREY)
    ax.set_ylabel(unit, fontsize=9)
    ax.set_xticks([16, 32, 64, 96, 128])
    if log:
        ax.set_yscale("log")
        draw.log_ticks(ax.yaxis, "{x:g}")
    else:
        ax.set_ylim(bottom=0)
    ax.grid(axis="x", color=GRID, lw=0.8)
    tidy(ax)


def _short(name: str) -> str:
    """Return a graph's name without its being a twin, which the caption says."""
    return re.sub(r"(-approximate)?-twin", "", name)
