"""Measurements, and the tidy table they are recorded in: one row for each set of repeats."""

from __future__ import annotations

import datetime
import functools
import os
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from accelviz import files
from accelviz.errors import ArgumentError
from accelviz.executors import find_executor
from accelviz.strategies import Plan


@dataclass(frozen=True, eq=False)
class Measurement:
    """Times of one plan on one device.

    Attributes
    ----------
    plan : Plan
        What ran.
    device : str
        Name of the executor.
    seconds : array of float64, shape (repeats,)
        Time of each warm run by the device's own clock.
    error : float
        Largest error against float64 in units of the error bound; at most 1.
    """

    plan: Plan
    device: str
    seconds: npt.NDArray[np.float64]
    error: float

    @property
    def median(self) -> float:
        """Median time in seconds."""
        return float(np.median(self.seconds))

    @property
    def quartiles(self) -> tuple[float, float]:
        """Lower and upper quartile in seconds."""
        low, high = np.percentile(self.seconds, [25, 75])
        return float(low), float(high)

    def row(self) -> dict[str, Any]:
        """Return the measurement as a row of the result table; times in microseconds."""
        graph, plan = self.plan.graph, self.plan
        low, high = self.quartiles
        return {
            **_hardware(self.device),
            "date": datetime.date.today().isoformat(),
            "commit": source_commit(),
            "device": self.device,
            "graph": graph.name,
            "graph_kind": graph.kind,
            "rows": graph.n_rows,
            "nonzeros": graph.nnz,
            "strategy": plan.strategy,
            "parameters": " ".join(f"{key}={value}" for key, value in plan.parameters.items()),
            "columns": plan.n_cols,
            "state": "warm",
            "repeats": self.seconds.size,
            "median_us": round(self.median * 1e6, 3),
            "quartile1_us": round(low * 1e6, 3),
            "quartile3_us": round(high * 1e6, 3),
            "setup_us": round(sum(plan.setup_seconds.values()) * 1e6, 1),
            "error_over_bound": round(self.error, 4),
        }


def record(measurements: Iterable[Measurement], path: str | os.PathLike[str]) -> pd.DataFrame:
    """Write measurements as CSV, whole or not at all, and return the table."""
    table = pd.DataFrame([measurement.row() for measurement in measurements])
    with files.written_whole(path) as temporary:
        table.to_csv(temporary, index=False)
    return table


def recorded(name: str) -> pd.DataFrame:
    """Read measurements that ship with the package.

    Parameters
    ----------
    name : str
        Such as "accel_gcn-bundled-h200".

    Returns
    -------
    DataFrame
        One row for each set of repeats; the columns of `Measurement.row`.

    Raises
    ------
    ArgumentError
        If there are none of that name, listing those there are.
    """
    path = files.results_directory() / f"{name}.csv"
    if not path.is_file():
        there = ", ".join(sorted(p.stem for p in path.parent.glob("*.csv")))
        raise ArgumentError("name", f"no recorded results {name!r}", there or "none are recorded")
    return pd.read_csv(path)


@functools.cache
def _hardware(device: str) -> dict[str, str]:
    return find_executor(device).hardware()


@functools.cache
def source_commit() -> str:
    """Return the commit of the checkout this runs from, empty if unknown.

    `ACCELVIZ_COMMIT` in the environment says it where the checkout's history is not at hand.
    """
    if "ACCELVIZ_COMMIT" in os.environ:
        return os.environ["ACCELVIZ_COMMIT"]
    try:
        answer = subprocess.run(
            ["git", "describe", "--always", "--dirty"],
            cwd=Path(__file__).resolve().parent,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return answer.stdout.strip()
