"""When tensor cores pay: a rule on how often the rows of a window share a column."""

from __future__ import annotations

from typing import Any

import numpy as np

from accelviz.graph import Graph, Pattern

#: Of float32's accuracy: from so many nonzeros to a distinct column of windows of 8 rows
#: `window_tiles` was faster than `lane_groups` on an H200, at 128 columns and 4.7 million nonzeros:
#: it was 0.98 and 1.02 times as fast at 2.2 (SpMM and SDDMM), 1.22 and 1.31 times at 3.1.
LEAST_REUSE = 2.5
#: From so many on SpMM takes windows of 16 rows: 1.83 against 1.41 times as fast at 8.0.
WIDE_REUSE = 7.5
#: Fewer columns and nonzeros were not faster: facebook, of 176,468 nonzeros and 2.4 of them to a
#: distinct column in Rabbit order, took twice as long.
LEAST_COLUMNS, LEAST_NONZEROS = 128, 1 << 22
#: Windows that are looked at.
_SAMPLE = 512


def sampled_reuse(graph: Graph | Pattern, rows: int) -> float:
    """Return the nonzeros over the distinct columns of windows, of up to 512 evenly spaced ones.

    Parameters
    ----------
    graph : Graph or Pattern
    rows : int
        Rows of a window.

    Returns
    -------
    float
        At least 1; 1 where there is no nonzero.
    """
    windows = -(-graph.n_rows // rows)
    chosen = np.unique(np.linspace(0, max(windows - 1, 0), _SAMPLE).astype(np.int64))
    nonzeros = distinct = 0
    for window in chosen[: graph.n_rows]:
        ends = window * rows, min((window + 1) * rows, graph.n_rows)
        first, last = graph.row_pointers[list(ends)]
        nonzeros += int(last - first)
        distinct += np.unique(graph.column_indices[first:last]).size
    return nonzeros / distinct if distinct else 1.0


def chosen(
    graph: Graph | Pattern, n_cols: int, operation: str = "spmm"
) -> tuple[str, dict[str, Any]]:
    """Choose between `lane_groups` and tensor cores in the accuracy of float32.

    Parameters
    ----------
    graph : Graph or Pattern
    n_cols : int
        Columns of the features.
    operation : {"spmm", "sddmm"}

    Returns
    -------
    strategy : str
    parameters : dict
        For `accelviz.plan`.

    Examples
    --------
    >>> import accelviz
    >>> chosen(accelviz.load_graph("cora"), 128)
    ('lane_groups', {})
    """
    if n_cols < LEAST_COLUMNS or graph.nnz < LEAST_NONZEROS:
        return "lane_groups", {}
    if sampled_reuse(graph, 8) < LEAST_REUSE:
        return "lane_groups", {}
    if operation == "spmm" and sampled_reuse(graph, 16) >= WIDE_REUSE:
        return "window_tiles", {"window_rows": 16}
    return "window_tiles", {}
