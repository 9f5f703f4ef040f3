"""Pictures of result tables: time against columns, time by optimization, error against speed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from accelviz.errors import ArgumentError
from accelviz.measure import comparison
from accelviz.measure.comparison import Cases
from accelviz.measure.ladder import RIVAL
from accelviz.plots import draw, style
from accelviz.plots.speedups import approximate_graphs, graph_label
from accelviz.plots.style import GREY, GRID, Look, strategy_colours, tidy

#: Marker of each arithmetic, the `dtype` of the table.
_MARKERS = {"float32": "o", "3xtf32": "D", "tf32": "^", "float16": "v"}


def time_against_columns(
    table: pd.DataFrame,
    graphs: Sequence[str] | None = None,
    strategies: Cases | None = None,
    *,
    state: str = "warm",
    log: bool = False,
) -> style.Page:
    """Draw time against the column count, one panel per graph and one line per strategy.

    Lines are medians, bands are quartiles. Of several runs, the latest is drawn.

    Parameters
    ----------
    table, strategies, state : see `accelviz.plots`
    graphs : sequence of str, optional
        Graph names; the default is all graphs of the table.
    log : bool
        Whether the time axis is logarithmic. A linear axis begins at 0.

    Raises
    ------
    ArgumentError
        If the table has no such case, or no time of one of the graphs.
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
        _draw_times(ax, rows[rows["graph"] == graph], names, log)
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
    labels = ", ".join(graph_label(graph, ()) for graph in graphs)
    page.alt = (
        f"Time of {', '.join(names)} against the columns of the features, "
        f"{rows['columns'].min()} to {rows['columns'].max()}, "
        f"{'a panel for each of' if len(graphs) > 1 else 'on'} {labels}."
    )
    return page


def ladder_times(times: pd.DataFrame, shares: pd.DataFrame, graph: str) -> list[Axes]:
    """Draw the times of the optimization ladder's rungs, from bottom to top, one panel per width.

    Vertical lines are the random-gather limit and the time of cuSPARSE. Each rung is labelled with
    its share of the limit.

    Parameters
    ----------
    times, shares : DataFrame
        From `measure.ladder.climbed`.
    graph : str
        Name of a graph in both tables.
    """
    times, shares = times[graph], shares[graph]
    rungs = [name for name in times.index if name != RIVAL]
    panels = draw.new_panels((10, 4.6), 1, times.shape[1], sharey=True)
    level = np.arange(len(rungs))
    colour = strategy_colours(["lane_groups"])["lane_groups"]
    text: Look = {"fontsize": 9, "path_effects": style.HALO}
    for ax, d in zip(panels, times, strict=True):
        rung_times, rival_time = times.loc[rungs, d], times.loc[RIVAL, d]
        share = shares.loc[rungs, d]
        limit = share.iloc[0] * rung_times.iloc[0]
        ax.axvline(limit, color=style.ORANGE, lw=3)
        ax.axvline(rival_time, color=GREY, ls="--")
        ax.plot(rung_times, level, "o-", color=colour)
        for y, x, rung_share in zip(level, rung_times, share, strict=True):
            draw.annotate(ax, f"{rung_share:.0%}", (x, y), (8, 1), va="center", **text)
        ax.set(xscale="log", xlabel="time, us")
        ax.set(
            xlim=(min(limit, rung_times.min()) / 2, rung_times.max() * 2.2), ylim=(-0.5, len(rungs))
        )
        ax.xaxis.set_major_formatter(style.PLAIN)
        ax.set_yticks(level, rungs)
        side, top = "right" if limit < rival_time else "left", len(rungs) - 0.5
        draw.annotate(ax, "limit", (limit, top), (0, 0), ha=side, **text)
        draw.annotate(ax, RIVAL, (rival_time, top), (4, 0), ha="left", color=GREY, **text)
        title = f"{d} columns: {rival_time / rung_times.iloc[-1]:.1f} times as fast as {RIVAL}"
        draw.write_heading(ax, title)
        first = f"{rung_times.iloc[0] / rung_times.iloc[-1]:.0f} times as {rungs[0]}"
        reached = f"{share.iloc[-1]:.0%} of the random-gather limit"
        draw.finish(ax, f"{graph}, {title}, {first}, {reached}.")
    return panels


