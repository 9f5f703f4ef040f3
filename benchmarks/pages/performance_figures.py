"""The pictures of docs/performance.md: every single ratio, its means, and the roofline."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
from grids import limit_grid, speedup_grid
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from paper import plain
from targets import GROUPS, MILLION, OWN, PREPROCESSED, ROUND, SHARES, at, group_of, own

from accelviz import plots
from accelviz.measure.comparison import geometric_mean, speedups
from accelviz.plots import style

COLOURS = {"shuffled": style.BLUE, "natural": style.GREEN, "bundled": style.PURPLE}
_BOUND, _COLUMNS = "launch + limit, shuffled order", "columns of the features"
Drawn = tuple[Figure, str]


def speedup_figure(table: pd.DataFrame) -> Drawn:
    """Draw every speedup over cuSPARSE, and the means beside what the limit allows."""
    figure = style.new_figure(figsize=(10, 8.6))
    panels = figure.subplots(2, 2, height_ratios=[15, 18])
    found = speedups(table, PREPROCESSED, OWN)
    found = found.assign(group=[group_of(graph) for graph in found["graph"]])
    allowed = own(table, PREPROCESSED)
    lines = {group: _means(found, group, "speedup") for group in GROUPS}
    bound = _means(allowed, "shuffled", "launches")
    ax = panels[0, 0]
    _lines(ax, lines)
    ax.plot(range(len(bound)), bound, "--", color=style.ORANGE, lw=1.8, label=_BOUND)
    ax.axhline(1, color=style.VERMILLION, lw=1)
    ax.annotate("cuSPARSE", (0, 1), (0, 3), textcoords="offset points", color=style.VERMILLION)
    ax.set_ylim(0, 1.1 * max(bound.max(), *(line.max() for line in lines.values())))
    ax.set_ylabel("times as fast, mean over the graphs")
    ax.legend(frameon=False, fontsize=9, loc="upper right")
    mean = geometric_mean(found.loc[found["group"].isin(list(GROUPS)), "speedup"])
    _title(ax, f"{OWN} over cuSPARSE: {mean:.2f} times as fast")
    for group, ax in _panels(panels):
        rows = _named(table, lambda graph, group=group: group_of(graph) == group)
        speedup_grid(rows, PREPROCESSED, OWN, ax=ax)
        values = at(found, found["columns"], group)["speedup"]
        _finish(ax, f"{_capital(GROUPS[group])}: {geometric_mean(values):.2f} times as fast")
    return figure, _alt(f"{OWN} over cuSPARSE", panels, lines)


def limit_figure(table: pd.DataFrame) -> Drawn:
    """Draw every share of the limit; of small graphs, of launch and limit together."""
    figure = style.new_figure(figsize=(10, 8.4))
    panels = figure.subplots(2, 2)
    rows = own(table)
    large = rows[rows["nonzeros"] > MILLION]
    lines = {group: _means(large, group, "share") for group in ("shuffled", "natural")}
    ax = panels[0, 0]
    _lines(ax, lines)
    places = list(lines["shuffled"].index)
    wanted = [(places.index(d), share) for d, share in SHARES.items() if d in places]
    ax.plot(*zip(*wanted, strict=True), "_", color=style.BLACK, ms=18, mew=2)
    below = {"xy": wanted[-1], "xytext": (8, -14), "ha": "right", "fontsize": 9}
    ax.annotate("wanted in shuffled order", textcoords="offset points", **below)
    ax.axhline(1, color=style.ORANGE, lw=1.5)
    ax.set_ylim(bottom=0)
    ax.set_ylabel("share of the limit, mean over the graphs")
    ax.legend(frameon=False, fontsize=9, loc="lower left")
    every = [geometric_mean(large.loc[large["group"] == group, "share"]) for group in lines]
    _title(ax, f"Of the limit: {every[0]:.2f} shuffled, {every[1]:.2f} in natural order")
    for group, ax in _panels(panels):
        small = group == "bundled"
        kept = set(rows.loc[(rows["nonzeros"] <= MILLION) == small, "graph"])
        if not small:
            kept &= set(rows.loc[rows["group"] == group, "graph"])
        part = _named(table[table["graph"].isin(kept)], lambda graph: True, small)
        if small:
            part = part.assign(gather_limit_us=part["gather_limit_us"] + table["floor_us"].min())
        limit_grid(part, OWN, ax=ax)
        values = rows[rows["graph"].isin(kept)]
        title = f"{_capital(GROUPS[group])}: {geometric_mean(values['share']):.2f} of the limit"
        if small:
            title = f"Small graphs: {geometric_mean(1 / values['launches']):.2f} of launch + limit"
        _finish(ax, title)
    return figure, _alt(f"Share of the random-gather limit that {OWN} reaches", panels, lines)


def roofline_figure(table: pd.DataFrame) -> Drawn:
    """Draw the large graphs below the copy bandwidth, cuSPARSE beside ours."""
    kept = table["graph"].map(group_of).isin(list(GROUPS)) & (table["nonzeros"] > MILLION)
    rows = table[kept]
    cases = {OWN: OWN, "cuSPARSE": PREPROCESSED}
    ax = plots.roofline(rows, None, (16, 32, 64, 128), cases)
    return ax.figure, ax.figure.alt


def _alt(what: str, panels: object, lines: dict[str, pd.Series]) -> str:
    """Tell the means against the columns, and each grid's title and extremes."""
    means = ", ".join(
        f"{GROUPS[group]} from {line.iloc[0]:.2f} at {line.index[0]} columns to "
        f"{line.iloc[-1]:.2f} at {line.index[-1]}"
        for group, line in lines.items()
    )
    grids = "; ".join(
        f"{ax.get_title(loc='left')} {ax.get_xlabel().split('   ')[1]}" for _, ax in _panels(panels)
    )
    return f"{what}, means: {means}. Every case in grids: {grids}."


def _panels(panels: object) -> list[tuple[str, Axes]]:
    return [("bundled", panels[0, 1]), ("shuffled", panels[1, 0]), ("natural", panels[1, 1])]


def _means(rows: pd.DataFrame, group: str, value: str) -> pd.Series:
    part = at(rows, ROUND, group)
    return part.groupby("columns")[value].agg(geometric_mean)


def _lines(ax: Axes, lines: dict[str, pd.Series]) -> None:
    """Draw means against the column counts, evenly spaced as in the grids."""
    for group, line in lines.items():
        ax.plot(range(len(line)), line, "o-", color=COLOURS[group], ms=5, label=GROUPS[group])
    counts = next(iter(lines.values())).index
    ax.set_xticks(range(len(counts)), [str(d) for d in counts])
    ax.set_xlabel(_COLUMNS)
    style.tidy(ax)


def _named(
    table: pd.DataFrame, wanted: Callable[[str], bool], marked: bool = False
) -> pd.DataFrame:
    """Keep some graphs, with the names that the paper has; mark the order where both are there."""
    rows = table[[wanted(graph) for graph in table["graph"]]]
    names = {
        graph: plain(graph).replace("\\*", "*")
        + (f", {group_of(graph)}" if marked and "-twin" in graph else "")
        for graph in rows["graph"].unique()
    }
    return rows.assign(graph=rows["graph"].map(names))


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _finish(ax: Axes, title: str) -> None:
    """Give a grid its title, and a shorter line below."""
    _title(ax, title)
    ax.set_xlabel(ax.get_xlabel().replace(_COLUMNS, "columns"), fontsize=9)


def _title(ax: Axes, text: str) -> None:
    ax.set_title(text, loc="left", fontsize=10.5, fontweight="bold")
