"""Pictures of docs/performance.md: ratios of all cases, their means, and the roofline."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, Normalize, TwoSlopeNorm

from accelviz import plots
from accelviz.errors import ArgumentError
from accelviz.measure.comparison import geometric_mean, labelled, latest, speedups
from accelviz.plots import style
from accelviz.plots.draw import cells
from accelviz.plots.style import ink
from benchmarks.pages.document import Picture, mean_of, paper_name
from benchmarks.pages.targets import (
    GROUPS,
    LEAST_SHARES,
    MILLION,
    OURS,
    PREPROCESSED,
    ROUND_COLUMNS,
    group_of,
    limit_shares,
    rows_at,
)

#: Colors from losses through 1 to gains; the cells contain the numbers, too.
_COLOURS = LinearSegmentedColormap.from_list("ratios", [style.VERMILLION, "#FFFFFF", style.BLUE])
#: Binary logarithms of the ratios at the ends of the color scale.
_WORST, _BEST = -1.0, 2.0
LINES = {"shuffled": style.BLUE, "natural": style.GREEN, "bundled": style.PURPLE}


def speedup_grid(ax: Axes, rows: pd.DataFrame, baseline: str, case: str) -> Axes:
    """Plot the speedup over a baseline as a grid; losses are red and bold."""
    ratios = speedups(rows, baseline, case)
    ratios = ratios.pivot_table(index="graph", columns="columns", values="speedup")
    return _grid(ax, ratios, "slower", _COLOURS, TwoSlopeNorm(0, _WORST, _BEST))


def limit_grid(ax: Axes, rows: pd.DataFrame, case: str) -> Axes:
    """Plot the share of the random-gather limit as a grid; it may exceed 1."""
    rows = latest(labelled(rows, case))
    rows = rows.assign(share=rows["gather_limit_us"] / rows["median_us"]).dropna(subset=["share"])
    ratios = rows.pivot_table(index="graph", columns="columns", values="share")
    return _grid(ax, ratios, "below it", "Blues", Normalize(-2.5, _BEST))


def _grid(ax: Axes, ratios: pd.DataFrame, below: str, colours: Any, norm: Normalize) -> Axes:
    """Plot ratios by graph and columns, sorted by mean, with a last row of means."""
    if ratios.empty:
        raise ArgumentError("table", "there is no such ratio in it", "both times of a run")
    means = pd.DataFrame([ratios.apply(mean_of)], index=["geometric mean"])
    order = ratios.apply(mean_of, axis=1).sort_values(ascending=False).index
    drawn = pd.concat([ratios.loc[order], means])
    image = cells(ax, np.log2(drawn.to_numpy(dtype=float)), colours, norm)
    for (y, x), value in np.ndenumerate(drawn.to_numpy(dtype=float)):
        if np.isnan(value):
            continue
        loss = below == "slower" and value < 1
        colour = "#8A2B00" if loss else ink(image.to_rgba(np.log2(value)))
        weight = "bold" if loss or y == len(ratios) else "normal"
        look = {"fontsize": 8, "fontweight": weight, "color": colour}
        ax.text(x, y, f"{value:.2f}", ha="center", va="center", **look)
    ax.axhline(len(ratios) - 0.5, color=style.BLACK, lw=1)
    ax.set_xticks(range(drawn.shape[1]), [str(d) for d in drawn.columns])
    ax.set_yticks(range(len(drawn)), list(drawn.index), fontsize=8)
    ax.tick_params(length=0)
    values = ratios.melt()["value"].dropna()
    smaller = f"{(values < 1).sum()} of {len(values)} {below}"
    ax.set_xlabel(f"columns   ({smaller}, lowest {values.min():.2f})", fontsize=9)
    return style.tidy(ax)


def speedup_picture(rows: pd.DataFrame) -> Picture:
    """Plot all speedups over cuSPARSE, and their means beside the limit."""
    figure = style.new_figure(figsize=(10, 8.6))
    panels = figure.subplots(2, 2, height_ratios=[15, 18])
    ratios = speedups(rows, PREPROCESSED, OURS)
    ratios = ratios.assign(group=ratios["graph"].map(group_of))
    lines = {group: _means(ratios, group, "speedup") for group in GROUPS}
    bound = _means(limit_shares(rows, PREPROCESSED), "shuffled", "launches")
    ax = panels[0, 0]
    _lines(ax, lines)
    dashed = {"color": style.ORANGE, "lw": 1.8, "label": "launch + limit, shuffled order"}
    ax.plot(range(len(bound)), bound, "--", **dashed)
    ax.axhline(1, color=style.VERMILLION, lw=1)
    ax.annotate("cuSPARSE", (0, 1), (0, 3), textcoords="offset points", color=style.VERMILLION)
    ax.set_ylim(0, 1.1 * max(bound.max(), *(line.max() for line in lines.values())))
    ax.set_ylabel("times as fast, mean over the graphs")
    ax.legend(frameon=False, fontsize=9, loc="upper right")
    mean = geometric_mean(ratios.loc[ratios["group"].isin(list(GROUPS)), "speedup"])
    _title(ax, f"{OURS} over cuSPARSE: {mean:.2f} times as fast")
    for group, ax in _panels(panels):
        speedup_grid(ax, _named(rows[rows["graph"].map(group_of) == group]), PREPROCESSED, OURS)
        mean = geometric_mean(ratios.loc[ratios["group"] == group, "speedup"])
        _title(ax, f"{_capital(GROUPS[group])}: {mean:.2f} times as fast")
    return Picture(figure, "performance-speedup", _alt(f"{OURS} over cuSPARSE", lines))


def limit_picture(rows: pd.DataFrame) -> Picture:
    """Plot all shares of the limit; for small graphs of launch plus limit."""
    figure = style.new_figure(figsize=(10, 8.4))
    panels = figure.subplots(2, 2)
    ratios = limit_shares(rows)
    large = ratios[ratios["nonzeros"] > MILLION]
    lines = {group: _means(large, group, "share") for group in ("shuffled", "natural")}
    ax = panels[0, 0]
    _lines(ax, lines)
    counts = list(lines["shuffled"].index)
    wanted = [(counts.index(d), share) for d, share in LEAST_SHARES.items() if d in counts]
    ax.plot(*zip(*wanted, strict=True), "_", color=style.BLACK, ms=18, mew=2)
    below = {"xy": wanted[-1], "xytext": (8, -14), "ha": "right", "fontsize": 9}
    ax.annotate("wanted in shuffled order", textcoords="offset points", **below)
    ax.axhline(1, color=style.ORANGE, lw=1.5)
    ax.set_ylim(bottom=0)
    ax.set_ylabel("share of the limit, mean over the graphs")
    ax.legend(frameon=False, fontsize=9, loc="lower left")
    means = [geometric_mean(large.loc[large["group"] == group, "share"]) for group in lines]
    _title(ax, f"Of the limit: {means[0]:.2f} shuffled, {means[1]:.2f} in natural order")
    for group, ax in _panels(panels):
        small = group == "bundled"
        chosen = (ratios["nonzeros"] <= MILLION) if small else (large["group"] == group)
        part = ratios[chosen] if small else large[chosen]
        grid = _named(rows[rows["graph"].isin(part["graph"])], marked=small)
        title = f"{_capital(GROUPS[group])}: {geometric_mean(part['share']):.2f} of the limit"
        if small:
            grid = grid.assign(gather_limit_us=grid["gather_limit_us"] + rows["floor_us"].min())
            title = f"Small graphs: {geometric_mean(1 / part['launches']):.2f} of launch + limit"
        limit_grid(ax, grid, OURS)
        _title(ax, title)
    name = f"Share of the random-gather limit that {OURS} reaches"
    return Picture(figure, "performance-limit", _alt(name, lines))


def roofline_picture(rows: pd.DataFrame) -> Picture:
    """Plot the large graphs in the roofline model, cuSPARSE beside ours."""
    grouped = rows["graph"].map(group_of).isin(list(GROUPS))
    large = rows[grouped & (rows["nonzeros"] > MILLION)]
    cases = {OURS: OURS, "cuSPARSE": PREPROCESSED}
    figure = plots.roofline(large, None, (16, 32, 64, 128), cases).figure
    return Picture(figure, "performance-roofline", figure.alt)


def _alt(title: str, lines: dict[str, pd.Series]) -> str:
    """Describe the curves of means."""
    means = ", ".join(
        f"{GROUPS[group]} from {line.iloc[0]:.2f} at {line.index[0]} columns to "
        f"{line.iloc[-1]:.2f} at {line.index[-1]}"
        for group, line in lines.items()
    )
    return f"{title}, means: {means}. Grids have every case."


def _panels(panels: Any) -> list[tuple[str, Axes]]:
    return [("bundled", panels[0, 1]), ("shuffled", panels[1, 0]), ("natural", panels[1, 1])]


def _means(rows: pd.DataFrame, group: str, value: str) -> pd.Series:
    return rows_at(rows, ROUND_COLUMNS, group).groupby("columns")[value].agg(geometric_mean)


def _lines(ax: Axes, lines: dict[str, pd.Series]) -> None:
    """Plot means against the column counts, evenly spaced as in the grids."""
    for group, line in lines.items():
        ax.plot(range(len(line)), line, "o-", color=LINES[group], ms=5, label=GROUPS[group])
    counts = next(iter(lines.values())).index
    ax.set_xticks(range(len(counts)), [str(d) for d in counts])
    ax.set_xlabel("columns of the features")
    style.tidy(ax)


def _named(rows: pd.DataFrame, marked: bool = False) -> pd.DataFrame:
    """Rename graphs as in the paper; with `marked`, add the order of twins."""
    names = {
        graph: paper_name(graph).replace("\\*", "*")
        + (f", {group_of(graph)}" if marked and "-twin" in graph else "")
        for graph in rows["graph"].unique()
    }
    return rows.assign(graph=rows["graph"].map(names))


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _title(ax: Axes, text: str) -> None:
    ax.set_title(text, loc="left", fontsize=10.5, fontweight="bold")
