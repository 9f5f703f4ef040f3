"""The graph card as a picture."""

from __future__ import annotations

import textwrap

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from accelviz.analysis.pattern import PatternMap, pattern_map
from accelviz.card import GraphCard
from accelviz.graph import Graph
from accelviz.ordering import DegreeHistogram
from accelviz.plots.degrees import degree_histogram
from accelviz.plots.style import GREY, PLAIN, VERMILLION, Page, new_axes

#: Where text begins and wraps; heights of a fact's first line and of each further one.
_LABEL_WIDTH, _TEXT_WIDTH = 0.31, 44
_FIRST_LINE, _NEXT_LINE = 0.082, 0.042
#: Counts from 1; the palest yellow would not show on white.
_COUNTS = ListedColormap(colormaps["viridis_r"](np.linspace(0.12, 1, 256)))


def graph_card(graph: Graph) -> Figure:
    """Draw what one wants to know of a graph: facts, degrees, and where its nonzeros lie.

    Parameters
    ----------
    graph : Graph

    Returns
    -------
    Figure
        Not known to pyplot, so it need not be closed. A graph that is made up says so in colour.
    """
    card = graph.describe()
    alt = f"Card of {card.name}: " + "; ".join(
        f"{label} {text}" for label, text in card.lines()[1:]
    )
    figure = Page(alt=alt, figsize=(13, 4.4), layout="constrained", dpi=110)
    facts, degrees, pattern = figure.subplots(1, 3, width_ratios=[1.25, 1, 1])
    _facts(facts, card)
    histogram = DegreeHistogram.of(graph.row_pointers)
    degree_histogram(histogram.degrees, histogram.rows, ax=degrees)
    degrees.set_title("degrees", loc="left", fontsize=10)
    nonzero_pattern(pattern_map(graph), ax=pattern)
    pattern.set_title("nonzeros", loc="left", fontsize=10)
    return figure


def nonzero_pattern(pattern: PatternMap, *, ax: Axes | None = None) -> Axes:
    """Draw where the nonzeros of a matrix lie, as counts in cells.

    Parameters
    ----------
    pattern : PatternMap
        An empty cell stays white; the others are on a logarithmic scale.
    ax : Axes, optional
        Where to draw; a new figure if not given.

    Returns
    -------
    Axes
    """
    ax = new_axes(ax, figsize=(5, 4.4))
    n_rows, n_cols = pattern.shape
    if pattern.counts.any():
        largest = max(2, int(pattern.counts.max()))
        image = ax.imshow(
            np.ma.masked_equal(pattern.counts, 0),
            cmap=_COUNTS,
            norm=LogNorm(1, largest),
            interpolation="nearest",
            extent=(0, n_cols, n_rows, 0),
            aspect="auto" if n_rows != n_cols else "equal",
        )
        lines, columns = pattern.counts.shape
        cell = f"{n_rows / lines:,.0f} x {n_cols / columns:,.0f}"
        bar = ax.figure.colorbar(image, ax=ax, shrink=0.8, format=PLAIN)
        bar.ax.minorticks_off()
        bar.set_label(f"nonzeros in a cell of {cell}", fontsize=9)
    else:
        ax.text(0.5, 0.5, "no nonzero", ha="center", transform=ax.transAxes, color=GREY)
    ax.set_xlabel("column")
    ax.set_ylabel("row")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter("{x:,.0f}")
        axis.set_major_locator(MaxNLocator(4, integer=True))
    return ax


def _facts(ax: Axes, card: GraphCard) -> None:
    ax.set_axis_off()
    made_up = card.kind not in ("real", "given")
    y = 1.0
    for label, text in card.lines():
        wrapped = textwrap.wrap(text, _TEXT_WIDTH, break_on_hyphens=False) or [""]
        first = label == "graph"
        ax.text(0, y, label, va="top", fontsize=9, color=GREY, transform=ax.transAxes)
        ax.text(
            _LABEL_WIDTH,
            y,
            "\n".join(wrapped),
            va="top",
            fontsize=11 if first else 9,
            fontweight="bold" if first else "normal",
            color=VERMILLION if label == "kind" and made_up else "black",
            transform=ax.transAxes,
            linespacing=1.15,
        )
        y -= _FIRST_LINE + _NEXT_LINE * (len(wrapped) - 1)
