"""GNNAdvisor's runtime as one call: load, extract, decide, train (thesis, sections 3.2 to 3.6)."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from typing import Any

from accelviz.datasets.nodes import SPLITS, NodeData, load_nodes
from accelviz.errors import ArgumentError, checked_choice
from accelviz.graph import Graph
from accelviz.layers.convolution import GCN, GIN
from accelviz.layers.models import find_model
from accelviz.layers.train import Training, train
from accelviz.ordering import Permutation, RenumberingAdvice, rabbit_order, renumbering_pays
from accelviz.strategies.spmm.gnnadvisor import WORKLOAD_PER_THREAD, Decision, decide

#: The two models of the paper's evaluation.
MODELS = ("gcn", "gin")
#: Ratio of the largest degree to the mean from which the text calls rows uneven.
_UNEVEN = 10


@dataclass(frozen=True)
class Advice:
    """The properties of the input that the runtime extracts, and its decisions.

    Attributes
    ----------
    data : NodeData
    widths : tuple of int
        Columns that the layers gather, in order.
    renumber : RenumberingAdvice
        Whether the nodes get new numbers, by their average edge span.
    decisions : tuple of Decision
        Of each width that occurs: dimension workers and size of a neighbor group.
    """

    data: NodeData
    widths: tuple[int, ...]
    renumber: RenumberingAdvice
    decisions: tuple[Decision, ...]

    def __str__(self) -> str:
        degrees = self.data.graph.degrees
        mean, most = degrees.mean(), int(degrees.max(initial=0))
        uneven = most > _UNEVEN * max(mean, 1)
        groups = "cut into groups, so that no warp has a hub to itself" if uneven else "alike"
        lines = [
            "Extracted:",
            f"  {self.data.n_nodes:,} nodes, {self.data.graph.nnz:,} edges; degrees are {mean:.1f} "
            f"on average and {most:,} at most: long rows are {groups}.",
            f"  The layers gather rows of {' and '.join(map(str, self.widths))} columns.",
            "Decided:",
            f"  {self.renumber}",
            f"  So the nodes {'get new numbers by Rabbit order' if self.renumber else 'stay'}.",
        ]
        lines += [f"  {_reason(decision)}" for decision in self.decisions]
        return "\n".join(lines)


def _reason(decision: Decision) -> str:
    wide = decision.dw == 32
    columns = f"{decision.n_cols} columns: "
    why = "at least as many as a warp has lanes" if wide else "fewer than a warp has lanes"
    return (
        f"{columns}dw = {decision.dw} dimension workers, as there are {why} (Equation 3.6); "
        f"ngs = {decision.ngs}, which gives a thread {decision.workload_per_thread:,.0f} products, "
        f"about {WORKLOAD_PER_THREAD} (Equation 3.5); a block of {decision.block_warps} warps "
        f"needs {decision.shared_bytes:,} bytes of shared memory."
    )


def advise(model: str, data: Any, **options: Any) -> Advice:
    """Extract the properties that GNNAdvisor decides by, and decide; nothing is trained.

    Parameters
    ----------
    model : {"gcn", "gin"}
        The models of the paper.
    data : str or NodeData
        As of `train`.
    **options
        The model's own, such as `hidden`.

    Raises
    ------
    ArgumentError
        As `train` does.
    """
    checked_choice("model", model, MODELS)
    known, options = find_model(model, options)
    nodes = load_nodes(data)
    widths = []
    for i, layer in enumerate(known.build(nodes.n_features, nodes.n_classes, **options)):
        assert isinstance(layer, GCN | GIN)
        X, fixed = (None, False) if i else (nodes.features, options["dropout"] == 0)
        first = layer.propagation.matrix_first(X, i > 0, fixed)
        widths.append(layer.n_in if first else layer.propagation.n_out)
    decisions = tuple(decide(width) for width in sorted(set(widths), reverse=True))
    return Advice(nodes, tuple(widths), renumbering_pays(nodes.graph), decisions)


def gnnadvisor(model: str, data: Any, *, quiet: bool = False, **settings: Any) -> Training:
    """Load, extract, decide and train as GNNAdvisor's runtime does, and print every decision.

    Parameters
    ----------
    model : {"gcn", "gin"}
    data : str or NodeData
    quiet : bool
        Print nothing.
    **settings
        As of `train`, without `strategy`.

    Returns
    -------
    Training
        In the order of the nodes that were given, whatever order they were trained in.

    Raises
    ------
    ArgumentError, GraphError, DeviceUnavailable
        As `train` does.

    Examples
    --------
    >>> from accelviz.layers import gnnadvisor
    >>> training = gnnadvisor("gcn", "cora", epochs=2, device="cpu", progress=False)
    ... # doctest: +ELLIPSIS, +NORMALIZE_WHITESPACE
    Extracted:
      2,708 nodes, 10,556 edges; degrees are 3.9 on average and 168 at most: ...
      The layers gather rows of 16 and 7 columns.
    Decided:
      ...
      16 columns: dw = 16 dimension workers, as there are fewer than a warp has lanes ...
    """
    if "strategy" in settings:
        expected = "none: they run by 'gnnadvisor'; layers.train takes another"
        raise ArgumentError("strategy", f"got {settings['strategy']!r}", expected)
    of_train = inspect.signature(train).parameters
    options = {name: value for name, value in settings.items() if name not in of_train}
    advice = advise(model, data, **options)
    if not quiet:
        print(advice)
    nodes, order = advice.data, None
    if advice.renumber:
        order = rabbit_order(nodes.graph)
        nodes = renumbered(nodes, order)
    trained = train(model, nodes, strategy=("gnnadvisor", {"ngs": None}), **settings)
    if order is None:
        return trained
    return replace(trained, data=advice.data, logits=order.invert(trained.logits))


def renumbered(data: NodeData, order: Permutation) -> NodeData:
    """Return the same data with node `order.order[i]` as node `i`."""
    features = data.features
    if isinstance(features, Graph):
        features = order.apply_to_graph(features)
    else:
        features = order.apply(features)
    splits = {name: order.inverse[getattr(data, name)] for name in SPLITS}
    graph = order.apply_to_graph(data.graph, columns=True)
    return NodeData(graph, features, order.apply(data.labels), **splits, name=data.name)
