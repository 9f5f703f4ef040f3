"""What the orders read: the undirected pattern of a square graph, and whole-number parameters."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from accelviz.errors import ArgumentError, GraphError
from accelviz.graph import Graph


def undirected_pattern(graph: Graph) -> sparse.csr_array:
    """Return the pattern of `A + A^T` without its diagonal.

    Orders by neighborhood see a graph this way: who is whose neighbor, in either direction. Weights
    do not count, as a kernel reads the same row of `X` for a small weight as for a large one, and
    neither do self loops, which span no distance in any order.

    Parameters
    ----------
    graph : Graph
        Square.

    Returns
    -------
    csr_array of int8, shape (n, n)
        Symmetric, its columns ascending in each row, all values one. Shares no memory with `graph`.

    Raises
    ------
    GraphError
        If `graph` is not square.
    """
    rows, columns = graph.shape
    if rows != columns:
        raise GraphError(
            "graph",
            f"{rows} x {columns} is not square, so its rows are not neighbors of one another",
            "a square matrix; the orders 'degree', 'windowed_degree' and 'random' take any",
        )
    view = graph.adjacency
    ones = np.ones(graph.nnz, dtype=np.int8)
    pattern = sparse.csr_array((ones, view.indices, view.indptr), shape=graph.shape)
    pattern = pattern + pattern.T.tocsr()
    pattern.data[:] = 1
    looped = pattern.diagonal() != 0
    if not looped.any():
        return pattern
    kept = pattern.indices != np.repeat(np.arange(rows, dtype=np.int32), np.diff(pattern.indptr))
    before = np.concatenate([[0], np.cumsum(looped)]).astype(pattern.indptr.dtype)
    arrays = (pattern.data[kept], pattern.indices[kept], pattern.indptr - before)
    return sparse.csr_array(arrays, shape=graph.shape)


def checked_integer(name: str, value: object, lowest: int) -> int:
    """Return a parameter as an int.

    Raises
    ------
    ArgumentError
        If it is no integer or below `lowest`.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < lowest:
        raise ArgumentError(name, f"got {value!r}", f"an integer of at least {lowest}")
    return int(value)
