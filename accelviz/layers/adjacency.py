"""The matrix that each kind of layer multiplies with: a graph with self loops and weights.

If the graph already has a self loop, no second one is added.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from accelviz.datasets import load_graph
from accelviz.graph import Graph


def rows_of(graph: Graph) -> npt.NDArray[np.int32]:
    """Return the row of each nonzero, int32, shape (nnz,)."""
    return np.repeat(np.arange(graph.n_rows, dtype=np.int32), graph.degrees)


def has_self_loops(graph: Graph) -> npt.NDArray[np.bool_]:
    """Return whether each node of a square graph has a self loop, bool, shape (n_nodes,)."""
    rows = rows_of(graph)
    has_loop = np.zeros(graph.n_rows, np.bool_)
    has_loop[rows[rows == graph.column_indices]] = True
    return has_loop


def with_diagonal(graph: Graph, values: Any, diagonal: Any) -> Graph:
    """Return a square graph with new values and a new diagonal.

    `values` has the shape (nnz,), `diagonal` the shape (n_nodes,).
    """
    rows, columns = rows_of(graph), graph.column_indices
    off_diagonal = rows != columns
    nodes = np.arange(graph.n_rows, dtype=np.int32)
    data = np.concatenate([values[off_diagonal], diagonal]).astype(np.float32)
    new_rows = np.concatenate([rows[off_diagonal], nodes])
    new_columns = np.concatenate([columns[off_diagonal], nodes])
    matrix = sparse.coo_array((data, (new_rows, new_columns)), shape=graph.shape)
    return load_graph(matrix, name=graph.name)


def gcn_matrix(graph: Graph) -> Graph:
    """Return `D^-1/2 (A + I) D^-1/2`, D being the row sums of A + I (Kipf and Welling, ICLR 2017).

    A self loop of the graph keeps its weight. If the weights of a row sum to 0 or less, the row
    becomes 0, as in PyTorch Geometric.
    """
    diagonal = np.where(has_self_loops(graph), graph.adjacency.diagonal(), 1)
    looped = with_diagonal(graph, graph.values, diagonal)
    sums = np.asarray(looped.adjacency.sum(axis=1), np.float64).ravel()
    root = np.zeros_like(sums)
    root[sums > 0] = sums[sums > 0] ** -0.5
    values = looped.values * root[rows_of(looped)] * root[looped.column_indices]
    return looped.with_values(values.astype(np.float32))


def mean_matrix(graph: Graph) -> Graph:
    """Return the matrix that takes the mean of each row's neighbors; edge weights are ignored."""
    reciprocals = 1 / np.maximum(graph.degrees, 1)
    return graph.with_values(np.repeat(reciprocals, graph.degrees).astype(np.float32))


def sum_matrix(graph: Graph) -> Graph:
    """Return GIN's matrix `A + I` with weights 1; a self loop of A has weight 2."""
    return with_diagonal(graph, np.ones(graph.nnz), 1 + has_self_loops(graph))


def attention_matrix(graph: Graph) -> Graph:
    """Return the pattern of `A + I` with weights 1: every node also attends to itself."""
    return with_diagonal(graph, np.ones(graph.nnz), np.ones(graph.n_rows))