def error_against_speed(
    table: pd.DataFrame, *, over: str = "lane_groups", ax: Axes | None = None
) -> Axes:
    """Draw the error of each strategy and arithmetic against its speed.

    A point's x is the geometric mean of its speedups over the cases of the table; its y is its
    largest error among them.

    Parameters
    ----------
    table : DataFrame
        Columns graph, order (optional), operation, columns, strategy, dtype, median_us and error,
        as written by benchmarks/measure/tensor_modes.py. If a strategy has several records of a
        case, the fastest is used.
    over : str
        Strategy whose time in float32 is the baseline.

    Raises
    ------
    ArgumentError
        If that strategy is not in the table.
    """
    case = [name for name in ("graph", "order", "operation", "columns") if name in table]
    table = table.fillna({"order": ""})  # missing for graphs in the order of their file
    fastest = table.loc[table.groupby([*case, "strategy", "dtype"])["median_us"].idxmin()]
    baseline = fastest[(fastest["strategy"] == over) & (fastest["dtype"] == "float32")]
    if baseline.empty:
        raise ArgumentError("over", f"{over!r} in float32 is not in the table", "one that is")
    pairs = fastest.merge(baseline[[*case, "median_us"]], on=case, suffixes=("", "_over"))
    pairs["speed"] = pairs["median_us_over"] / pairs["median_us"]
    aggregation = {"speed": comparison.geometric_mean, "error": "max"}
    means = pairs.groupby(["strategy", "dtype"], as_index=False).agg(aggregation)
    ax = draw.new_axes(ax, figsize=(7.5, 4.2))
    colours = strategy_colours(means["strategy"])
    spots, texts = [], []
    for strategy, dtype, speed, error in means.itertuples(index=False):
        colour = colours[strategy]
        ax.plot(speed, error, color=colour, marker=_MARKERS[dtype], markersize=8)
        spots.append((speed, error, f"{strategy}, {dtype}", colour))
        texts.append(f"{strategy}, {dtype}: {speed:.2f}, {error:.1e}")
    ax.axvline(1, color=GREY, linewidth=0.8)
    ax.set(xscale="log", yscale="log", xlabel=f"times as fast as {over} in float32")
    ax.set_ylabel("largest error over the sum of |a x|")
    ax.set(xlim=(means["speed"].min() / 1.3, means["speed"].max() * 1.3))
    ax.set(ylim=(means["error"].min() / 3, means["error"].max() * 3))
    draw.log_ticks(ax.xaxis, "{x:g}")
    draw.label_points(ax, spots)
    title = f"Error against speed, {draw.pluralize(len(baseline), 'case')}"
    return draw.finish(ax, f"Speed and largest error: {'; '.join(texts)}.", title)


def _draw_times(ax: Axes, rows: pd.DataFrame, names: Sequence[str], log: bool) -> None:
    unit, factor = ("ms", 1e-3) if rows["median_us"].max() >= 2000 else ("µs", 1.0)
    for i, (name, colour) in enumerate(strategy_colours(names).items()):
        line = rows[rows["strategy"] == name].sort_values("columns").set_index("columns")
        low, middle, high = (
            line[q] * factor for q in ("quartile1_us", "median_us", "quartile3_us")
        )
        ax.fill_between(line.index, low, high, color=colour, alpha=0.25, lw=0)
        ax.plot(line.index, middle, color=colour, lw=1.4 if i else 2.4, zorder=3 - i)
    draw.write_heading(ax, graph_label(rows["graph"].iloc[0], approximate_graphs(rows)), 10)
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
