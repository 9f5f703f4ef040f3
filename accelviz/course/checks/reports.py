"""Assignment A5: what of a report can be checked by a machine, which is its sweep."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from accelviz.analysis.sweep import sweep
from accelviz.course.checks.common import case, require, share_of
from accelviz.datasets import load_graph
from accelviz.errors import AccelvizError

#: Columns that the table must have, and how many different values of a parameter.
COLUMNS = ("max_block_warps", "max_warp_nzs", "blocks", "idle_share", "metadata_bytes")
FEWEST = {"max_block_warps": 6, "max_warp_nzs": 3}
#: Statistics that are held against a sweep of one's own.
CHECKED = ("blocks", "idle_share", "metadata_bytes")
#: Rounding that a table may have: to three decimals.
_TOLERANCE = 6e-4


def sweep_table(table: Any, graph: Any) -> None:
    """Ask for a table of a sweep that is large enough to say something.

    Parameters
    ----------
    table : DataFrame
        The student's.
    graph : Graph, or anything `load_graph` takes

    Raises
    ------
    AssertionError
        Saying what is missing.
    """
    with case("the table of the sweep"):
        load_graph(graph)
        require(isinstance(table, pd.DataFrame), f"it is a {type(table).__name__}, no DataFrame")
        missing = [name for name in COLUMNS if name not in table]
        require(not missing, f"it lacks the columns {', '.join(missing)}")
        for name, fewest in FEWEST.items():
            values = table[name].nunique()
            require(values >= fewest, f"it has {values} values of {name}; {fewest} are asked for")
        require(not table[list(COLUMNS)].isna().to_numpy().any(), "some numbers are missing")


def sweep_numbers(table: Any, graph: Any, points: float) -> float:
    """Return points for the share of a table's rows that a sweep of the same graph confirms.

    Parameters
    ----------
    table : DataFrame
        One that passes `sweep_table`.
    graph : Graph, or anything `load_graph` takes
    points : float

    Returns
    -------
    float
        0 to `points`, to two decimals.

    Raises
    ------
    AssertionError
        If `sweep_table` does, or if no row is confirmed.
    """
    sweep_table(table, graph)
    with case("the numbers of the sweep"):
        own = table
        if "strategy" in own:
            own = own[own["strategy"] == "accel_gcn"]
        require(len(own), "no row of it is about accel_gcn")
        right = 0
        for warps, rows in own.groupby("max_block_warps"):
            for nonzeros, same in rows.groupby("max_warp_nzs"):
                right += _confirmed(same, graph, warps, nonzeros)
        require(right, f"no row of it is what a sweep of {load_graph(graph).name} gives")
    return share_of(points, right / len(own))


def _confirmed(rows: pd.DataFrame, graph: Any, warps: Any, nonzeros: Any) -> int:
    try:
        (true,) = sweep(graph, max_block_warps=int(warps), max_warp_nzs=int(nonzeros)).to_dict(
            "records"
        )
    except AccelvizError:
        return 0
    close = [
        np.isclose(rows[name].to_numpy(float), true[name], rtol=0, atol=_TOLERANCE)
        for name in CHECKED
    ]
    return int(np.all(close, axis=0).sum())
