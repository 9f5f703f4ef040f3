"""What every strategy must hold on every device: checked here once, run from the test modules."""

from __future__ import annotations

import accelviz
from accelviz import measure
from accelviz.measure.accuracy import Oracle
from accelviz.executors import find_executor
from accelviz.graph import Graph
from accelviz.plans import Strategy
from tests.graphs import COLUMNS, MADE

#: The strategies that are not a library's.
KERNELS = [
    name
    for name in accelviz.strategies()
    if accelviz.plan(MADE["one_node"](), name).kernel is not None
]


def weighted(graph: Graph) -> Graph:
    """The graph with random signed weights; the bundled ones are all ones, which hide mistakes."""
    return measure.random_weights(graph, seed=graph.nnz)


def check_results(
    graph: Graph, strategy: str | Strategy, device: str, columns=COLUMNS, **parameters
) -> None:
    """Every column count matches the float64 oracle, twice, into an output poisoned with NaN."""
    graph = weighted(graph)
    executor = find_executor(device)
    X = measure.features(graph.shape[1], max(columns), seed=graph.nnz)
    oracle = Oracle(graph, X)
    for n_cols in columns:
        plan = accelviz.plan(graph, strategy, n_cols, **parameters)
        measure.check(executor.prepare(plan), X[:, :n_cols], oracle)
