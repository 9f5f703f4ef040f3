"""Rates of links, memory and launches, from which `model.predict` computes times.

`measured_rates` measures them on this host's GPUs; `rates_of` converts such a table, measured or
recorded, to `Rates`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from accelviz.devices import choose
from accelviz.errors import ArgumentError, checked_integer, checked_type
from accelviz.files import results_directory
from accelviz.graph import Graph
from accelviz.many_gpus.halo import MAX_PULL_BLOCKS, PULL_THREADS, PULLS_AT_ONCE, VECTOR_BYTES, halo
from accelviz.many_gpus.peers import Peers
from accelviz.many_gpus.split import split
from accelviz.plans.operation import FLOAT_BYTES

#: Number of vertices of the graph whose rows are fetched.
_VERTICES = 1 << 21
#: Numbers of columns of a fetched or gathered row.
_COLUMNS = (8, 32, 128, 256)
#: Numbers of rows of a gathered table.
_TABLE_ROWS = tuple(1 << k for k in (13, 15, 17, 19, 20, 22))

#: Required columns of a table of rates, and required values of its column `what`.
_NUMBERS = ("columns", "blocks", "rows", "gigabytes_per_second", "median_us")
_MEASUREMENTS = ("fetch", "barriers alone", "launch", "copy", "gather")


@dataclass(frozen=True)
class Rates:
    """Rates of the GPUs of a host, from which `predict` computes times.

    Attributes
    ----------
    hardware : str
        Name of the GPU.
    link : mapping of int to float
        Rate in bytes per second at which a device fetches remote rows, by the bytes of a row. All
        devices fetch at the same time.
    mgg_fetch : float
        Rate in bytes per second if every warp of a device fetches rows, as in MGG. `rates_of` uses
        the largest measured rate of fetches.
    gather : mapping of int to mapping of int to float
        Rate in bytes per second of reading random rows of local memory, by the bytes of a row and
        the bytes of the table.
    copy : float
        Bytes per second of a local copy, bytes read plus bytes written.
    barrier : float
        Seconds of the barriers at the begin and the end of a product.
    step : float
        Minimum seconds of a step.
    latency : float
        Seconds from the request of a remote row to its arrival, under load.
    warps : int
        Resident warps of a device. The default is 64 on each of the 132 SMs of an H100 or H200.
    edge : tuple of two float
        Seconds of MGG's kernel per edge, and per edge and column. The default was fitted to runs on
        two H200 (docs/many-gpus.md).
    network : float
        Bytes per second between two hosts, for all devices of a host together. The default,
        400 Gbit/s, is an assumption: no network was measured.
    """

    hardware: str
    link: Mapping[int, float]
    mgg_fetch: float
    gather: Mapping[int, Mapping[int, float]]
    copy: float
    barrier: float
    step: float
    latency: float
    warps: int = 132 * 64
    edge: tuple[float, float] = (5.2e-11, 2e-13)
    network: float = 50e9

    def link_rate(self, row_bytes: float) -> float:
        """Return the rate of fetching rows of `row_bytes`, in bytes per second."""
        return _interpolated(self.link, row_bytes)

    def gather_rate(self, row_bytes: float, table_bytes: float) -> float:
        """Return the rate of reading random rows of a local table, in bytes per second."""
        rates = {size: _interpolated(tables, table_bytes) for size, tables in self.gather.items()}
        return _interpolated(rates, row_bytes)


def _interpolated(rates: Mapping[int, float], size: float) -> float:
    """Interpolate rates by size, both on logarithmic scales; constant beyond the ends."""
    sizes = sorted(rates)
    logs = np.log([rates[known] for known in sizes])
    return float(np.exp(np.interp(np.log(max(float(size), 1.0)), np.log(sizes), logs)))


def rates_of(table: pd.DataFrame, blocks: int = 64) -> Rates:
    """Return the rates in a table of measurements.

    The rate of a fetch by few blocks is limited by the latency, which is therefore computed from
    the fetch with the fewest blocks: bytes in flight divided by the rate.

    Parameters
    ----------
    table : DataFrame
        A result of `measured_rates`, or the recorded table "many-gpus-rates-h200".
    blocks : int
        Number of fetching blocks, one of those in the table.

    Raises
    ------
    ArgumentError
        If the table lacks a column or a measurement, or has none with this number of blocks.
    """
    checked_type("table", table, pd.DataFrame, "what measured_rates returns")
    if missing := {"hardware", "what", *_NUMBERS} - {*table.columns}:
        raise ArgumentError("table", f"it has no {min(missing)!r}", "what measured_rates returns")
    if missing := {*_MEASUREMENTS} - {*table["what"]}:
        problem = f"there is no {min(missing)!r} in `what`"
        raise ArgumentError("table", problem, "what measured_rates returns")
    table = table.assign(
        rate=table["gigabytes_per_second"] * 1e9, row_bytes=table["columns"] * FLOAT_BYTES
    )
    fetch, gather = (table[table["what"] == name] for name in ("fetch", "gather"))
    block_counts = sorted({*fetch["blocks"].astype(int)})
    if checked_integer("blocks", blocks, error=ArgumentError) not in block_counts:
        expected = f"one of {', '.join(map(str, block_counts))}"
        raise ArgumentError("blocks", f"got {blocks!r}", expected)
    single = table.drop_duplicates("what").set_index("what")
    gather_rates: dict[int, dict[int, float]] = {}
    for row_bytes, rows, rate in gather[["row_bytes", "rows", "rate"]].itertuples(index=False):
        gather_rates.setdefault(int(row_bytes), {})[int(rows * row_bytes)] = rate
    fewest = fetch[fetch["blocks"] == block_counts[0]]
    bytes_in_flight = block_counts[0] * PULL_THREADS * PULLS_AT_ONCE * VECTOR_BYTES
    link = fetch[fetch["blocks"] == blocks]
    return Rates(
        hardware=str(table["hardware"].iloc[0]),
        link=dict(zip(link["row_bytes"].astype(int), link["rate"], strict=True)),
        mgg_fetch=float(fetch["rate"].max()),
        gather=gather_rates,
        copy=float(single.loc["copy", "rate"]),
        barrier=float(single.loc["barriers alone", "median_us"]) * 1e-6,
        step=float(single.loc["launch", "median_us"]) * 1e-6,
        latency=bytes_in_flight / float(fewest.loc[fewest["columns"].idxmax(), "rate"]),
    )


def recorded_rates() -> Rates:
    """Return the rates that were recorded on two H200."""
    return rates_of(pd.read_csv(results_directory() / "many-gpus-rates-h200.csv.gz"))


def measured_rates(gpus: Peers, blocks: int = 64) -> pd.DataFrame:
    """Measure links, local gathers and copies, launches and barriers; takes some seconds.

    Parameters
    ----------
    gpus : Peers
        At least two GPUs.
    blocks : int
        Number of fetching blocks, 1 to 256.

    Returns
    -------
    DataFrame
        One row per measurement: `hardware`, `what`, `columns`, `blocks`, `rows`,
        `gigabytes_per_second` of one device (all devices run at the same time) and `median_us`, NaN
        for copies and gathers.

    Raises
    ------
    ArgumentError
        If there are fewer than two GPUs, or `blocks` is out of range.
    """
    checked_type("gpus", gpus, Peers, "many_gpus.Peers(2)")
    if len(gpus.devices) < 2:
        raise ArgumentError("gpus", "one device has no link", "many_gpus.Peers(2)")
    blocks = checked_integer("blocks", blocks, MAX_PULL_BLOCKS // 4, error=ArgumentError)
    # Few blocks measure the latency, many the rate of MGG; see `rates_of`.
    few, many = max(blocks // 4, 1), 4 * blocks
    fetches = [(n_cols, blocks) for n_cols in _COLUMNS]
    fetches += [(_COLUMNS[-1], count) for count in (few, many)]
    gathers = [(rows, n_cols) for rows in _TABLE_ROWS for n_cols in _COLUMNS]
    return pd.DataFrame(rate_rows(gpus, fetches, gathers)).assign(hardware=gpus.names[0])


def rate_rows(
    gpus: Peers, fetches: Iterable[tuple[int, int]], gathers: Iterable[tuple[int, int]]
) -> Iterator[dict[str, Any]]:
    """Yield one row per measurement.

    `fetches` are pairs (columns, blocks), `gathers` are pairs (rows, columns) of a local table.
    """

    def row(
        name: str, seconds: float = np.nan, bandwidth: float = np.nan, **sizes: int
    ) -> dict[str, Any]:
        rates = {"gigabytes_per_second": bandwidth / 1e9, "median_us": seconds * 1e6}
        return {"what": name, **sizes, **rates}

    n = _VERTICES
    columns = np.random.default_rng(0).integers(0, n, n, dtype=np.int32)
    pointers = np.arange(n + 1, dtype=np.int64)
    graph = Graph(pointers, columns, np.ones(n, np.float32), (n, n), "an edge a row")
    divided = split(graph, len(gpus.devices), by="rows")
    for n_cols, blocks in fetches:
        program = halo(divided, n_cols, pieces=1, pull_blocks=blocks)
        ready = gpus.ready(program)
        fetched = [sum(step.link_bytes.values()) for step in program.steps if step.name == "fetch"]
        seconds = float(np.median(ready.seconds(repeats=9, warmup=2, only={"fetch"})))
        bandwidth = max(fetched, default=0) / seconds
        yield row("fetch", seconds, bandwidth, columns=n_cols, blocks=blocks)
    # A step name that does not exist leaves the barriers.
    seconds = float(np.median(ready.seconds(repeats=20, warmup=3, only={"nothing"})))
    yield row("barriers alone", seconds)
    limits = choose("cuda").limits()
    assert limits is not None  # None only for devices that are no GPU
    yield row("launch", limits.launch_seconds)
    yield row("copy", bandwidth=limits.copy_bandwidth)
    for rows, n_cols in gathers:
        bandwidth = limits.gather_bandwidth(rows, n_cols)
        yield row("gather", bandwidth=bandwidth, columns=n_cols, rows=rows)
