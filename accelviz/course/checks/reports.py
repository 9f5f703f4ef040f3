"""Checks of assignment A5: the table of a report's parameter sweep of Accel-GCN.

The text of the report is graded by hand. A row of the table is right if a sweep of the same graph
with the same setting (`max_block_warps`, `max_warp_nzs`, `n_cols`) gives the same statistics.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pandas as pd

from accelviz.analysis.sweep import sweep
from accelviz.course.checks.common import case, remarks, require, share_of
from accelviz.datasets import bundled_graphs, load_graph
from accelviz.errors import AccelvizError
from accelviz.graph import Graph

#: Minimum number of different values of each parameter; without `n_cols`, it is that of `sweep`.
MIN_VALUES = {"max_block_warps": 6, "max_warp_nzs": 3, "n_cols": 1}
_N_COLS = 64
#: Statistics that are compared with a sweep.
STATISTICS = ("blocks", "idle_share", "metadata_bytes")
#: Columns that the table must have.
COLUMNS = (*MIN_VALUES, *STATISTICS)
#: Largest difference of a number that was rounded to three decimals.
_TOLERANCE = 6e-4
#: Most rows of a table, and fewest nonzeros of a graph.
_MAX_ROWS, _MIN_NONZEROS = 2_000, 1_000


def sweep_table(table: Any, graph: Any) -> None:
    """Require a table of a full factorial sweep with enough values of each parameter.

    Parameters
    ----------
    table : DataFrame
        The student's.
    graph : str
        Name of a bundled graph.
    """
    with case("the table of the sweep"):
        _graph(graph)
        require(isinstance(table, pd.DataFrame), f"it is a {type(table).__name__}, no DataFrame")
        require(len(table) <= _MAX_ROWS, f"it has {len(table):,} rows; {_MAX_ROWS:,} will do")
        missing = [name for name in COLUMNS if name not in table and name != "n_cols"]
        require(not missing, f"it lacks the columns {', '.join(missing)}")
        rows = _accel_gcn_rows(table)
        for name, minimum in MIN_VALUES.items():
            count = rows[name].nunique()
            require(count >= minimum, f"it has {count} values of {name}; {minimum} are asked for")
        require(not rows.isna().to_numpy().any(), "some numbers are missing")
        is_whole = rows[list(MIN_VALUES)] % 1 == 0
        require(is_whole.to_numpy().all(), "some settings are no whole numbers")
        counts = [rows[name].nunique() for name in MIN_VALUES]
        n_settings, n_expected = len(rows[list(MIN_VALUES)].drop_duplicates()), math.prod(counts)
        problem = f"it has {n_settings} settings of {n_expected} combinations"
        require(n_settings == n_expected, problem)


def sweep_numbers(table: Any, graph: Any, points: float) -> float:
    """Return points for the share of a table's rows that a sweep of the same graph confirms.

    Parameters
    ----------
    table : DataFrame
        The student's, checked by `sweep_table`. A setting counts once, and is wrong if any of its
        rows is.
    graph : str
        Name of a bundled graph.
    points : float

    Returns
    -------
    float
        0 to `points`, to two decimals.
    """
    sweep_table(table, graph)
    with case("the numbers of the sweep"):
        rows = _accel_gcn_rows(table)
        confirmed, refuted = set(), set()
        for warps, nonzeros, n_cols, *statistics in rows.to_numpy().tolist():
            setting = warps, nonzeros, n_cols
            expected = _swept(graph, *setting)
            if expected and np.allclose(statistics, expected, rtol=0, atol=_TOLERANCE):
                confirmed.add(setting)
            else:
                refuted.add(setting)
        ending = f"gives with n_cols={n_cols:g} (a column n_cols may name another number)"
        require(confirmed, f"no row of it is what a sweep of {_graph(graph).name} {ending}")
    if refuted:
        settings = f"{len(refuted)} of {len(confirmed | refuted)} settings"
        first = tuple(map(int, min(refuted)))
        remarks.append(f"{settings} are not what a sweep gives, such as {first}")
    return share_of(points, len(confirmed - refuted) / len(confirmed | refuted))


def _accel_gcn_rows(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of Accel-GCN as numbers, as texts such as "1" and "01" are one of them."""
    rows = table[table["strategy"] == "accel_gcn"] if "strategy" in table else table
    rows = rows if "n_cols" in rows else rows.assign(n_cols=_N_COLS)
    return rows[list(COLUMNS)].apply(pd.to_numeric, errors="coerce").astype(float)


def _graph(name: Any) -> Graph:
    """Load a bundled graph by name; a graph of the student's own could have one nonzero."""
    known = bundled_graphs()
    require(isinstance(name, str) and name in known, f"graph is none of {', '.join(known)}")
    graph = load_graph(name)
    require(graph.nnz >= _MIN_NONZEROS, f"{name} is too small; take cora or pubmed")
    return graph


@functools.cache
def _swept(graph: str, *setting: float) -> list[float] | None:
    """Return `STATISTICS` of a sweep of one setting, None if there is no such setting."""
    try:
        warps, nonzeros, n_cols = map(int, setting)
        table = sweep(graph, None, n_cols, max_block_warps=warps, max_warp_nzs=nonzeros)
    except AccelvizError:
        return None
    return [float(table[name].item()) for name in STATISTICS]
