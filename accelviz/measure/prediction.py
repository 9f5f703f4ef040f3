"""What a setting should take by its warp time alone, beside what was recorded."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from accelviz.errors import ArgumentError
from accelviz.graph import Graph
from accelviz.measure import records
from accelviz.measure.harness import fingerprint
from accelviz.plans import Operation, Strategy
from accelviz.strategies import SPMM, find_strategy

#: Recorded tables in which a graph's times are looked for; of equal cases the first counts.
TABLES = (
    *("bundled-h200", "partitions-h200", "sweeps-h200", "strategies-h200", "ablations-h200"),
    *("columns-h200", "ours-h200", "sddmm-h200", "operations-h200"),
)
_COLUMNS = [
    *("hardware", "date", "graph", "fingerprint", "operation", "strategy", "parameters", "columns"),
    *("state", "median_us", "gather_limit_us"),
]


@dataclass(frozen=True)
class Timing:
    """What one setting takes, in microseconds; None where nothing was recorded.

    Attributes
    ----------
    recorded : float, optional
        Median of the warm runs of this very setting.
    predicted : float, optional
        What the strategy's default setting took, times the ratio of their warp times (slots).
    basis : float, optional
        What the default setting took.
    limit : float, optional
        The random-gather limit for this graph and column count.
    hardware, date : str
        Where and when.
    """

    recorded: float | None = None
    predicted: float | None = None
    basis: float | None = None
    limit: float | None = None
    hardware: str = ""
    date: str = ""


def recorded_times(graph: Graph, operation: Operation = SPMM) -> pd.DataFrame:
    """Return what was recorded of an operation on exactly this graph, warm, on a GPU.

    Empty if nothing was. The column `setting` has the parameters as a dict of texts.
    """
    # Strategies of several operations have one name.
    times = _warm(operation.name)
    times = times[times["graph"] == graph.name]
    if len(times):
        times = times[times["fingerprint"] == fingerprint(graph)].reset_index(drop=True)
    return times.assign(setting=[parameters_of(text) for text in times["parameters"]])


def recorded_graphs(operation: Operation) -> tuple[str, ...]:
    """Return the names of the graphs of which something was recorded of an operation."""
    return tuple(_warm(operation.name)["graph"].unique())


@functools.cache
def _warm(operation: str) -> pd.DataFrame:
    """Return the warm times of an operation in all `TABLES`, those of the first ones first."""
    tables = [pd.DataFrame(columns=_COLUMNS)]
    for name in TABLES:
        with contextlib.suppress(ArgumentError):  # a checkout without that table
            table = records.recorded(name)[_COLUMNS]
            table = table[(table["state"] == "warm") & (table["operation"] == operation)]
            tables += [table] if len(table) else []
    return pd.concat(tables[1:] or tables, ignore_index=True)


def timing(
    times: pd.DataFrame,
    strategy: Strategy,
    n_cols: int,
    parameters: Mapping[str, Any],
    slots: Callable[[Mapping[str, Any]], int | None],
) -> Timing:
    """Look a setting up among the recorded times, and predict it from the default setting's.

    Parameters
    ----------
    times : DataFrame
        From `recorded_times`.
    strategy : Strategy
    n_cols : int
    parameters : mapping
        The strategy's own; its defaults where they are not given.
    slots : callable
        `slots(parameters)` gives the warp time of a setting on this graph, None if not known.

    Notes
    -----
    The prediction holds everything but the warp time equal. What it leaves out is what matters
    more often than not: memory, caches, and the blocks that an SM can hold
    (`benchmarks/measure/warp_time.py` compares the two for many settings).
    """
    times = times[(times["strategy"] == strategy.name) & (times["columns"] == n_cols)]
    if times.empty:
        return Timing()
    default = strategy.defaults()
    # Numbers are settings; words and flags choose another kernel, which has a default of its own.
    words = {key: value for key, value in parameters.items() if type(value) is not int}
    exact = _matching(times, {**default, **parameters})
    basis = _matching(times, {**default, **words})
    row = next((row for row in (exact, basis) if row is not None), times.iloc[0])
    recorded, default_us = (None if r is None else float(r["median_us"]) for r in (exact, basis))
    predicted = None
    if default_us is not None:
        now, then = slots(parameters), slots(words)
        predicted = default_us * now / then if now is not None and then else None
    limit = float(row["gather_limit_us"])
    where = str(row["hardware"]), str(row["date"])
    return Timing(recorded, predicted, default_us, limit, *where)


def waiting_and_timing(
    graph: Graph, n_cols: int, cases: Mapping[str, tuple[str, Mapping[str, Any]]]
) -> dict[str, tuple[float | None, Timing]]:
    """Put how much warp time waits beside what a GPU was recorded to take.

    Parameters
    ----------
    graph : Graph
    n_cols : int
    cases : mapping of str to (str, mapping)
        What a case is called, to a strategy and its parameters.

    Returns
    -------
    dict of str to (float or None, Timing)
        The idle share, None where it is not known as of a library, and the time.
    """
    times = recorded_times(graph)
    result: dict[str, tuple[float | None, Timing]] = {}
    for name, (strategy_name, parameters) in cases.items():
        strategy = find_strategy(strategy_name)
        summary = strategy.closed_form(graph, n_cols, **parameters)
        share = None if summary is None or np.isnan(summary.idle_share) else summary.idle_share
        result[name] = share, timing(times, strategy, n_cols, parameters, lambda _: None)
    return result


def waiting_beside_time(graph: Graph, n_cols: int, *cases: str) -> pd.DataFrame:
    """Lay `waiting_and_timing` out as a table, for strategies with their defaults.

    Parameters
    ----------
    graph : Graph
    n_cols : int
    *cases : str
        Strategies, with parameters if need be: "accel_gcn partition=warp".

    Returns
    -------
    DataFrame
        A line a case: the idle share in percent, and microseconds; NaN where they are not known.
    """
    wanted = {
        case: (case.split()[0], {key: _value(text) for key, text in parameters_of(case).items()})
        for case in cases
    }
    result = waiting_and_timing(graph, n_cols, wanted)
    known = next((time for _, time in result.values() if time.hardware), None)
    where = f"us, {known.hardware}, {known.date}" if known else "us: none recorded"
    lines = {
        name: {
            "warp time waiting, %": np.nan if share is None else round(100 * share, 1),
            where: np.nan if time.recorded is None else round(time.recorded, 1),
        }
        for name, (share, time) in result.items()
    }
    return pd.DataFrame.from_dict(lines, orient="index")


def parameters_of(text: str) -> dict[str, str]:
    """Take apart what `records.parameters_text` wrote: "ngs=32 dw=16"."""
    return dict(word.split("=", 1) for word in str(text).split() if "=" in word)


def _value(text: str) -> Any:
    return {"True": True, "False": False}.get(text, int(text) if text.isdigit() else text)


def _matching(times: pd.DataFrame, parameters: Mapping[str, Any]) -> pd.Series | None:
    """Find the first row with these parameters; None stands for the strategy's own choice."""
    words = {key: str(value) for key, value in parameters.items() if value is not None}
    fits = [words.items() <= setting.items() for setting in times["setting"]]
    return times[fits].iloc[0] if any(fits) else None
