"""What a profiler counted of launches, put together: why one took more cycles than another."""

from __future__ import annotations

import pandas as pd

from accelviz.measure.comparison import Cases, named, selected
from accelviz.measure.records import recorded

#: Of an SM of an H200: schedulers, and warps for each of which one has room.
SCHEDULERS, SCHEDULER_WARPS = 4, 16
_SHUFFLED = "-shuffled"


def recorded_counters(name: str, cases: Cases | None = None) -> pd.DataFrame:
    """Read recorded counters of the launches of some cases.

    Parameters
    ----------
    name : str
        As `records.recorded` takes it, such as "counters-h200".
    cases : str, iterable of str, or mapping of str to str, optional
        As of `comparison.labelled`: "accel_gcn partition=block", or what to call it to the case.

    Returns
    -------
    DataFrame
        The rows of the cases, with their names in the column `strategy`, and the vertex order, in
        the column `order` ("natural" or "shuffled"), taken off the graph's name.

    Raises
    ------
    ArgumentError
        If there are no such records, or a case is not among them.
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
    """Split the cycles of launches on an H200 into what makes them.

    `cycles` is about `instructions` / (4 `sms`) / `issue` / `busy`, and `issue` is `warps` /
    `cycles_each`. About, as the profiler runs a launch several times to count all.

    Parameters
    ----------
    counters : DataFrame
        From `recorded_counters`. What was not recorded gives NaN.
    sms : int
        Of the GPU; for `instructions_each`.

    Returns
    -------
    DataFrame
        A row for each one of `counters`, with its index:

        - `instructions`: of all warps together;
        - `instructions_each`: of each scheduler, in the mean;
        - `busy`: share of the launch's cycles in which an SM had a warp, in the mean;
        - `issue`: share of these in which a scheduler found an instruction to issue;
        - `warps`: warps of a scheduler, in the mean of these cycles;
        - `cycles_each`: cycles of a warp from one of its instructions to the next;
        - `for_memory`: those of them in which it waits for data from global or local memory;
        - `cycles`: of the launch.
    """
    nothing = pd.Series(float("nan"), counters.index)
    elapsed = counters.get("elapsed_cycles", nothing)
    issue = counters["issue_active_pct"] / 100
    warps = SCHEDULER_WARPS * counters["warps_active_pct"] / 100
    return pd.DataFrame(
        {
            "instructions": counters["instructions"],
            "instructions_each": counters["instructions"] / (SCHEDULERS * sms),
            "busy": counters.get("active_cycles", nothing) / elapsed,
            "issue": issue,
            "warps": warps,
            "cycles_each": warps / issue,
            "for_memory": counters.get("stalled_on_memory_pct", nothing) / 100,
            "cycles": elapsed,
        }
    )
