"""What the orders read: the undirected pattern of a square graph, and whole-number parameters."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from accelviz.errors import ArgumentError, GraphError
from accelviz.graph import Graph


def undirected_pattern(graph: Graph) -> sparse.csr_array:
    """Return the pattern of `A + A^T` without its diagonal: who is whose neighbor.

    Weights do not count, as a kernel reads the same row of `X` for a small weight as for a large
    one. Neither do self loops, which span no distance in any order.

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
    # SciPy stores no sum that is zero, so self loops vanish.
    apart = np.repeat(np.arange(rows, dtype=np.int32), graph.degrees) != graph.column_indices
    arrays = (apart.astype(np.int8), view.indices, view.indptr)
    pattern = sparse.csr_array(arrays, shape=graph.shape)
    pattern = pattern + pattern.T.tocsr()
    pattern.data[:] = 1
    return pattern


def checked_integer(name: str, value: object, lowest: int) -> int:
    """Return `value` as an int if it is one of at least `lowest`; else raise an ArgumentError."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < lowest:
        raise ArgumentError(name, f"got {value!r}", f"an integer of at least {lowest}")
    return int(value)
