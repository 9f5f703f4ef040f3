"""Reverse Cuthill-McKee: every edge near the diagonal."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csgraph

from accelviz.datasets import load_graph
from accelviz.ordering.inputs import undirected_pattern
from accelviz.ordering.permutation import Permutation


def reverse_cuthill_mckee(graph: Any) -> Permutation:
    """Go breadth first from a vertex of low degree, then reverse the order (SciPy's RCM).

    Parameters
    ----------
    graph : Graph, or anything `load_graph` takes
        Square. Its edges count in both directions (the pattern of `A + A^T`), weights and self
        loops do not.

    Returns
    -------
    Permutation
        Neighbors get numbers near each other, so that the bandwidth (the largest span of an edge)
        falls. Each connected component is one run.

    Raises
    ------
    GraphError
        If `graph` is not a valid sparse matrix, or not square.

    Notes
    -----
    The BFS-based order that section 3.5.1 of GNNAdvisor compares Rabbit order with.
    """
    pattern = undirected_pattern(load_graph(graph))
    if pattern.shape[0] == 0:  # SciPy fails on it
        return Permutation.trusted(np.empty(0, dtype=np.int32))
    order = csgraph.reverse_cuthill_mckee(pattern, symmetric_mode=True)
    return Permutation.trusted(order.astype(np.int32, copy=False))
