"""Analysis of a profiler's counters: the factors of the number of cycles of a launch."""

from __future__ import annotations

import pandas as pd

from accelviz.measure.comparison import Cases, named, selected
from accelviz.measure.records import recorded

#: Schedulers per SM, and resident warps per scheduler, of an H200.
SCHEDULERS, SCHEDULER_WARPS = 4, 16
_SHUFFLED = "-shuffled"


def recorded_counters(name: str, cases: Cases | None = None) -> pd.DataFrame:
    """Read recorded profiler counters of cases.

    Parameters
    ----------
    name : str
        Name of a table of `records.recorded`, such as "counters-h200".
    cases : str, iterable of str, or mapping of str to str, optional
        Cases as of `comparison.labelled`, such as "accel_gcn partition=block", or a mapping of
        names to cases.

    Returns
    -------
    DataFrame
        Records of the cases. `strategy` is the name of the case. The suffix "-shuffled" of graph
        names becomes the column `order` ("natural" or "shuffled").

    Raises
    ------
    ArgumentError
        If there is no such table, or it lacks a case.
    """
    table = recorded(name)
    rows = [
        selected(table, case, ("graph", "strategy", "parameters")).assign(strategy=called)
        for called, case in named(table, cases).items()
    ]
    counters = pd.concat(rows, ignore_index=True)
    shuffled = counters["graph"].str.endswith(_SHUFFLED)
    counters["order"] = shuffled.map({True: "shuffled", False: "natural"})
    counters["graph"] = counters["graph"].str.removesuffix(_SHUFFLED)
    return counters


def issue_factors(counters: pd.DataFrame, sms: int = 132) -> pd.DataFrame:
    """Factor the cycles of launches on an H200 into instructions, activity and issue rate.

    `cycles` is approximately `instructions` / (4 `sms`) / `issue` / `busy`, and `issue` is `warps`
    / `cycles_each`. It is approximate because the profiler counts in several runs of the launch.

    Parameters
    ----------
    counters : DataFrame
        From `recorded_counters`. Missing counters give NaN.
    sms : int
        Number of SMs of the GPU.

    Returns
    -------
    DataFrame
        One record per record of `counters`, with the same index:

        - `instructions`: number of warp instructions;
        - `instructions_each`: mean number per scheduler;
        - `busy`: share of the cycles in which an SM has a resident warp, mean over the SMs;
        - `issue`: share of these active cycles in which a scheduler issues an instruction;
        - `warps`: resident warps per scheduler, mean over the active cycles;
        - `cycles_each`: mean cycles between two instructions of a warp;
        - `for_memory`: those of them stalled on data from global or local memory;
        - `cycles`: duration of the launch in cycles.
    """
    missing = pd.Series(float("nan"), counters.index)
    elapsed = counters.get("elapsed_cycles", missing)
    issue = counters["issue_active_pct"] / 100
    warps = SCHEDULER_WARPS * counters["warps_active_pct"] / 100
    return pd.DataFrame(
        {
            "instructions": counters["instructions"],
            "instructions_each": counters["instructions"] / (SCHEDULERS * sms),
            "busy": counters.get("active_cycles", missing) / elapsed,
            "issue": issue,
            "warps": warps,
            "cycles_each": warps / issue,
            "for_memory": counters.get("stalled_on_memory_pct", missing) / 100,
            "cycles": elapsed,
        }
    )
