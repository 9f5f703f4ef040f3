"""The two orders that look at no edge: as the graph came, and at random."""

from __future__ import annotations

from typing import Any

import numpy as np

from accelviz.datasets import load_graph
from accelviz.ordering.inputs import checked_integer
from accelviz.ordering.permutation import Permutation


def original_order(graph: Any) -> Permutation:
    """Keep the rows as they are.

    Parameters
    ----------
    graph : Graph, or anything `load_graph` takes

    Returns
    -------
    Permutation
        The identity.

    Raises
    ------
    GraphError
        If `graph` is not a valid sparse matrix.
    """
    return Permutation.trusted(np.arange(load_graph(graph).n_rows, dtype=np.int32))


def random_order(graph: Any, *, seed: int = 0) -> Permutation:
    """Shuffle the rows: what is left of a graph's locality is then chance.

    Parameters
    ----------
    graph : Graph, or anything `load_graph` takes
    seed : int
        At least 0. Equal seeds give equal orders.

    Returns
    -------
    Permutation

    Raises
    ------
    GraphError
        If `graph` is not a valid sparse matrix.
    ArgumentError
        If `seed` is no integer of at least 0.
    """
    rng = np.random.default_rng(checked_integer("seed", seed, 0))
    rows = np.arange(load_graph(graph).n_rows, dtype=np.int32)
    rng.shuffle(rows)
    return Permutation.trusted(rows)
