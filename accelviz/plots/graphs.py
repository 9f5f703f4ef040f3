"""Pictures of graphs: graph card, pattern of nonzeros, and locality statistics."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, LogNorm
from matplotlib.figure import Figure

from accelviz.analysis.locality import Locality
from accelviz.analysis.pattern import pattern_map
from accelviz.card import GraphCard
from accelviz.datasets import load_graph
from accelviz.graph import Graph
from accelviz.plots import draw
from accelviz.plots.degrees import degree_histogram
from accelviz.plots.style import BLACK, BLUE, GREY, ORANGE, PLAIN, VERMILLION, Look, Page, add_alt

#: x coordinate and letters per line of a fact; heights of its first and of each further line.
_LABEL_WIDTH, _TEXT_WIDTH = 0.31, 44
_FIRST_LINE, _NEXT_LINE = 0.082, 0.042
#: Colours of counts, without the palest yellow, which is invisible on white.
_COUNTS = ListedColormap(colormaps["viridis_r"](np.linspace(0.12, 1, 256)))
_AXIS_LABELS = {
    "edge span": "average edge span\n(1: as in a random order)",
    "neighbor overlap": "overlap of adjacent rows\n(0: no common neighbor)",
    "reuse distance": "median reuse distance\n(share of the rows of X)",
    "distinct columns": "distinct columns in 64 rows\n(1: none is read twice)",
}


def graph_card(graph: Any) -> Figure:
    """Draw a card of a graph: facts, degree histogram, and pattern of nonzeros.

    Parameters
    ----------
    graph : Graph, or anything `load_graph` takes

    Returns
    -------
    Figure
        Not registered with pyplot, so it need not be closed. The kind of a synthetic graph is
        coloured.
    """
    graph = load_graph(graph)
    card = GraphCard.of(graph)
    lines = card.lines()
    alt = f"Card of {card.name}: " + "; ".join(f"{label} {text}" for label, text in lines[1:])
    figure = Page(alt=alt, figsize=(13, 4.4), layout="constrained", dpi=110)
    facts, degrees, pattern = figure.subplots(1, 3, width_ratios=[1.25, 1, 1])
    facts.set_axis_off()
    is_synthetic, y = card.kind not in ("real", "given"), 1.0
    look: Look = {"va": "top", "transform": facts.transAxes, "linespacing": 1.15}
    for label, text in lines:
        wrapped = textwrap.wrap(text, _TEXT_WIDTH, break_on_hyphens=False) or [""]
        facts.text(0, y, label, fontsize=9, color=GREY, **look)
        font: Look = {"fontsize": 9}
        if label == "graph":
            font = {"fontsize": 11, "fontweight": "bold"}
        colour = VERMILLION if label == "kind" and is_synthetic else "black"
        facts.text(_LABEL_WIDTH, y, "\n".join(wrapped), color=colour, **look, **font)
        y -= _FIRST_LINE + _NEXT_LINE * (len(wrapped) - 1)
    degree_histogram(graph, ax=degrees)
    degrees.set_title("degrees", loc="left", fontsize=10)
    nonzero_pattern(graph, ax=pattern)
    pattern.set_title("nonzeros", loc="left", fontsize=10)
    return figure


def nonzero_pattern(graph: Graph, *, ax: Axes | None = None) -> Axes:
    """Draw the number of nonzeros of a matrix in a grid of cells, on a logarithmic colour scale."""
    n_rows, n_cols = graph.shape
    nonzeros = draw.pluralize(graph.nnz, "nonzero")
    size = f"{draw.pluralize(n_rows, 'row')} and {draw.pluralize(n_cols, 'column')}"
    if ax is None:
        ax = draw.new_axes(None, figsize=(5, 4.4))
        draw.write_heading(ax, f"{nonzeros} in {size}")
    add_alt(ax, f"Where the {nonzeros} of a matrix of {size} lie, counted in cells.")
    if graph.nnz:
        counts = np.ma.masked_equal(pattern_map(graph), 0)
        aspect = "auto" if n_rows != n_cols else "equal"
        norm = LogNorm(1, max(2, int(counts.max())))
        extent = (0, n_cols, n_rows, 0)
        image = draw.cells(ax, counts, _COUNTS, norm, extent=extent, aspect=aspect)
        lines, columns = counts.shape
        cell = f"{n_rows / lines:,.0f} x {n_cols / columns:,.0f}"
        bar = draw.colour_bar(ax, image, f"nonzeros in a cell of {cell}", shrink=0.8, format=PLAIN)
        bar.ax.minorticks_off()
    else:
        draw.label_empty(ax, "no nonzero")
    ax.set(xlabel="column", ylabel="row")
    draw.count_ticks(ax.xaxis, ax.yaxis, most=4)
    return ax


def locality_brackets(graphs: Mapping[str, tuple[Locality, Locality, Locality]]) -> list[Axes]:
    """Compare four locality statistics of real graphs with those of their synthetic twins.

    Parameters
    ----------
    graphs : mapping of str to three Locality
        Name to the statistics of (twin in natural order, real graph, twin in shuffled order).
    """
    panels = draw.new_panels((12.5, 0.9 + 0.32 * len(graphs)), 1, 4, sharey=True)
    y = np.arange(len(graphs))
    for ax, (statistic, label) in zip(panels, _AXIS_LABELS.items(), strict=True):
        values = [[entry.relative[statistic] for entry in triple] for triple in graphs.values()]
        natural, real, shuffled = np.array(values).reshape(-1, 3).T
        ax.hlines(y, natural, shuffled, color=GREY, lw=1, alpha=0.5, zorder=1)
        ax.plot(natural, y, "<", ms=6, color=BLUE, label="twin, natural order")
        ax.plot(shuffled, y, ">", ms=6, color=ORANGE, label="twin, shuffled order")
        ax.plot(real, y, "D", ms=6, color=BLACK, label="real", zorder=3)
        low, high = np.minimum(natural, shuffled), np.maximum(natural, shuffled)
        is_between = (real >= low) & (real <= high)
        ax.set_xlabel(label, fontsize=9)
        ax.set_xlim(left=min(0, ax.get_xlim()[0]))
        alt = f"By {statistic} {is_between.sum()} of {len(graphs)} real graphs lie between the two"
        draw.finish(ax, f"{alt} orders of their twins.")
    panels[0].set_yticks(y, list(graphs))
    panels[0].invert_yaxis()
    if graphs:
        handles, labels = panels[0].get_legend_handles_labels()
        look: Look = {"loc": "outside upper center", "ncols": 3, "fontsize": 9}
        panels[0].figure.legend(handles, labels, **look)
    return panels
