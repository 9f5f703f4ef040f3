"""The original, a random and the reverse Cuthill-McKee order; the undirected pattern of a graph."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from accelviz.datasets import load_graph
from accelviz.errors import ArgumentError, GraphError, checked_integer
from accelviz.graph import Graph
from accelviz.ordering.permutation import Permutation


def original_order(graph: Any) -> Permutation:
    """Keep the rows as they are; see `vertex_order`."""
    return Permutation.trusted(np.arange(load_graph(graph).n_rows, dtype=np.int32))


def random_order(graph: Any, *, seed: int = 0) -> Permutation:
    """Shuffle the rows, which removes all locality; see `vertex_order`.

    Parameters
    ----------
    graph : Graph, or anything `load_graph` takes
    seed : int
        At least 0. Equal seeds give equal orders.

    Raises
    ------
    GraphError, ArgumentError
        If `graph` is not a valid sparse matrix, or `seed` is not an integer of at least 0.
    """
    rng = np.random.default_rng(checked_integer("seed", seed, least=0, error=ArgumentError))
    return Permutation.trusted(rng.permutation(np.arange(load_graph(graph).n_rows, dtype=np.int32)))


def reverse_cuthill_mckee(graph: Any) -> Permutation:
    """Order the rows by reverse Cuthill-McKee: a breadth-first search, reversed (SciPy's RCM).

    Parameters
    ----------
    graph : Graph, or anything `load_graph` takes
        A square matrix. Edge directions, weights and self loops are ignored.

    Returns
    -------
    Permutation
        An order of small bandwidth (largest |row - column| of a nonzero). The rows of a connected
        component are contiguous.

    Raises
    ------
    GraphError
        If `graph` is not a valid sparse matrix, or not square.

    Notes
    -----
    Section 3.5.1 of GNNAdvisor compares Rabbit order with this BFS-based order.
    """
    pattern = undirected_pattern(load_graph(graph))
    if pattern.shape[0] == 0:  # SciPy's function fails on it
        return Permutation.trusted(np.empty(0, dtype=np.int32))
    from scipy.sparse import csgraph  # slow to load: with SciPy's solvers

    order = csgraph.reverse_cuthill_mckee(pattern, symmetric_mode=True)
    return Permutation.trusted(order.astype(np.int32, copy=False))


def undirected_pattern(graph: Graph) -> sparse.csr_array:
    """Return the pattern of `A + A^T` without its diagonal: the neighbors of each vertex.

    Weights and self loops do not influence the locality of an order.

    Returns
    -------
    csr_array of int8, shape (n, n)
        Symmetric, with ascending columns in each row, all values 1. Shares no memory with `graph`.

    Raises
    ------
    GraphError
        If `graph` is not square.
    """
    rows, columns = graph.shape
    if rows != columns:
        problem = f"{rows} x {columns} is not square, so its rows are not neighbors of one another"
        expected = "a square matrix; the orders 'degree', 'windowed_degree' and 'random' take any"
        raise GraphError("graph", problem, expected)
    view = graph.adjacency
    # Self loops get the value 0, and SciPy's addition drops zeros.
    off_diagonal = np.repeat(np.arange(rows, dtype=np.int32), graph.degrees) != graph.column_indices
    arrays = (off_diagonal.astype(np.int8), view.indices, view.indptr)
    pattern = sparse.csr_array(arrays, shape=graph.shape)
    pattern = pattern + pattern.T.tocsr()
    pattern.data[:] = 1
    return pattern
