"""Pictures of training: what a step takes in time and memory, and what attention looks at."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes

from accelviz.errors import ArgumentError, checked_integer
from accelviz.graph import Graph
from accelviz.plots import draw
from accelviz.plots.style import BLUE, GREY, ORANGE, Look, add_alt, paler

_DIRECTIONS = {"forward": BLUE, "backward": ORANGE}
#: Neighbors that a picture of a neighborhood has at the most; the others are named as a sum.
_MOST_NEIGHBORS = 24


def accuracies(history: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw which share of the nodes a network classifies as they are, epoch after epoch.

    Parameters
    ----------
    history : DataFrame
        Of `layers.train`: nodes that it learned from (`train`), chose by (`val`) and is judged by.
    """
    ax = draw.new_axes(ax, figsize=(7, 4))
    shares = history.set_index("epoch")[["train_accuracy", "val_accuracy", "test_accuracy"]]
    shares = shares.rename(columns=lambda name: name.removesuffix("_accuracy"))
    shares.plot(ax=ax, color=[GREY, ORANGE, BLUE], ylabel="share that is right", ylim=(0, 1.02))
    ax.legend(loc="lower right", frameon=False)
    epochs = draw.pluralize(len(history), "epoch")
    title = f"{shares['test'].iloc[-1]:.1%} of the test nodes are right after {epochs}"
    last = ", ".join(f"{name} {share:.1%}" for name, share in shares.iloc[-1].items())
    return draw.finish(ax, f"Right after the last epoch: {last}.", title)


def step_times(history: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw how long each operation of a training step takes, as bars.

    Parameters
    ----------
    history : DataFrame
        Of `layers.train`: medians over its epochs are drawn.

    Raises
    ------
    ArgumentError
        If it has no times of operations.
    """
    times = history.filter(regex="_seconds$").median().dropna() * 1e3
    if times.empty:
        expected = "the history of layers.train, whose first epochs have them"
        raise ArgumentError("history", "it has no times of operations", expected)
    times = times.rename(lambda name: name.removesuffix("_seconds")).sort_values()
    shares = times / times.sum()
    ax = draw.new_axes(ax, figsize=(7, 1.2 + 0.34 * len(times)))
    colours = [GREY if name == "dense" else BLUE for name in times.index]
    bars = ax.barh(times.index, times, color=colours)
    texts = [f"{ms:.2f} ms, {share:.0%}" for ms, share in zip(times, shares, strict=True)]
    ax.bar_label(bars, texts, padding=3)
    ax.set(xlabel="milliseconds of a step", xlim=(0, times.max() * 1.3))
    title = f"{times.index[-1]} takes {shares.iloc[-1]:.0%} of a step of {times.sum():.2f} ms"
    alt = ", ".join(f"{name} {ms:.2f} ms" for name, ms in times[::-1].items())
    return draw.finish(ax, f"By operation: {alt}.", title)


def step_memory(table: pd.DataFrame, *, called: str = "", ax: Axes | None = None) -> Axes:
    """Draw what a training step holds after each of its operations.

    Parameters
    ----------
    table : DataFrame
        Of `layers.step_memory`.
    called : str
        What the title says of whose step it is.
    """
    ax = draw.new_axes(ax, figsize=(8, 3.6))
    at = np.arange(len(table))
    for direction, colour in _DIRECTIONS.items():
        rows = (table["direction"] == direction).to_numpy()
        ax.bar(at[rows], table["mib"][rows], 0.8, align="edge", color=colour, label=direction)
    ax.set_xticks(at + 0.4, table["operation"], rotation=60, ha="right", fontsize=8)
    ax.set(ylabel="MiB held", ylim=(0, None), xlim=(0, len(table)))
    ax.legend(frameon=False)
    most = table.loc[table["mib"].idxmax()]
    owner = f"{called}: " if called else ""
    title = f"{owner}{most['mib']:.1f} MiB at the most, after {most['operation']}"
    moments = draw.pluralize(len(table), "moment")
    return draw.finish(ax, f"{moments} of a step, forward, then backward.", title)


def neighbor_weights(
    graph: Graph, weights: npt.NDArray[np.floating], node: int, *, ax: Axes | None = None
) -> Axes:
    """Draw a node among its neighbors; the wider the line, the more a neighbor weighs.

    Parameters
    ----------
    graph : Graph
        Whose row `node` has the neighbors, such as `layers.adjacency.attention_matrix(...)`.
    weights : array of float, shape (nnz,)
        Of each nonzero, such as the result of `accelviz.edge_softmax`; none negative.
    node : int

    Raises
    ------
    ArgumentError
        If there is no such node, or the weights do not fit.
    """
    checked_integer("node", node, graph.n_rows - 1, least=0, error=ArgumentError)
    weights = np.asarray(weights, float)
    if weights.shape != (graph.nnz,) or (weights < 0).any():
        wrong = f"shape {weights.shape}" if weights.shape != (graph.nnz,) else "some are negative"
        raise ArgumentError("weights", wrong, f"one for each of {graph.nnz:,} nonzeros, 0 or more")
    row = slice(*graph.row_pointers[node : node + 2])
    neighbors, values = graph.column_indices[row], weights[row]
    order = np.argsort(-values, kind="stable")[:_MOST_NEIGHBORS]
    ax = draw.new_axes(ax, figsize=(5.6, 5.6))
    parts = values / max(values.max(initial=0), np.finfo(float).tiny)
    angles = np.pi / 2 - 2 * np.pi * np.arange(len(order)) / max(len(order), 1)
    look: Look = {"ha": "center", "va": "center"}
    for angle, i in zip(angles, order, strict=True):
        x, y, part = np.cos(angle), np.sin(angle), parts[i]
        ax.plot([0, x], [0, y], color=paler(BLUE, 0.25 + 0.75 * part), lw=0.5 + 7 * part, zorder=1)
        name = "itself" if neighbors[i] == node else f"{neighbors[i]}"
        ax.text(1.22 * x, 1.22 * y, f"{name}\n{values[i]:.2f}", size=9, **look)
        ax.plot(x, y, "o", color=GREY, ms=7, zorder=2)
    ax.plot(0, 0, "o", color=ORANGE, ms=18, zorder=3)
    ax.text(0, 0, f"{node}", size=8, zorder=4, **look)
    ax.set(xlim=(-1.5, 1.5), ylim=(-1.5, 1.5), aspect="equal")
    ax.axis("off")
    title = f"Node {node} and {draw.pluralize(int((neighbors != node).sum()), 'neighbor')}"
    if hidden := len(values) - len(order):
        rest = values.sum() - values[order].sum()
        title += f"; {hidden} of them weigh {rest:.2f} together"
    draw.write_title(ax, title)
    alts = (f"{neighbors[i]} weighs {values[i]:.2f}" for i in order)
    add_alt(ax, f"Node {node}: " + ", ".join(alts) + ".")
    return ax
