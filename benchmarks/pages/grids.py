"""Every single ratio of a result table: graphs by column counts, losses in red."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, Normalize, TwoSlopeNorm

from accelviz.errors import ArgumentError
from accelviz.measure.comparison import CELL, geometric_mean, labelled, latest, speedups
from accelviz.plots.drawing import Look, cells, new_axes
from accelviz.plots.labels import head, wrapped
from accelviz.plots.style import BLACK, BLUE, VERMILLION, ink, tell, tidy

#: From losses through "the same" to gains; the numbers say it too.
_COLOURS = LinearSegmentedColormap.from_list("ratios", [VERMILLION, "#FFFFFF", BLUE])
#: Ratios that have the full colour, as binary logarithms.
_WORST, _BEST = -1.0, 2.0


def speedup_grid(
    table: pd.DataFrame,
    baseline: str | None = None,
    strategy: str | None = None,
    *,
    state: str = "warm",
    called: tuple[str, str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw how many times as fast as a baseline a strategy is, for each graph and column count.

    Parameters
    ----------
    table : DataFrame
        Results of one machine, with the columns of `records.COLUMNS`.
    baseline, strategy : str, optional
        Whose time is divided by whose; see `measure.comparison` for how to name a case. If not
        given: cuSPARSE, and `lane_groups` or else the first other strategy of the table. These
        count with the fastest setting of each graph and column count.
    state : {"warm", "cold"}
        Which times.
    called : tuple of two str, optional
        Names of baseline and strategy in the picture.
    ax : Axes, optional
        Where to draw; a new figure if not given.

    Returns
    -------
    Axes
        A row for each graph, the largest gain on top, and one for the geometric mean; a column for
        each column count. What is slower than the baseline is red and bold.

    Raises
    ------
    ArgumentError
        If there is nothing to divide.
    """
    table = table[table["state"] == state]
    defaults = []
    if baseline is None:
        defaults.append(baseline := "cusparse")
    if strategy is None:
        others = [name for name in dict.fromkeys(table["strategy"]) if name != baseline.split()[0]]
        strategy = "lane_groups" if "lane_groups" in others or not others else others[0]
        defaults.append(strategy)
    # Of strategies with several settings, the fastest of each cell.
    ordered = table[table["strategy"].isin(defaults)].sort_values("median_us")
    slower = ordered.index[ordered.duplicated([*CELL, "strategy"])]
    found = speedups(table.drop(index=slower), baseline, strategy)
    versus, own = called or (baseline, strategy)
    ratios = found.pivot_table(index="graph", columns="columns", values="speedup")
    norm = TwoSlopeNorm(0, _WORST, _BEST)
    return _drawn(ax, ratios, f"{own} over {versus}", " times as fast", "slower", _COLOURS, norm)


def limit_grid(
    table: pd.DataFrame,
    strategy: str = "lane_groups",
    *,
    state: str = "warm",
    called: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw which share of the random-gather limit a strategy reaches, for each case.

    Parameters
    ----------
    table : DataFrame
        Results of one machine, with the columns of `records.COLUMNS`.
    strategy : str
        A case, as `measure.comparison` names them.
    state : {"warm", "cold"}
        Which times.
    called : str, optional
        Its name in the picture.
    ax : Axes, optional
        Where to draw; a new figure if not given.

    Returns
    -------
    Axes
        As `speedup_grid` gives it. A share above 1 means faster than gathers in random order.

    Raises
    ------
    ArgumentError
        If no time has a limit beside it.
    """
    rows = latest(labelled(table[table["state"] == state], strategy))
    rows = rows.assign(share=rows["gather_limit_us"] / rows["median_us"]).dropna(subset=["share"])
    shares = rows.pivot_table(index="graph", columns="columns", values="share")
    title = f"Share of the random-gather limit that {called or strategy} reaches"
    return _drawn(ax, shares, title, "", "below it", "Blues", Normalize(-2.5, _BEST))


def _drawn(
    ax: Axes | None,
    ratios: pd.DataFrame,
    title: str,
    unit: str,
    below: str,
    colours: Any,
    norm: Normalize,
) -> Axes:
    """Draw ratios, coloured by their binary logarithm, with the means and a title that sums up."""
    if ratios.empty:
        raise ArgumentError("table", "there is no such ratio in it", "both times of a run")
    means = pd.DataFrame([ratios.apply(_mean)], index=["geometric mean"])
    order = ratios.apply(_mean, axis=1).sort_values(ascending=False).index
    shown = pd.concat([ratios.loc[order], means])
    every = ratios.melt()["value"].dropna()
    size = (max(7.0, 2.6 + 0.62 * shown.shape[1]), 1.4 + 0.27 * len(shown))
    ax = new_axes(ax, figsize=size)
    logs = np.log2(shown.to_numpy(dtype=float))
    image = cells(ax, logs, colours, norm)
    for (y, x), value in np.ndenumerate(shown.to_numpy(dtype=float)):
        if np.isnan(value):
            continue
        loss = unit and value < 1
        colour = "#8A2B00" if loss else ink(image.to_rgba(np.log2(value)))
        weight = "bold" if loss or y == len(ratios) else "normal"
        style: Look = {"fontsize": 8, "fontweight": weight, "color": colour}
        ax.text(x, y, f"{value:.2f}", ha="center", va="center", **style)
    ax.axhline(len(ratios) - 0.5, color=BLACK, lw=1)
    ax.set_xticks(range(shown.shape[1]), [str(d) for d in shown.columns])
    ax.set_yticks(range(len(shown)), list(shown.index), fontsize=8)
    ax.tick_params(length=0)
    mean = f"{_mean(every):.2f}{unit}"
    head(ax, wrapped(f"{title}: {mean}", 2, 12))
    smaller = f"{(every < 1).sum()} of {len(every)} {below}"
    ax.set_xlabel(f"columns of the features   ({smaller}, lowest {every.min():.2f})")
    tell(
        ax,
        f"{title} for {len(ratios)} graphs and {shown.shape[1]} column counts: {mean} in the "
        f"geometric mean, {every.min():.2f} to {every.max():.2f}; {smaller}.",
    )
    return tidy(ax)


def _mean(values: pd.Series) -> float:
    return geometric_mean(values.dropna())
