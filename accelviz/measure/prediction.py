"""Recorded GPU times of a graph, and their comparison with the idle share of warp time."""

from __future__ import annotations

import contextlib
import functools
from typing import Any

import numpy as np
import pandas as pd

from accelviz.errors import ArgumentError
from accelviz.graph import Graph
from accelviz.measure import records
from accelviz.measure.harness import fingerprint
from accelviz.plans import Operation
from accelviz.strategies import SPMM, find_strategy

#: Recorded tables, in order of precedence: of equal cases the first is used.
TABLES = (
    *("bundled-h200", "partitions-h200", "sweeps-h200", "strategies-h200", "ablations-h200"),
    *("columns-h200", "ours-h200", "sddmm-h200", "operations-h200"),
)
_COLUMNS = [
    *("hardware", "date", "commit", "graph", "fingerprint", "operation", "strategy", "parameters"),
    *("columns", "state", "run", "median_us", "quartile1_us", "quartile3_us", "floor_us"),
    "gather_limit_us",
]


def recorded_times(graph: Graph, operation: Operation = SPMM) -> pd.DataFrame:
    """Return the recorded warm GPU times of an operation on this graph.

    A graph matches if its name and pattern are equal. The result may be empty. The column `setting`
    has the parameters as a dict of texts, `launch_us` the time of an empty launch in the same run.
    Of a strategy with a column count, times of the run with most settings come first, so that the
    first time of each setting is comparable with most others.
    """
    times = _warm(operation.name)
    times = times[times["graph"] == graph.name]
    if len(times):
        times = times[times["fingerprint"] == fingerprint(graph)]
        settings = times.groupby(["strategy", "columns", "run"])["parameters"].transform("nunique")
        order = np.argsort(-settings.to_numpy(), kind="stable")
        times = times.iloc[order].reset_index(drop=True)
    return times.assign(setting=[parameters_of(text) for text in times["parameters"]])


def recorded_graphs(operation: Operation) -> tuple[str, ...]:
    """Return the names of the graphs with recorded times of an operation."""
    return tuple(_warm(operation.name)["graph"].unique())


@functools.cache
def _warm(operation: str) -> pd.DataFrame:
    """Return the warm times of an operation in `TABLES`, in this order."""
    tables = [pd.DataFrame(columns=[*_COLUMNS, "launch_us"])]
    for name in TABLES:
        with contextlib.suppress(ArgumentError):  # the table is missing
            table = records.recorded(name)[_COLUMNS].copy()
            # A floor is at least the time of an empty launch, and equals it for a small graph.
            session = table.groupby(["hardware", "date", "commit"], dropna=False)
            table["launch_us"] = session["floor_us"].transform("min")
            table = table[(table["state"] == "warm") & (table["operation"] == operation)]
            tables += [table] if len(table) else []
    return pd.concat(tables[1:] or tables, ignore_index=True)


def waiting_beside_time(graph: Graph, n_cols: int, *cases: str) -> pd.DataFrame:
    """Compare the idle share of warp time with the recorded warm GPU time of cases.

    Parameters
    ----------
    graph : Graph
    n_cols : int
    *cases : str
        Strategies, optionally with parameters, such as "accel_gcn partition=warp". Other parameters
        have the strategy's defaults.

    Returns
    -------
    DataFrame
        One record per case: the idle share in percent and the median time in microseconds, NaN if
        unknown. Times are those of the run that has most of the cases. `attrs` has the `hardware`
        and the `date` of the times, "" if there is no time.
    """
    times = recorded_times(graph)
    times = times[times["columns"] == n_cols]
    shares, records_of = [], []
    for case in cases:
        strategy = find_strategy(case.split()[0])
        parameters = {key: _value(text) for key, text in parameters_of(case).items()}
        summary = strategy.closed_form(graph, n_cols, **parameters)
        shares.append(float("nan") if summary is None else summary.idle_share)
        # A default of None means that the strategy chooses: any recorded value matches.
        settings = {**strategy.defaults(), **parameters}.items()
        texts = {key: str(value) for key, value in settings if value is not None}
        matches = np.array([texts.items() <= setting.items() for setting in times["setting"]], bool)
        records_of.append(times[matches & (times["strategy"] == strategy.name)])
    runs = [run for recorded in records_of for run in recorded["run"].unique()]
    attrs, lines = {"hardware": "", "date": ""}, []
    for share, recorded in zip(shares, records_of, strict=True):
        median = float("nan")
        if len(recorded):
            best = max(recorded["run"], key=runs.count)
            record = recorded[recorded["run"] == best].iloc[0]
            median = record["median_us"]
            attrs = attrs if attrs["date"] else {name: str(record[name]) for name in attrs}
        lines.append((round(100 * share, 1), round(median, 1)))
    unit = f"us, {attrs['hardware']}, {attrs['date']}" if attrs["date"] else "us: none recorded"
    table = pd.DataFrame(lines, list(cases), ["warp time idle, %", unit], dtype=float)
    table.attrs = attrs
    return table


def parameters_of(text: str) -> dict[str, str]:
    """Parse the output of `records.parameters_text`, such as "ngs=32 dw=16"."""
    return dict(word.split("=", 1) for word in str(text).split() if "=" in word)


def _value(text: str) -> Any:
    return {"True": True, "False": False}.get(text, int(text) if text.isdigit() else text)
