"""The graph card as a picture."""

from __future__ import annotations

import textwrap

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, LogNorm
from matplotlib.figure import Figure

from accelviz.analysis.pattern import PatternMap, pattern_map
from accelviz.card import GraphCard
from accelviz.graph import Graph
from accelviz.ordering import DegreeHistogram
from accelviz.plots.degrees import degree_histogram
from accelviz.plots.drawing import Look, cells, colour_bar, count_ticks, new_axes, nothing
from accelviz.plots.labels import counted, head
from accelviz.plots.style import GREY, PLAIN, VERMILLION, Page, tell

#: Where text begins and wraps; heights of a fact's first line and of each further one.
_LABEL_WIDTH, _TEXT_WIDTH = 0.31, 44
_FIRST_LINE, _NEXT_LINE = 0.082, 0.042
#: Counts from 1; the palest yellow would not show on white.
_COUNTS = ListedColormap(colormaps["viridis_r"](np.linspace(0.12, 1, 256)))


def graph_card(graph: Graph) -> Figure:
    """Draw a card of a graph: facts, degrees, and where its nonzeros lie.

    Parameters
    ----------
    graph : Graph

    Returns
    -------
    Figure
        Not known to pyplot, so it need not be closed. A graph that is made up says so in colour.
    """
    card = graph.describe()
    said = "; ".join(f"{label} {text}" for label, text in card.lines()[1:])
    figure = Page(
        alt=f"Card of {card.name}: {said}", figsize=(13, 4.4), layout="constrained", dpi=110
    )
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
        Counts are coloured on a logarithmic scale; an empty cell stays white.
    ax : Axes, optional
        Where to draw; a new figure, with a title, if not given.

    Returns
    -------
    Axes
    """
    n_rows, n_cols = pattern.shape
    nonzeros = counted(int(pattern.counts.sum()), "nonzero")
    size = f"{counted(n_rows, 'row')} and {counted(n_cols, 'column')}"
    if ax is None:
        ax = new_axes(None, figsize=(5, 4.4))
        head(ax, f"{nonzeros} in {size}")
    tell(ax, f"Where the {nonzeros} of a matrix of {size} lie, counted in cells.")
    if pattern.counts.any():
        largest = max(2, int(pattern.counts.max()))
        image = cells(
            ax,
            np.ma.masked_equal(pattern.counts, 0),
            _COUNTS,
            LogNorm(1, largest),
            extent=(0, n_cols, n_rows, 0),
            aspect="auto" if n_rows != n_cols else "equal",
        )
        lines, columns = pattern.counts.shape
        cell = f"{n_rows / lines:,.0f} x {n_cols / columns:,.0f}"
        bar = colour_bar(ax, image, f"nonzeros in a cell of {cell}", shrink=0.8, format=PLAIN)
        bar.ax.minorticks_off()
    else:
        nothing(ax, "no nonzero")
    ax.set_xlabel("column")
    ax.set_ylabel("row")
    count_ticks(ax.xaxis, ax.yaxis, most=4)
    return ax


def _facts(ax: Axes, card: GraphCard) -> None:
    ax.set_axis_off()
    made_up = card.kind not in ("real", "given")
    y = 1.0
    for label, text in card.lines():
        wrapped = textwrap.wrap(text, _TEXT_WIDTH, break_on_hyphens=False) or [""]
        first = label == "graph"
        style: Look = {"va": "top", "transform": ax.transAxes, "linespacing": 1.15}
        ax.text(0, y, label, fontsize=9, color=GREY, **style)
        style |= {"fontsize": 11, "fontweight": "bold"} if first else {"fontsize": 9}
        colour = VERMILLION if label == "kind" and made_up else "black"
        ax.text(_LABEL_WIDTH, y, "\n".join(wrapped), color=colour, **style)
        y -= _FIRST_LINE + _NEXT_LINE * (len(wrapped) - 1)
