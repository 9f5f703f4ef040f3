"""Every single ratio of a result table: graphs by column counts, losses in red."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap, Normalize, TwoSlopeNorm

from accelviz.errors import ArgumentError
from accelviz.measure.comparison import geometric_mean, labelled, latest, speedups
from accelviz.plots.style import BLACK, BLUE, VERMILLION, new_axes, tell, tidy

#: From losses through "the same" to gains; the numbers say it too.
_COLOURS = LinearSegmentedColormap.from_list("ratios", [VERMILLION, "#FFFFFF", BLUE])
#: Ratios that have the full colour.
_WORST, _BEST = 0.5, 4.0
#: Where white letters are easier to read than black ones.
_DARK = 2.6
_MEAN = "geometric mean"


def speedup_grid(
    table: pd.DataFrame,
    baseline: str = "cusparse",
    strategy: str = "lane_groups",
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
    baseline, strategy : str
        Whose time is divided by whose; see `analysis.comparison` for how to name a case.
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
    found = speedups(table[table["state"] == state], baseline, strategy)
    versus, own = called or (baseline, strategy)
    ratios = found.pivot_table(index="graph", columns="columns", values="speedup")
    norm = TwoSlopeNorm(0, np.log2(_WORST), np.log2(_BEST))
    grid = _Grid(f"{own} over {versus}", "times as fast", "slower", _COLOURS, norm, losses=True)
    return _drawn(ratios, grid, ax)


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
        A case, as `analysis.comparison` names them.
    state : {"warm", "cold"}
        Which times.
    called : str, optional
        Its name in the picture.
    ax : Axes, optional
        Where to draw; a new figure if not given.

    Returns
    -------
    Axes
        As `speedup_grid` gives it; above 1 is faster than columns in no order allow.

    Raises
    ------
    ArgumentError
        If no time has a limit beside it.
    """
    rows = latest(labelled(table[table["state"] == state], strategy))
    rows = rows.assign(share=rows["gather_limit_us"] / rows["median_us"]).dropna(subset=["share"])
    shares = rows.pivot_table(index="graph", columns="columns", values="share")
    title = f"Share of the random-gather limit that {called or strategy} reaches"
    grid = _Grid(title, "", "below it", "Blues", Normalize(-2.5, np.log2(_BEST)), losses=False)
    return _drawn(shares, grid, ax)


@dataclass(frozen=True)
class _Grid:
    """How ratios are told: as gains and losses, or as shares of a limit."""

    title: str
    unit: str
    below: str
    colours: Colormap | str
    norm: Normalize  # of their binary logarithm
    losses: bool


def _drawn(ratios: pd.DataFrame, grid: _Grid, ax: Axes | None) -> Axes:
    if ratios.empty:
        raise ArgumentError("table", "there is no such ratio in it", "both times of a run")
    means = pd.DataFrame([ratios.apply(_mean)], index=[_MEAN])
    order = ratios.apply(_mean, axis=1).sort_values(ascending=False).index
    shown = pd.concat([ratios.loc[order], means])
    every = ratios.to_numpy().ravel()
    overall = geometric_mean(every[~np.isnan(every)])
    ax = new_axes(ax, figsize=(2.6 + 0.62 * shown.shape[1], 1.4 + 0.27 * len(shown)))
    logs = np.log2(shown.to_numpy(dtype=float))
    ax.imshow(
        np.ma.masked_invalid(logs),
        cmap=grid.colours,
        norm=grid.norm,
        aspect="auto",
    )
    for (y, x), value in np.ndenumerate(shown.to_numpy(dtype=float)):
        if np.isnan(value):
            continue
        loss = grid.losses and value < 1
        ax.text(
            *(x, y, f"{value:.2f}"),
            ha="center",
            va="center",
            fontsize=8,
            color="#8A2B00" if loss else "white" if value >= _DARK else BLACK,
            fontweight="bold" if loss or y == len(shown) - 1 else "normal",
        )
    ax.axhline(len(ratios) - 0.5, color=BLACK, lw=1)
    ax.set_xticks(range(shown.shape[1]), [str(d) for d in shown.columns])
    ax.set_yticks(range(len(shown)), list(shown.index), fontsize=8)
    ax.tick_params(length=0)
    ax.set_title(
        f"{grid.title}: {overall:.2f} {grid.unit}".rstrip(),
        loc="left",
        fontsize=10.5,
        fontweight="bold",
    )
    smaller = int((ratios < 1).sum().sum())
    cases = int(ratios.notna().sum().sum())
    note = f"{smaller} of {cases} {grid.below}, lowest {np.nanmin(ratios.to_numpy()):.2f}"
    ax.set_xlabel(f"columns of the features   ({note})")
    tell(
        ax,
        f"{grid.title} for {len(ratios)} graphs and {shown.shape[1]} column counts: {overall:.2f} "
        f"{grid.unit} in the geometric mean, {np.nanmin(ratios.to_numpy()):.2f} to "
        f"{np.nanmax(ratios.to_numpy()):.2f}; {smaller} of {cases} {grid.below}.",
    )
    return tidy(ax)


def _mean(values: pd.Series) -> float:
    return geometric_mean(values.dropna())
