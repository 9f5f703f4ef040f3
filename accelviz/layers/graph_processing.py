"""Weights of edges by their ends' degrees, made anew in each step, as inductive training needs."""

from __future__ import annotations

from typing import Any

import numpy as np

from accelviz.devices.choice import owner
from accelviz.layers.dense import launch
from accelviz.layers.products import Matrix


def gcn_weights(matrix: Matrix, values: Any = None) -> Any:
    """Return GCN's weights, `e[i, j] / sqrt(d[i] d[j])`, d being the sums of the rows of e.

    Equation 2 of fuseGNN (ICCAD 2020, section 5.1), on a GPU by its two fused kernels. It writes
    d + 1 and leaves self loops to the aggregation; here they are edges, which
    `adjacency.with_diagonal` adds.

    Parameters
    ----------
    matrix : Matrix
        Square.
    values : array of float32, shape (nnz,), optional
        e of each edge; 1 if not given.

    Returns
    -------
    array of float32, shape (nnz,)
        0 where one of the sums is 0 or less.
    """
    products, rows, columns = matrix.products, matrix.rows, matrix.columns
    with products.clock("gcn_weights"):
        if values is None:
            values = products.xp.ones(matrix.graph.nnz, np.float32)
        if (device := owner(values)) is not None:
            sums, weights = device.zeros(matrix.graph.n_rows), device.empty(rows.size)
            size = {"n_edges": np.int64(rows.size)}
            edges = {"rows": rows, "values": values, "sums": sums, **size}
            launch(device, "row_sums", rows.size, edges, file="gcn_weights")
            edges = {"rows": rows, "columns": columns, "values": values, "sums": sums}
            edges |= {"weights": weights, **size}
            launch(device, "gcn_weights", rows.size, edges, file="gcn_weights")
            return weights
        sums = np.bincount(rows, values, matrix.graph.n_rows)
        root = np.zeros(sums.size)
        root[sums > 0] = sums[sums > 0] ** -0.5
        return (values * root[rows] * root[columns]).astype(np.float32)
