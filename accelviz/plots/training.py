"""Pictures of training: accuracy, time and memory of a step, and attention weights."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes

from accelviz.errors import ArgumentError, checked_integer
from accelviz.graph import Graph
from accelviz.plots import draw
from accelviz.plots.style import BLUE, GREY, ORANGE, Look, add_alt, paler

_SPLITS = {"train": GREY, "val": ORANGE, "test": BLUE}
_DIRECTIONS = {"forward": BLUE, "backward": ORANGE}
#: Largest number of neighbors in a picture; of the others, the sum of the weights is stated.
_MAX_NEIGHBORS = 24


def accuracies(history: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw the accuracies of training, validation and test nodes against the epoch.

    Parameters
    ----------
    history : DataFrame
        From `layers.train`.

    Raises
    ------
    ArgumentError
        If the history has no accuracies, because the labels are no classes.
    """
    shares = history.set_index("epoch").filter(regex="_accuracy$")
    if shares.empty:
        raise ArgumentError("history", "it has no accuracies", "that of a training on classes")
    ax = draw.new_axes(ax, figsize=(7, 4))
    shares = shares.rename(columns=lambda name: name.removesuffix("_accuracy"))
    colours = [_SPLITS[name] for name in shares]
    shares.plot(ax=ax, color=colours, ylabel="share that is right", ylim=(0, 1.02))
    ax.legend(loc="lower right", frameon=False)
    epochs = draw.pluralize(len(history), "epoch")
    split = shares.columns[-1]
    title = f"{shares[split].iloc[-1]:.1%} of the {split} nodes are right after {epochs}"
    last = ", ".join(f"{name} {share:.1%}" for name, share in shares.iloc[-1].items())
    return draw.finish(ax, f"Right after the last epoch: {last}.", title)


def step_times(history: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw the median time of each operation of a training step as bars.

    Parameters
    ----------
    history : DataFrame
        From `layers.train`.

    Raises
    ------
    ArgumentError
        If the history has no times of operations.
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
    """Draw the allocated memory after each operation of a training step.

    Parameters
    ----------
    table : DataFrame
        From `layers.step_memory`.
    called : str
        Name of the model in the title.
    """
    ax = draw.new_axes(ax, figsize=(8, 3.6))
    left = np.arange(len(table))
    for direction, colour in _DIRECTIONS.items():
        rows = (table["direction"] == direction).to_numpy()
        ax.bar(left[rows], table["mib"][rows], 0.8, align="edge", color=colour, label=direction)
    ax.set_xticks(left + 0.4, table["operation"], rotation=60, ha="right", fontsize=8)
    ax.set(ylabel="MiB held", ylim=(0, None), xlim=(0, len(table)))
    ax.legend(frameon=False)
    peak = table.loc[table["mib"].idxmax()]
    prefix = f"{called}: " if called else ""
    title = f"{prefix}{peak['mib']:.1f} MiB at the most, after {peak['operation']}"
    moments = draw.pluralize(len(table), "moment")
    return draw.finish(ax, f"{moments} of a step, forward, then backward.", title)


def neighbor_weights(
    graph: Graph, weights: npt.NDArray[np.floating], node: int, *, ax: Axes | None = None
) -> Axes:
    """Draw a node and its neighbors; the width of a line is the neighbor's weight.

    Parameters
    ----------
    graph : Graph
        Row `node` has the neighbors, as in `layers.adjacency.attention_matrix(...)`.
    weights : array of float, shape (nnz,)
        Nonnegative weight of each nonzero, such as the result of `accelviz.edge_softmax`.
    node : int

    Raises
    ------
    ArgumentError
        If the node does not exist, or the weights have another shape or a negative entry.
    """
    checked_integer("node", node, graph.n_rows - 1, least=0, error=ArgumentError)
    weights = np.asarray(weights, float)
    if weights.shape != (graph.nnz,) or (weights < 0).any():
        problem = "some are negative"
        if weights.shape != (graph.nnz,):
            problem = f"shape {weights.shape}"
        expected = f"one for each of {graph.nnz:,} nonzeros, 0 or more"
        raise ArgumentError("weights", problem, expected)
    row = slice(*graph.row_pointers[node : node + 2])
    neighbors, values = graph.column_indices[row], weights[row]
    order = np.argsort(-values, kind="stable")[:_MAX_NEIGHBORS]
    ax = draw.new_axes(ax, figsize=(5.6, 5.6))
    relative = values / max(values.max(initial=0), np.finfo(float).tiny)
    angles = np.pi / 2 - 2 * np.pi * np.arange(len(order)) / max(len(order), 1)
    look: Look = {"ha": "center", "va": "center"}
    for angle, i in zip(angles, order, strict=True):
        x, y, r = np.cos(angle), np.sin(angle), relative[i]
        ax.plot([0, x], [0, y], color=paler(BLUE, 0.25 + 0.75 * r), lw=0.5 + 7 * r, zorder=1)
        name = "itself" if neighbors[i] == node else f"{neighbors[i]}"
        ax.text(1.22 * x, 1.22 * y, f"{name}\n{values[i]:.2f}", size=9, **look)
        ax.plot(x, y, "o", color=GREY, ms=7, zorder=2)
    ax.plot(0, 0, "o", color=ORANGE, ms=18, zorder=3)
    ax.text(0, 0, f"{node}", size=8, zorder=4, **look)
    ax.set(xlim=(-1.5, 1.5), ylim=(-1.5, 1.5), aspect="equal")
    ax.axis("off")
    title = f"Node {node} and {draw.pluralize(int((neighbors != node).sum()), 'neighbor')}"
    if hidden := len(values) - len(order):
        hidden_weight = values.sum() - values[order].sum()
        title += f"; {hidden} of them weigh {hidden_weight:.2f} together"
    draw.write_title(ax, title)
    alts = (f"{neighbors[i]} weighs {values[i]:.2f}" for i in order)
    add_alt(ax, f"Node {node}: " + ", ".join(alts) + ".")
    return ax
