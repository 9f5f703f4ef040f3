"""The ladder: from one thread a row to our own kernel, a rung at a time; what each rung gains."""

from __future__ import annotations

from typing import Any

import pandas as pd

from accelviz.measure.comparison import labelled, latest

#: Our kernel without any of its ideas.
OFF: dict[str, Any] = {
    "vector": 1,
    "stage": False,
    "at_once": 1,
    "group_nzs": 32,
    "short_nzs": 1,
    "block_order": "degree",
    "column_tile": 1 << 20,
}
#: What a rung leaves to the strategy's rule; the first tells it from the one below.
RELEASED: dict[str, tuple[str, ...]] = {
    "16-byte loads": ("vector",),
    "nonzeros staged": ("stage",),
    "more in flight": ("at_once",),
    "short rows packed": ("short_nzs", "group_nzs"),
    "blocks in order": ("block_order",),
    "tiles of columns": ("column_tile",),
}
#: What is compared with, above the last rung.
RIVAL = "cuSPARSE"


def ladder() -> dict[str, tuple[str, dict[str, Any]]]:
    """Return each rung's strategy and parameters, from the lowest to our own, then the rival's."""
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
    """Return each rung's name to its case, as `comparison.labelled` takes it."""
    cases = {}
    for rung, (strategy, parameters) in ladder().items():
        words = [strategy, *(f"{key}={value}" for key, value in parameters.items())]
        if rung in RELEASED:
            newest = RELEASED[rung][0]
            words.append(f"{newest}!={OFF[newest]}")
        cases[rung] = " ".join(words)
    return cases


def climbed(table: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Return the warm times of the rungs, what each gains, and its share of the limit.

    Parameters
    ----------
    table : DataFrame
        Results of `benchmark` with all the cases of `ladder`, such as the recorded "ladder-h200".

    Returns
    -------
    times : DataFrame
        Microseconds: a row for each rung, the rival last, a column for each graph and column count.
    gains : DataFrame
        The time of the rung below over the rung's own; the lowest rung and the rival have none.
    shares : DataFrame
        The random-gather limit over the time.

    Raises
    ------
    ArgumentError
        If a rung is not in the table.
    """
    rows = latest(labelled(table[table["state"] == "warm"], ladder_cases()))
    rows["share"] = rows["gather_limit_us"] / rows["median_us"]
    at = ["graph", "columns"]
    wide = rows.pivot_table(["median_us", "share"], "strategy", at).reindex([*ladder()])
    times = wide["median_us"]
    return times, (times.shift() / times).iloc[1:-1], wide["share"]
