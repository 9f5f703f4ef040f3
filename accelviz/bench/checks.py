"""No check, no time: random signed inputs, and results held to float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.analysis.accuracy import Oracle
from accelviz.errors import KernelError
from accelviz.executors.base import ReadyPlan
from accelviz.graph import Graph


def features(rows: int, n_cols: int, seed: int = 0) -> npt.NDArray[np.float32]:
    """Return random signed features, float32, shape (rows, n_cols); never ones."""
    return np.random.default_rng(seed).standard_normal((rows, n_cols), dtype=np.float32)


def random_weights(graph: Graph, seed: int = 0) -> Graph:
    """Return the graph with random signed edge weights; weights that are all ones hide mistakes."""
    weights = np.random.default_rng(seed).standard_normal(graph.nnz, dtype=np.float32)
    return Graph(
        graph.row_pointers,
        graph.column_indices,
        weights,
        graph.shape,
        graph.name,
        graph.source,
        graph.kind,
    )


def check(ready: ReadyPlan, X: Any, oracle: Oracle) -> float:
    """Run a plan twice into an output poisoned with NaN and hold it to the error bound.

    Parameters
    ----------
    ready : ReadyPlan
    X : array of float32, shape (n_senders, n_cols)
        On the host or on the device.
    oracle : Oracle
        Of the same graph and of features whose first columns are `X`; moved to the device, it
        spares a copy of the result.

    Returns
    -------
    float
        The larger error, in units of the bound.

    Raises
    ------
    KernelError
        If it is above 1: the result is wrong.
    """
    worst = 0.0
    X = ready.features(X)
    out = ready.output()
    for _ in range(2):
        out.fill(np.nan)
        worst = max(worst, oracle.error(ready.multiply(X, out)))
    if not worst <= 1.0:
        raise KernelError(
            ready.plan.strategy,
            f"wrong result on {ready.plan.graph.name!r} with {ready.plan.n_cols} columns: the "
            f"largest error is {worst:.3g} times the bound",
        )
    return worst
