"""GNNAdvisor's runtime as one call: load, extract, decide, train (thesis, sections 3.2 to 3.6).

`advise` extracts properties of graph and model and decides on renumbering and kernel parameters;
`gnnadvisor` also trains with these decisions.
"""

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
from accelviz.plans.launch import WARP_SIZE
from accelviz.strategies.spmm.gnnadvisor import WORKLOAD_PER_THREAD, Decision, decide

#: The two models of the paper's evaluation.
MODELS = ("gcn", "gin")


@dataclass(frozen=True)
class Advice:
    """The extracted properties of the input, and the decisions.

    Attributes
    ----------
    data : NodeData
    widths : tuple of int
        Number of columns that each layer gathers.
    renumber : RenumberingAdvice
        Whether to renumber the nodes, decided by the average edge span.
    decisions : tuple of Decision
        Dimension workers and neighbor group size for each distinct width, widest first.
    """

    data: NodeData
    widths: tuple[int, ...]
    renumber: RenumberingAdvice
    decisions: tuple[Decision, ...]

    def __str__(self) -> str:
        degrees = self.data.graph.degrees
        mean, largest = degrees.mean(), int(degrees.max(initial=0))
        lines = [
            "Extracted:",
            f"  {self.data.n_nodes:,} nodes, {self.data.graph.nnz:,} edges; degrees are {mean:.1f} "
            f"on average and {largest:,} at most.",
            f"  The layers gather rows of {' and '.join(map(str, self.widths))} columns.",
            "Decided:",
            f"  {self.renumber}",
            f"  So the nodes {'get new numbers by Rabbit order' if self.renumber else 'stay'}.",
        ]
        lines += [f"  {_reason(decision, degrees)}" for decision in self.decisions]
        return "\n".join(lines)


def _reason(decision: Decision, degrees: Any) -> str:
    n_split = int((degrees > decision.ngs).sum())
    comparison = "at least as many as" if decision.dw == WARP_SIZE else "fewer than"
    return (
        f"{decision.n_cols} columns: dw = {decision.dw} dimension workers, as there are "
        f"{comparison} a warp has lanes (Equation 3.6); ngs = {decision.ngs}, which gives a "
        f"thread {decision.workload_per_thread:,.0f} products, about {WORKLOAD_PER_THREAD} "
        f"(Equation 3.5) and splits {n_split:,} of {degrees.size:,} rows; a block of "
        f"{decision.block_warps} warps needs {decision.shared_bytes:,} bytes of shared memory."
    )


def advise(model: str, data: Any, **options: Any) -> Advice:
    """Extract the properties that GNNAdvisor decides by, and decide, without training.

    Parameters
    ----------
    model : {"gcn", "gin"}
        The models of the paper.
    data : str or NodeData
        As in `train`.
    **options
        Options of the model, such as `hidden`.

    Raises
    ------
    ArgumentError
        As `train` does.
    """
    checked_choice("model", model, MODELS)
    known_model, options = find_model(model, options)
    nodes = load_nodes(data)
    widths = []
    for i, layer in enumerate(known_model.build(nodes.n_features, nodes.n_outputs, **options)):
        assert isinstance(layer, GCN | GIN)
        X, fixed = (None, False) if i else (nodes.features, options["dropout"] == 0)
        layer.needs_input_gradient = i > 0
        widths.append(layer.n_in if layer.matrix_first(X, fixed) else layer.propagated)
    decisions = tuple(decide(width) for width in sorted(set(widths), reverse=True))
    return Advice(nodes, tuple(widths), renumbering_pays(nodes.graph), decisions)


def gnnadvisor(model: str, data: Any, *, quiet: bool = False, **settings: Any) -> Training:
    """Load, extract, decide and train as GNNAdvisor's runtime does, and print the decisions.

    Parameters
    ----------
    model : {"gcn", "gin"}
    data : str or NodeData
    quiet : bool
        Print nothing.
    **settings
        Arguments of `train` other than `strategy`.

    Returns
    -------
    Training
        Its nodes are in the order of `data`, also if training renumbered them.

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
      2,708 nodes, 10,556 edges; degrees are 3.9 on average and 168 at most.
      The layers gather rows of 16 and 7 columns.
    Decided:
      ...
      16 columns: dw = 16 dimension workers, as there are fewer than a warp has lanes ...
    """
    if "strategy" in settings:
        expected = "none: they run by 'gnnadvisor'; layers.train takes another"
        raise ArgumentError("strategy", f"got {settings['strategy']!r}", expected)
    train_arguments = inspect.signature(train).parameters
    options = {name: value for name, value in settings.items() if name not in train_arguments}
    advice = advise(model, data, **options)
    if not quiet:
        print(advice)
    nodes, order = advice.data, None
    if advice.renumber:
        order = rabbit_order(nodes.graph)
        nodes = renumbered(nodes, order)
    training = train(model, nodes, strategy=("gnnadvisor", {"ngs": None}), **settings)
    if order is None:
        return training
    return replace(training, data=advice.data, logits=order.invert(training.logits))


def renumbered(data: NodeData, order: Permutation) -> NodeData:
    """Return the same data with node `order.order[i]` as node `i`."""
    apply = order.apply_to_graph if isinstance(data.features, Graph) else order.apply
    features = apply(data.features)
    splits = {name: order.inverse[getattr(data, name)] for name in SPLITS}
    graph = order.apply_to_graph(data.graph, columns=True)
    return NodeData(graph, features, order.apply(data.labels), **splits, name=data.name)
