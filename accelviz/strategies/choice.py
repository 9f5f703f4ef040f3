"""Choice between CUDA cores (`lane_groups`) and tensor cores (`window_tiles`) by the reuse.

The reuse of a window of rows is its number of nonzeros divided by its number of distinct columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from accelviz.graph import Graph, Pattern

#: (rows of a window, least reuse at which `window_tiles` is chosen). Speed of `window_tiles` over
#: `lane_groups` on an H200: SpMM 0.7 at a reuse of 1.7 and 0.98 to 1.09 at 3.1, interpolated 1 at
#: 2.8; SDDMM 0.5 at 1.7, 1.0 to 1.1 at 3.1, 1.8 to 1.9 at 6.0.
LEAST_REUSE = {"spmm": (16, 2.8), "sddmm": (16, 3.0)}
#: Rows of a window of the chosen plan. SpMM with 32 was 1.05 to 1.07 times as fast as with 16.
WINDOW_ROWS = {"spmm": 32, "sddmm": 16}
#: Least sizes for `window_tiles`. Fewer columns were not measured. With few nonzeros most SMs are
#: idle: facebook (176,468 nonzeros, reuse 3.3 in Rabbit order) took twice as long.
LEAST_COLUMNS, LEAST_NONZEROS = 128, 1 << 22
#: Most windows of a sample.
_SAMPLE = 512


def sampled_reuse(graph: Graph | Pattern, rows: int) -> float:
    """Return the reuse of up to 512 evenly spaced windows of `rows` rows, 1 without nonzeros."""
    n_windows = -(-graph.n_rows // rows)
    windows = np.unique(np.linspace(0, max(n_windows - 1, 0), _SAMPLE).astype(np.int64))
    nonzeros = distinct = 0
    for window in windows[: graph.n_rows]:
        bounds = [window * rows, min((window + 1) * rows, graph.n_rows)]
        first, last = graph.row_pointers[bounds]
        nonzeros += int(last - first)
        distinct += np.unique(graph.column_indices[first:last]).size
    return nonzeros / distinct if distinct else 1.0


def choose_strategy(
    graph: Graph | Pattern, n_cols: int, operation: str = "spmm"
) -> tuple[str, dict[str, Any]]:
    """Choose the faster of `lane_groups` and `window_tiles`, both with float32's accuracy.

    Parameters
    ----------
    graph : Graph or Pattern
    n_cols : int
        Number of columns of the features.
    operation : {"spmm", "sddmm"}

    Returns
    -------
    strategy : str
    parameters : dict
        Settings of the strategy, for `accelviz.plan`.

    Examples
    --------
    >>> import accelviz
    >>> choose_strategy(accelviz.load_graph("cora"), 128)
    ('lane_groups', {})
    """
    rows, least_reuse = LEAST_REUSE[operation]
    too_small = n_cols < LEAST_COLUMNS or graph.nnz < LEAST_NONZEROS
    if too_small or sampled_reuse(graph, rows) < least_reuse:
        return "lane_groups", {}
    return "window_tiles", {"window_rows": WINDOW_ROWS[operation]}
