"""What a setting should take by its warp time alone, beside what was recorded."""

from __future__ import annotations

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
_NEEDED = [
    *("hardware", "date", "graph", "fingerprint", "operation", "strategy", "parameters", "columns"),
    "state",
]
_TIMES = ["median_us", "gather_limit_us"]


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
    tables: list[pd.DataFrame] = []
    own = ""
    for name in TABLES:
        table = _warm(name)
        # Strategies of several operations have one name.
        table = table[(table["graph"] == graph.name) & (table["operation"] == operation.name)]
        if len(table):
            own = own or fingerprint(graph)
            tables.append(table[table["fingerprint"] == own])
    found = pd.concat(tables, ignore_index=True) if tables else _warm(TABLES[-1]).iloc[:0]
    return found.assign(setting=[parameters_of(text) for text in found["parameters"]])


def recorded_graphs(operation: Operation) -> tuple[str, ...]:
    """Return the names of the graphs of which something was recorded of an operation."""
    tables = [_warm(name) for name in TABLES]
    names = pd.concat(
        [table.loc[table["operation"] == operation.name, "graph"] for table in tables]
    )
    return tuple(names.unique())


@functools.cache
def _warm(name: str) -> pd.DataFrame:
    try:
        table = records.recorded(name)
    except ArgumentError:  # a checkout without that table
        return pd.DataFrame(columns=[*_NEEDED, *_TIMES])
    return table[table["state"] == "warm"][[*_NEEDED, *_TIMES]]


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
    kept = {key: value for key, value in parameters.items() if type(value) is not int}
    exact = _matching(times, {**default, **parameters})
    basis = _matching(times, {**default, **kept})
    known = exact if exact is not None else basis
    if known is None:
        first = times.iloc[0]
        return Timing(
            limit=float(first["gather_limit_us"]),
            hardware=str(first["hardware"]),
            date=str(first["date"]),
        )
    predicted = None
    if basis is not None:
        now, then = slots(parameters), slots(kept)
        if now is not None and then:
            predicted = float(basis["median_us"]) * now / then
    return Timing(
        recorded=None if exact is None else float(exact["median_us"]),
        predicted=predicted,
        basis=None if basis is None else float(basis["median_us"]),
        limit=float(known["gather_limit_us"]),
        hardware=str(known["hardware"]),
        date=str(known["date"]),
    )


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
    found: dict[str, tuple[float | None, Timing]] = {}
    for name, (strategy, own) in cases.items():
        known = find_strategy(strategy)
        counted = known.closed_form(graph, n_cols, **own)
        share = None if counted is None or np.isnan(counted.idle_share) else counted.idle_share
        found[name] = share, timing(times, known, n_cols, own, lambda _: None)
    return found


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
    found = waiting_and_timing(graph, n_cols, wanted)
    known = next((time for _, time in found.values() if time.hardware), None)
    where = f"us, {known.hardware}, {known.date}" if known else "us: none recorded"
    lines = {
        name: {
            "warp time waiting, %": np.nan if share is None else round(100 * share, 1),
            where: np.nan if time.recorded is None else round(time.recorded, 1),
        }
        for name, (share, time) in found.items()
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
    for i, there in enumerate(times["setting"]):
        if all(there.get(key) == value for key, value in words.items()):
            return times.iloc[i]
    return None
