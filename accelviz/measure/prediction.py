"""What was recorded of a graph on a GPU, beside how much warp time waits."""

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

#: Recorded tables in which a graph's times are looked for; of equal cases the first counts.
TABLES = (
    *("bundled-h200", "partitions-h200", "sweeps-h200", "strategies-h200", "ablations-h200"),
    *("columns-h200", "ours-h200", "sddmm-h200", "operations-h200"),
)
_COLUMNS = [
    *("hardware", "date", "graph", "fingerprint", "operation", "strategy", "parameters", "columns"),
    *("state", "median_us", "gather_limit_us"),
]


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


def waiting_beside_time(graph: Graph, n_cols: int, *cases: str) -> pd.DataFrame:
    """Put how much warp time waits beside what a GPU was recorded to take, warm.

    Parameters
    ----------
    graph : Graph
    n_cols : int
    *cases : str
        Strategies, with parameters if need be: "accel_gcn partition=warp"; the strategy's defaults
        stand for the others.

    Returns
    -------
    DataFrame
        A line a case: the idle share in percent, and the median in microseconds; NaN where they are
        not known. `attrs` has the `hardware` and the `date` of the times, empty if there are none.
    """
    times = recorded_times(graph)
    times = times[times["columns"] == n_cols]
    attrs = {"hardware": "", "date": ""}
    lines = []
    for case in cases:
        strategy = find_strategy(case.split()[0])
        parameters = {key: _value(text) for key, text in parameters_of(case).items()}
        summary = strategy.closed_form(graph, n_cols, **parameters)
        share = float("nan") if summary is None else summary.idle_share
        # None stands for the strategy's own choice, which any recorded value may be.
        settings = {**strategy.defaults(), **parameters}.items()
        words = {key: str(value) for key, value in settings if value is not None}
        fits = np.array([words.items() <= setting.items() for setting in times["setting"]], bool)
        recorded = times[fits & (times["strategy"] == strategy.name)]
        if len(recorded) and not attrs["date"]:
            attrs = {name: str(recorded[name].iloc[0]) for name in attrs}
        median = recorded["median_us"].iloc[0] if len(recorded) else float("nan")
        lines.append((round(100 * share, 1), round(median, 1)))
    unit = f"us, {attrs['hardware']}, {attrs['date']}" if attrs["date"] else "us: none recorded"
    table = pd.DataFrame(lines, list(cases), ["warp time waiting, %", unit], dtype=float)
    table.attrs = attrs
    return table


def parameters_of(text: str) -> dict[str, str]:
    """Take apart what `records.parameters_text` wrote: "ngs=32 dw=16"."""
    return dict(word.split("=", 1) for word in str(text).split() if "=" in word)


def _value(text: str) -> Any:
    return {"True": True, "False": False}.get(text, int(text) if text.isdigit() else text)
