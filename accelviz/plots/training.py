"""Pictures of training: what a step takes in time and memory, and what attention looks at."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes

from accelviz.errors import ArgumentError, checked_integer
from accelviz.graph import Graph
from accelviz.plots.drawing import new_axes
from accelviz.plots.labels import counted, write_title
from accelviz.plots.style import BLUE, GREY, ORANGE, paler, tell, tidy

_DIRECTIONS = {"forward": BLUE, "backward": ORANGE}
#: Neighbors that a picture of a neighborhood has at the most; the others are named as a sum.
_MOST_NEIGHBORS = 24


def accuracies(history: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw which share of the nodes a network classifies as they are, epoch after epoch.

    Parameters
    ----------
    history : DataFrame
        Of `layers.train`: nodes that it learned from (`train`), chose by (`val`) and is judged by.
    ax : see `accelviz.plots`
    """
    ax = new_axes(ax, figsize=(7, 4))
    last = []
    for name, colour in zip(("train", "val", "test"), (GREY, ORANGE, BLUE), strict=True):
        shares = history[f"{name}_accuracy"]
        ax.plot(history["epoch"], shares, color=colour, label=name)
        last.append(f"{name} {shares.iloc[-1]:.1%}")
    ax.set(xlabel="epoch", ylabel="share that is right", ylim=(0, 1.02))
    ax.legend(loc="lower right", frameon=False)
    epochs = counted(len(history), "epoch")
    write_title(ax, f"{shares.iloc[-1]:.1%} of the test nodes are right after {epochs}")
    tell(ax, f"Right after the last epoch: {', '.join(last)}.")
    return tidy(ax)


def step_times(history: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw how long each operation of a training step takes, as bars.

    Parameters
    ----------
    history : DataFrame
        Of `layers.train`: medians over its epochs are drawn.
    ax : see `accelviz.plots`

    Raises
    ------
    ArgumentError
        If it has no times of operations.
    """
    named = [name for name in history if str(name).endswith("_seconds")]
    parts = history[named].median().dropna() * 1e3
    if parts.empty:
        right = "the history of layers.train, whose first epochs have them"
        raise ArgumentError("history", "it has no times of operations", right)
    parts = parts.rename(lambda name: str(name).removesuffix("_seconds")).sort_values()
    ax = new_axes(ax, figsize=(7, 1.2 + 0.34 * len(parts)))
    bars = ax.barh(parts.index, parts, color=[GREY if n == "dense" else BLUE for n in parts.index])
    ax.bar_label(bars, [f"{ms:.2f} ms, {ms / parts.sum():.0%}" for ms in parts], padding=3)
    ax.set(xlabel="milliseconds of a step", xlim=(0, parts.max() * 1.3))
    longest = parts.index[-1]
    write_title(
        ax, f"{longest} takes {parts.iloc[-1] / parts.sum():.0%} of a step of {parts.sum():.2f} ms"
    )
    tell(ax, "By operation: " + ", ".join(f"{n} {v:.2f} ms" for n, v in parts[::-1].items()) + ".")
    return tidy(ax)


def step_memory(table: pd.DataFrame, *, called: str = "", ax: Axes | None = None) -> Axes:
    """Draw what a training step holds after each of its operations.

    Parameters
    ----------
    table : DataFrame
        Of `layers.step_memory`.
    called : str
        What the title says of whose step it is.
    ax : see `accelviz.plots`
    """
    ax = new_axes(ax, figsize=(8, 3.6))
    place = np.arange(len(table))
    for direction, colour in _DIRECTIONS.items():
        own = (table["direction"] == direction).to_numpy()
        ax.bar(place[own], table["mib"][own], 0.8, align="edge", color=colour, label=direction)
    ax.set_xticks(place + 0.4, table["operation"], rotation=60, ha="right", fontsize=8)
    ax.set(ylabel="MiB held", ylim=(0, None), xlim=(0, len(table)))
    ax.legend(frameon=False)
    most = table.loc[table["mib"].idxmax()]
    whose = f"{called}: " if called else ""
    write_title(ax, f"{whose}{most['mib']:.1f} MiB at the most, after {most['operation']}")
    tell(ax, f"{counted(len(table), 'moment')} of a step, forward, then backward.")
    return tidy(ax)


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
    ax : see `accelviz.plots`

    Raises
    ------
    ArgumentError
        If there is no such node, or the weights do not fit.
    """
    checked_integer("node", node, graph.n_rows - 1, least=0, error=ArgumentError)
    weights = np.asarray(weights, float)
    if weights.shape != (graph.nnz,) or (weights < 0).any():
        what = f"shape {weights.shape}" if weights.shape != (graph.nnz,) else "some are negative"
        raise ArgumentError("weights", what, f"one for each of {graph.nnz:,} nonzeros, 0 or more")
    own = slice(*graph.row_pointers[node : node + 2])
    neighbors, values = graph.column_indices[own], weights[own]
    order = np.argsort(-values, kind="stable")[:_MOST_NEIGHBORS]
    ax = new_axes(ax, figsize=(5.6, 5.6))
    largest = max(values.max(initial=0), np.finfo(float).tiny)
    angles = np.pi / 2 - 2 * np.pi * np.arange(len(order)) / max(len(order), 1)
    for angle, i in zip(angles, order, strict=True):
        x, y, part = np.cos(angle), np.sin(angle), values[i] / largest
        ax.plot([0, x], [0, y], color=paler(BLUE, 0.25 + 0.75 * part), lw=0.5 + 7 * part, zorder=1)
        name = "itself" if neighbors[i] == node else f"{neighbors[i]}"
        ax.text(1.22 * x, 1.22 * y, f"{name}\n{values[i]:.2f}", ha="center", va="center", size=9)
        ax.plot(x, y, "o", color=GREY, ms=7, zorder=2)
    ax.plot(0, 0, "o", color=ORANGE, ms=18, zorder=3)
    ax.text(0, 0, f"{node}", ha="center", va="center", size=8, zorder=4)
    ax.set(xlim=(-1.5, 1.5), ylim=(-1.5, 1.5), aspect="equal")
    ax.axis("off")
    hidden = len(values) - len(order)
    rest = f"; {hidden} of them weigh {values.sum() - values[order].sum():.2f} together"
    title = f"Node {node} and {counted(int((neighbors != node).sum()), 'neighbor')}"
    write_title(ax, title + (rest if hidden else ""))
    said = (f"{neighbors[i]} weighs {values[i]:.2f}" for i in order)
    tell(ax, f"Node {node}: " + ", ".join(said) + ".")
    return ax
