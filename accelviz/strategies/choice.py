"""When tensor cores pay: a rule on how often the rows of a window share a column."""

from __future__ import annotations

from typing import Any

import numpy as np

from accelviz.graph import Graph, Pattern

#: Rows of a window, and from so many nonzeros to a distinct column of one on `window_tiles` was
#: faster than `lane_groups` on an H200, as exact as it. SpMM: windows of 16 rows were 0.7 times as
#: fast with 1.7, 0.98 to 1.09 times with 3.1; between them, or without one of the graphs, the line
#: crosses 1 at 2.75 to 2.8. SDDMM: 0.5 times with 1.7, 1.0 to 1.1 with 3.1, 1.8 to 1.9 with 6.0.
LEAST_REUSE = {"spmm": (16, 2.8), "sddmm": (16, 3.0)}
#: Rows of a window that pays. With 32 an SpMM was 1.05 to 1.07 times as fast as with 16.
WINDOW_ROWS = {"spmm": 32, "sddmm": 16}
#: Fewer columns were not tried, and with fewer nonzeros most of a GPU is idle: facebook, of 176,468
#: nonzeros and 3.3 of them to a distinct column in Rabbit order, took twice as long.
LEAST_COLUMNS, LEAST_NONZEROS = 128, 1 << 22
#: Windows that are looked at.
_SAMPLE = 512


def sampled_reuse(graph: Graph | Pattern, rows: int) -> float:
    """Return the nonzeros over the distinct columns of windows, of up to 512 evenly spaced ones.

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
    rows, least = LEAST_REUSE[operation]
    if sampled_reuse(graph, rows) < least:
        return "lane_groups", {}
    return "window_tiles", {"window_rows": WINDOW_ROWS[operation]}
