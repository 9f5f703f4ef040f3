"""Assignment A5: what of a report can be checked by a machine, which is its sweep."""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

import numpy as np
import pandas as pd

from accelviz.analysis.sweep import sweep
from accelviz.course.checks.common import case, require, share_of
from accelviz.datasets import bundled_graphs, load_graph
from accelviz.errors import AccelvizError
from accelviz.graph import Graph

#: Columns that the table must have, and how many different values of a parameter.
COLUMNS = ("max_block_warps", "max_warp_nzs", "blocks", "idle_share", "metadata_bytes")
FEWEST = {"max_block_warps": 6, "max_warp_nzs": 3}
#: Statistics that are held against a sweep of one's own.
CHECKED = ("blocks", "idle_share", "metadata_bytes")
#: Rounding that a table may have: to three decimals.
_TOLERANCE = 6e-4
#: Rows of a table that are looked at, and nonzeros of a graph that is worth a sweep.
_MOST_ROWS, _FEWEST_NONZEROS = 2_000, 1_000


def sweep_table(table: Any, graph: Any) -> None:
    """Ask for a table of a sweep that is large enough to say something.

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
        require(len(table) <= _MOST_ROWS, f"it has {len(table):,} rows; {_MOST_ROWS:,} will do")
        missing = [name for name in COLUMNS if name not in table]
        require(not missing, f"it lacks the columns {', '.join(missing)}")
        for name, fewest in FEWEST.items():
            values = table[name].nunique()
            require(values >= fewest, f"it has {values} values of {name}; {fewest} are asked for")
        require(not table[list(COLUMNS)].isna().to_numpy().any(), "some numbers are missing")
        rows = _of_accel_gcn(table)
        values = [rows[name].nunique() for name in FEWEST]
        n_settings, asked = len(rows[list(FEWEST)].drop_duplicates()), math.prod(values)
        enough = all(map(operator.ge, values, FEWEST.values()))
        require(
            enough and n_settings == asked, f"it has {n_settings} settings of {asked} combinations"
        )


def sweep_numbers(table: Any, graph: Any, points: float) -> float:
    """Return points for the share of a table's rows that a sweep of the same graph confirms.

    Parameters
    ----------
    table : DataFrame
        One that passes `sweep_table`. A setting counts once.
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
        rows = _of_accel_gcn(table)
        require(len(rows), "no row of it is about accel_gcn")
        numbers = rows[list(COLUMNS)].apply(pd.to_numeric, errors="coerce").to_numpy(float)
        confirmed, refuted = set(), set()
        for warps, nonzeros, *told in numbers.tolist():
            true = _true(graph, warps, nonzeros)
            if true is not None and np.allclose(told, true, rtol=0, atol=_TOLERANCE):
                confirmed.add((warps, nonzeros))
            else:
                refuted.add((warps, nonzeros))
        require(confirmed, f"no row of it is what a sweep of {_graph(graph).name} gives")
    return share_of(points, len(confirmed - refuted) / len(confirmed | refuted))


def _of_accel_gcn(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["strategy"] == "accel_gcn"] if "strategy" in table else table


def _graph(name: Any) -> Graph:
    """Open a graph by the name of a bundled one: a student's own could be of one nonzero."""
    known = bundled_graphs()
    require(isinstance(name, str) and name in known, f"graph is none of {', '.join(known)}")
    graph = load_graph(name)
    require(graph.nnz >= _FEWEST_NONZEROS, f"{name} is too small; take cora or pubmed")
    return graph


@functools.cache
def _true(graph: str, warps: float, nonzeros: float) -> list[float] | None:
    """Return what a sweep of one setting gives, None if there is no such setting."""
    if warps != int(warps) or nonzeros != int(nonzeros):
        return None
    try:
        table = sweep(graph, max_block_warps=int(warps), max_warp_nzs=int(nonzeros))
    except AccelvizError:
        return None
    return [float(table[name].item()) for name in CHECKED]
