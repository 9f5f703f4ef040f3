"""GCN's edge weights, computed in each training step, as inductive training needs them.

In inductive training each step has another subgraph, so that weights cannot be precomputed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from accelviz.devices.choice import owner
from accelviz.layers.dense import launch
from accelviz.layers.products import Matrix


def gcn_weights(matrix: Matrix, values: Any = None) -> Any:
    """Return GCN's weights `e[i, j] / sqrt(d[i] d[j])`, where d are the row sums of e.

    Equation 2 of fuseGNN (ICCAD 2020, section 5.1), on a GPU by its two fused kernels. The paper
    has d + 1 in place of d and handles self loops in the aggregation. Here self loops are edges,
    added by `adjacency.with_diagonal`.

    Parameters
    ----------
    matrix : Matrix
        A square matrix.
    values : array of float32, shape (nnz,), optional
        Weight e of each edge, 1 by default.

    Returns
    -------
    array of float32, shape (nnz,)
        0 for an edge of a node whose row sum is 0 or less.
    """
    products, rows, columns = matrix.products, matrix.rows, matrix.columns
    with products.clock("gcn_weights"):
        if values is None:
            values = products.xp.ones(matrix.graph.nnz, np.float32)
        if (device := owner(values)) is not None:
            sums, weights = device.zeros(matrix.graph.n_rows), device.empty(rows.size)
            n_edges = np.int64(rows.size)
            arguments = {"rows": rows, "values": values, "sums": sums, "n_edges": n_edges}
            launch(device, "row_sums", rows.size, arguments, file="gcn_weights")
            arguments = {"rows": rows, "columns": columns, "values": values, "sums": sums}
            arguments |= {"weights": weights, "n_edges": n_edges}
            launch(device, "gcn_weights", rows.size, arguments, file="gcn_weights")
            return weights
        sums = np.bincount(rows, values, matrix.graph.n_rows)
        root = np.zeros(sums.size)
        root[sums > 0] = sums[sums > 0] ** -0.5
        return (values * root[rows] * root[columns]).astype(np.float32)
