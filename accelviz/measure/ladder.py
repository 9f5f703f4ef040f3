"""The optimization ladder: kernels from one thread per row to `lane_groups`, and their gains.

Each rung is a strategy with parameters and adds one optimization to the rung below it.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from accelviz.measure.comparison import labelled, latest

#: Parameters of `lane_groups` that disable all of its optimizations.
OFF: dict[str, Any] = {
    "vector": 1,
    "stage": False,
    "at_once": 1,
    "group_nzs": 32,
    "short_nzs": 1,
    "block_order": "degree",
    "column_tile": 1 << 20,
}
#: Rung to the parameters of `OFF` that it leaves to the strategy's rule; the first identifies it.
RELEASED: dict[str, tuple[str, ...]] = {
    "16-byte loads": ("vector",),
    "nonzeros staged": ("stage",),
    "more in flight": ("at_once",),
    "short rows packed": ("short_nzs", "group_nzs"),
    "blocks in order": ("block_order",),
    "tiles of columns": ("column_tile",),
}
#: Name of the reference above the last rung.
RIVAL = "cuSPARSE"


def ladder() -> dict[str, tuple[str, dict[str, Any]]]:
    """Return rung to strategy and parameters, from lowest to highest, then the reference's."""
    off = dict(OFF)
    rungs: dict[str, tuple[str, dict[str, Any]]] = {
        "a thread a row": ("row_thread", {}),
        "a warp a row": ("ge_spmm", {}),
        "equal rows": ("accel_gcn", {}),
        "lane groups": ("lane_groups", off),
    }
    for name, settings in RELEASED.items():
        off = {key: value for key, value in off.items() if key not in settings}
        rungs[name] = ("lane_groups", off)
    return {**rungs, RIVAL: ("cusparse", {})}


def ladder_cases() -> dict[str, str]:
    """Return rung to case, in the notation of `comparison.labelled`."""
    cases = {}
    for rung, (strategy, parameters) in ladder().items():
        words = [strategy, *(f"{key}={value}" for key, value in parameters.items())]
        if rung in RELEASED:
            parameter = RELEASED[rung][0]
            words.append(f"{parameter}!={OFF[parameter]}")
        cases[rung] = " ".join(words)
    return cases


def climbed(table: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Return the warm times of the rungs, their gains, and their shares of the limit.

    Parameters
    ----------
    table : DataFrame
        Results of `benchmark` with all cases of `ladder`, such as the recorded "ladder-h200".

    Returns
    -------
    times : DataFrame
        Medians in microseconds. The index has the rungs and, last, the reference; the columns are
        graphs and column counts.
    gains : DataFrame
        Time of the rung below over the time of the rung, without the lowest and the reference.
    shares : DataFrame
        Random-gather limit over the time.

    Raises
    ------
    ArgumentError
        If the table lacks a rung.
    """
    rows = latest(labelled(table[table["state"] == "warm"], ladder_cases()))
    rows["share"] = rows["gather_limit_us"] / rows["median_us"]
    at = ["graph", "columns"]
    wide = rows.pivot_table(["median_us", "share"], "strategy", at).reindex([*ladder()])
    times = wide["median_us"]
    return times, (times.shift() / times).iloc[1:-1], wide["share"]
