"""The rates of the model: measured on this host's GPUs, or recorded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from accelviz.devices import choose
from accelviz.errors import ArgumentError, checked_integer, checked_type
from accelviz.graph import Graph
from accelviz.many_gpus.halo import (
    MOST_PULL_BLOCKS,
    PULL_THREADS,
    PULLS_AT_ONCE,
    VECTOR_BYTES,
    halo,
)
from accelviz.many_gpus.model import Rates
from accelviz.many_gpus.peers import Peers
from accelviz.many_gpus.split import split
from accelviz.plans.operation import FLOAT_BYTES

#: Vertices of the graph whose rows are fetched, and the widths that are measured.
_VERTICES, _COLUMNS = 1 << 21, (8, 32, 128, 256)
_TABLE_ROWS = tuple(1 << k for k in (13, 15, 17, 19, 20, 22))

#: Columns and measurements that a table of rates has to have.
_NUMBERS = ("columns", "blocks", "rows", "gigabytes_per_second", "median_us")
_MEASUREMENTS = ("fetch", "barriers alone", "launch", "copy", "gather")


def rates_of(table: pd.DataFrame, blocks: int = 64) -> Rates:
    """Read rates from a table of measurements.

    The latency follows from the fewest blocks: the bytes that they have in flight over their rate.

    Parameters
    ----------
    table : DataFrame
        With the columns of `measured_rates`, or of the recorded table "many-gpus-rates-h200".
    blocks : int
        Blocks that fetch.

    Raises
    ------
    ArgumentError
        If the table lacks a column or a measurement, or has none with so many blocks.
    """
    checked_type("table", table, pd.DataFrame, "what measured_rates returns")
    if lacking := {"hardware", "what", *_NUMBERS} - {*table.columns}:
        raise ArgumentError("table", f"it has no {min(lacking)!r}", "what measured_rates returns")
    if lacking := {*_MEASUREMENTS} - {*table["what"]}:
        problem = f"there is no {min(lacking)!r} in `what`"
        raise ArgumentError("table", problem, "what measured_rates returns")
    table = table.assign(
        rate=table["gigabytes_per_second"] * 1e9, row_bytes=table["columns"] * FLOAT_BYTES
    )
    fetch, gather = (table[table["what"] == name] for name in ("fetch", "gather"))
    known = sorted({*fetch["blocks"].astype(int)})
    if checked_integer("blocks", blocks, error=ArgumentError) not in known:
        raise ArgumentError("blocks", f"got {blocks!r}", f"one of {', '.join(map(str, known))}")
    first = table.drop_duplicates("what").set_index("what")
    tables: dict[int, dict[int, float]] = {}
    for size, rows, rate in gather[["row_bytes", "rows", "rate"]].itertuples(index=False):
        tables.setdefault(int(size), {})[int(rows * size)] = rate
    fewest = fetch[fetch["blocks"] == known[0]]
    in_flight = known[0] * PULL_THREADS * PULLS_AT_ONCE * VECTOR_BYTES
    link = fetch[fetch["blocks"] == blocks]
    return Rates(
        hardware=str(table["hardware"].iloc[0]),
        link=dict(zip(link["row_bytes"].astype(int), link["rate"], strict=True)),
        gets=float(fetch["rate"].max()),
        gather=tables,
        copy=float(first.loc["copy", "rate"]),
        barrier=float(first.loc["barriers alone", "median_us"]) * 1e-6,
        step=float(first.loc["launch", "median_us"]) * 1e-6,
        latency=in_flight / float(fewest.loc[fewest["columns"].idxmax(), "rate"]),
    )


def measured_rates(gpus: Peers, blocks: int = 64) -> pd.DataFrame:
    """Measure the link, gathers and copies at home, launches and barriers; some seconds.

    Parameters
    ----------
    gpus : Peers
        At least two.
    blocks : int
        Blocks that fetch, 1 to 256.

    Returns
    -------
    DataFrame
        A row a measurement: `hardware`, `what`, `columns`, `blocks`, `rows`,
        `gigabytes_per_second` (a device's own, all at once) and `median_us`. See `rates_of`.
    """
    checked_type("gpus", gpus, Peers, "many_gpus.Peers(2)")
    if len(gpus.devices) < 2:
        raise ArgumentError("gpus", "one device has no link", "many_gpus.Peers(2)")
    blocks = checked_integer("blocks", blocks, MOST_PULL_BLOCKS // 4, error=ArgumentError)
    fetches = [(d, blocks) for d in _COLUMNS]
    fetches += [(_COLUMNS[-1], count) for count in (max(blocks // 4, 1), 4 * blocks)]
    gathers = [(rows, d) for rows in _TABLE_ROWS for d in _COLUMNS]
    return pd.DataFrame(rate_rows(gpus, fetches, gathers)).assign(hardware=gpus.names[0])


def rate_rows(
    gpus: Peers, fetches: Iterable[tuple[int, int]], gathers: Iterable[tuple[int, int]]
) -> Iterator[dict[str, Any]]:
    """Yield a row a measurement.

    `fetches` holds columns and blocks, `gathers` rows and columns of a table at home.
    """

    def row(name: str, seconds: float, moved: float = np.nan, **more: int) -> dict[str, Any]:
        rates = {"gigabytes_per_second": moved / seconds / 1e9, "median_us": seconds * 1e6}
        return {"what": name, **more, **rates}

    n = _VERTICES
    columns = np.random.default_rng(0).integers(0, n, n, dtype=np.int32)
    pointers = np.arange(n + 1, dtype=np.int64)
    graph = Graph(pointers, columns, np.ones(n, np.float32), (n, n), "an edge a row")
    divided = split(graph, len(gpus.devices), by="rows")
    for d, count in fetches:
        program = halo(divided, d, pieces=1, pull_blocks=count)
        ready = gpus.ready(program)
        moved = [sum(step.link_bytes.values()) for step in program.steps if step.name == "fetch"]
        seconds = float(np.median(ready.seconds(9, 2, only={"fetch"})))
        yield row("fetch", seconds, max(moved, default=0), columns=d, blocks=count)
    yield row("barriers alone", float(np.median(ready.seconds(20, 3, only={"nothing"}))))
    limits = choose("cuda").limits()
    assert limits is not None  # a GPU has limits
    yield row("launch", limits.launch_seconds)
    yield row("copy", 1.0, limits.copy_bandwidth)
    for rows, d in gathers:
        yield row("gather", 1.0, limits.gather_bandwidth(rows, d), columns=d, rows=rows)
