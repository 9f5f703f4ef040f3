"""Measurements, and the result table: one record per set of repeated runs."""

from __future__ import annotations

import functools
import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from accelviz import files
from accelviz.devices import find_device
from accelviz.errors import ArgumentError
from accelviz.plans import Plan

#: Columns of the result table, in order. Columns before `median_us` identify the measurement.
COLUMNS = (
    *("run", "hardware", "driver", "cuda", "cupy", "date", "commit", "device"),
    *("graph", "graph_kind", "fingerprint", "rows", "nonzeros", "operation"),
    *("strategy", "parameters", "variant", "kernel", "columns", "dtype", "state", "repeats"),
    *("median_us", "quartile1_us", "quartile3_us", "setup_us", "prepare_us", "error_over_bound"),
    *("floor_us", "gather_limit_us", "copy_gb_per_s", "gather_gb_per_s", "problem"),
)


@dataclass(frozen=True, eq=False)
class Measurement:
    """Times of one plan on one device.

    Attributes
    ----------
    plan : Plan
    device : str
        Name of the device.
    seconds : array of float64, shape (repeats,)
        Time of each run, by the device's clock.
    error : float
        Largest error against float64 over its bound; at most 1.
    state : str
        "warm", or "cold" if the last-level cache was flushed before each run.
    device_setup_seconds : mapping of str to float
        Time of each preprocessing step on the device. Steps on the host are in the plan.
    prepare_seconds : float
        Time to compile, to transfer data and to preprocess on the device.
    variant : str
        Algorithm chosen by a library.
    limits : mapping of str to float
        Limits measured in the same run, as of `measure.limits.limits`; empty if the device has
        none.
    """

    plan: Plan
    device: str
    seconds: npt.NDArray[np.float64]
    error: float
    state: str = "warm"
    device_setup_seconds: Mapping[str, float] = field(default_factory=dict)
    prepare_seconds: float = float("nan")
    variant: str = ""
    limits: Mapping[str, float] = field(default_factory=dict)

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
        """Return the measurement as columns of the result table."""
        low, high = self.quartiles
        setup = sum(self.plan.setup_seconds.values()) + sum(self.device_setup_seconds.values())
        times = {"median_us": self.median, "quartile1_us": low, "quartile3_us": high}
        times |= {"setup_us": setup, "prepare_us": self.prepare_seconds}
        return {
            "variant": self.variant,
            "dtype": _dtype(self.plan),
            "state": self.state,
            "repeats": self.seconds.size,
            "error_over_bound": round(self.error, 4),
            **{name: round(1e6 * seconds, 3) for name, seconds in times.items()},
            **{name: round(limit, 3) for name, limit in self.limits.items()},
        }


def _dtype(plan: Plan) -> str:
    """Return the storage type of the features, or the arithmetic if it is not float32."""
    result = plan.operation.outputs[0].dtype
    if result.kind != "f":
        return result.name
    return plan.storage if plan.arithmetic == "float32" else plan.arithmetic


def parameters_text(parameters: Mapping[str, Any]) -> str:
    """Write parameters as one cell of a table, such as "ngs=32 dw=16"."""
    return " ".join(f"{key}={value}" for key, value in parameters.items())


def settings_text(plan: Plan) -> str:
    """Write a plan's parameters and widths other than `n_cols`, as `parameters_text` does."""
    widths = {name: size for name, size in plan.widths.items() if name != "n_cols"}
    return parameters_text({**widths, **plan.parameters})


def result_table(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Return rows as a table with the columns `COLUMNS`; a missing value is NaN."""
    return pd.DataFrame(list(rows)).reindex(columns=list(COLUMNS))


def append(rows: Sequence[Mapping[str, Any]], path: str | os.PathLike[str]) -> None:
    """Append rows to a CSV file of results, which is created if it does not exist.

    Raises
    ------
    ArgumentError
        If the file has other columns.
    """
    exists = Path(path).exists()
    if exists and tuple(pd.read_csv(path, nrows=0).columns) != COLUMNS:
        raise ArgumentError("path", f"{path} has other columns", "a new file")
    result_table(rows).to_csv(path, mode="a", header=not exists, index=False)


def recorded(name: str) -> pd.DataFrame:
    """Read a table of measurements that ships with the package.

    Parameters
    ----------
    name : str
        Such as "strategies-h200". The scripts in `benchmarks/` describe the tables.

    Returns
    -------
    DataFrame
        Results of `benchmark` have one record per set of repeated runs, with the columns `COLUMNS`.

    Raises
    ------
    ArgumentError
        If there is no such table. The message lists all names.
    """
    paths = {p.name.partition(".csv")[0]: p for p in files.results_directory().glob("*.csv*")}
    if name not in paths:
        raise ArgumentError("name", f"no recorded results {name!r}", ", ".join(sorted(paths)))
    return pd.read_csv(paths[name])


def recorded_timelines(name: str = "timelines-h200") -> dict[str, pd.DataFrame]:
    """Read recorded timelines of launches, which `plots.sm_timeline` draws.

    Parameters
    ----------
    name : str
        Name of a recorded table.

    Returns
    -------
    dict of str to DataFrame
        Strategy to timeline, as of `analysis.schedule.block_times`. `attrs` has `graph`, `columns`,
        `parameters`, `hardware`, `date`, ...

    Raises
    ------
    ArgumentError
        If there is no such table.
    """
    columns = ["tile", "block", "sm", "slot", "start", "stop"]
    timelines = {}
    for strategy, rows in recorded(name).groupby("strategy", sort=False):
        timelines[str(strategy)] = blocks = rows[columns].reset_index(drop=True)
        blocks.attrs = {**rows.iloc[0].drop(columns).to_dict(), "unit": "ns"}
    return timelines


@functools.cache
def hardware(device: str) -> dict[str, str]:
    """Return the `hardware`, `driver`, `cuda` and `cupy` of a device, by name."""
    return find_device(device).hardware()


@functools.cache
def source_commit() -> str:
    """Return the commit of the checkout that contains this package; "" if unknown.

    The environment variable `ACCELVIZ_COMMIT` overrides it.
    """
    if "ACCELVIZ_COMMIT" in os.environ:
        return os.environ["ACCELVIZ_COMMIT"]
    try:
        process = subprocess.run(
            ["git", "describe", "--always", "--dirty"],
            cwd=Path(__file__).resolve().parent,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return process.stdout.strip()
