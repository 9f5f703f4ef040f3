"""A model of the time of a product on several GPUs, from a few rates, and whether they help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from accelviz.errors import (
    ArgumentError,
    checked_choice,
    checked_integer,
    checked_number,
    checked_type,
)
from accelviz.many_gpus.halo import MOST_PIECES
from accelviz.many_gpus.peers import TIMELINE
from accelviz.many_gpus.split import Split
from accelviz.plans.operation import FLOAT_BYTES
from accelviz.plans.program import Program, Step
from accelviz.plans.storage import STORAGE_BYTES

#: A product beside a fetch takes 0.16 of the fetch's time longer, the fetch 1.35 times as long.
#: Read off timelines of two H200.
_PRODUCT_LATER, _FETCH_SLOWER = 0.16, 1.35


@dataclass(frozen=True)
class Rates:
    """Rates of the devices of a host.

    Attributes
    ----------
    hardware : str
    link : mapping of int to float
        Bytes of a row to bytes per second in which one device fetches such rows, both ways at once.
    gets : float
        Bytes per second over the link if every warp of a device asks for rows, as MGG's do.
    gather : mapping of int to mapping of int to float
        Bytes of a row, and of the whole table, to bytes per second of reading random rows at home.
    copy : float
        Bytes per second of a copy at home, read plus written.
    barrier : float
        Seconds for all devices to begin and to end together.
    step : float
        The least seconds of a step.
    latency : float
        Seconds from asking for a remote row to having it, while others ask too.
    warps : int
        Warps that a device holds at a time.
    edge : tuple of two float
        Seconds that MGG's kernel takes for an edge, and more for each of its columns.
    network : float
        Bytes per second between two hosts, for all devices of a host together.
    """

    hardware: str
    link: Mapping[int, float]
    gets: float
    gather: Mapping[int, Mapping[int, float]]
    copy: float
    barrier: float
    step: float
    latency: float
    warps: int = 132 * 64
    edge: tuple[float, float] = (5.2e-11, 2e-13)
    network: float = 50e9

    def link_rate(self, row_bytes: float) -> float:
        """Return the link's rate for rows of `row_bytes`, in bytes per second."""
        return _between(self.link, row_bytes)

    def gather_rate(self, row_bytes: float, table_bytes: float) -> float:
        """Return the rate of random rows of a table at home, in bytes per second."""
        rates = {size: _between(tables, table_bytes) for size, tables in self.gather.items()}
        return _between(rates, row_bytes)


def _between(known: Mapping[int, float], at: float) -> float:
    """Interpolate between known rates, both on a logarithmic scale, constant beyond the ends."""
    points = sorted(known)
    logs = np.log([known[point] for point in points])
    return float(np.exp(np.interp(np.log(max(float(at), 1.0)), np.log(points), logs)))


@dataclass(frozen=True)
class Work:
    """Sizes of a product on several devices, without the graph.

    Attributes
    ----------
    nodes, edges : int
        Of the whole graph.
    rows, local, remote, halo : tuple of float, one for each device
        Its rows, its edges from its own vertices and from others', and the rows it fetches.
    """

    nodes: int
    edges: int
    rows: tuple[float, ...]
    local: tuple[float, ...]
    remote: tuple[float, ...]
    halo: tuple[float, ...]

    @classmethod
    def of(cls, split: Split) -> Work:
        """Count a split."""
        checked_type("split", split, Split, "what many_gpus.split returns")
        table = split.table()
        counts = (tuple(map(float, table[name])) for name in ("rows", "local", "remote", "halo"))
        return cls(split.graph.n_rows, split.graph.nnz, *counts)

    @classmethod
    def even(
        cls, nodes: int, edges: int, devices: int, cut_share: float, reuse: float | None = None
    ) -> Work:
        """Return the sizes of a graph that is divided evenly.

        Parameters
        ----------
        nodes, edges : int
        devices : int
        cut_share : float
            Share of the edges that come from another device, 0 to 1.
        reuse : float, optional
            Mean number of edges that use a halo row. If not given, the sources of cut edges are
            random among all others' vertices.

        Raises
        ------
        ArgumentError
            If a number is out of range.
        """
        nodes = checked_integer("nodes", nodes, least=0, error=ArgumentError)
        edges = checked_integer("edges", edges, least=0, error=ArgumentError)
        devices = checked_integer("devices", devices, error=ArgumentError)
        cut_share = checked_number("cut_share", cut_share, 1, or_zero=True)
        if reuse is not None:
            reuse = checked_number("reuse", reuse)
        remote = edges * cut_share / devices
        others = nodes * (devices - 1) / devices
        drawn = others * -np.expm1(-remote / others) if others and remote else 0.0
        halo = drawn if reuse is None else remote / reuse
        sizes = (nodes / devices, edges / devices - remote, remote, float(min(halo, others)))
        return cls(nodes, edges, *((size,) * devices for size in sizes))

    @property
    def devices(self) -> int:
        """Number of devices."""
        return len(self.rows)


@dataclass(frozen=True, eq=False)
class Prediction:
    """The time that the model predicts for a scheme.

    Attributes
    ----------
    scheme : str
    seconds : float
        Of a whole product.
    one_gpu : float
        Seconds on one.
    steps : DataFrame
        As `PeersProgram.timeline` measures it: `device`, `queue`, `step`, `start`, `stop`.
    """

    scheme: str
    seconds: float
    one_gpu: float
    steps: pd.DataFrame = field(repr=False)

    @property
    def speedup(self) -> float:
        """Times as fast as one device."""
        return self.one_gpu / self.seconds


def on_one(work: Work, n_cols: int, rates: Rates) -> float:
    """Return the seconds of a product on one device, if the sources of edges are random."""
    return max(_product(work.edges, work.nodes, work.nodes, n_cols, rates), rates.step)


def predict(
    work: Work,
    n_cols: int,
    rates: Rates,
    scheme: str = "halo",
    *,
    one_gpu: float | None = None,
    pieces: int = 2,
    storage: str = "float32",
    devices_a_host: int | None = None,
) -> Prediction:
    """Predict the time of a product on several devices.

    Parameters
    ----------
    work : Work
    n_cols : int
    rates : Rates
    scheme : {"halo", "mgg", "all_gather"}
    one_gpu : float, optional
        Measured seconds of the product on one device, with the effect of caches and of the order of
        the vertices. If not given, sources of edges are taken as random (`on_one`).
    pieces, storage
        As of the scheme.
    devices_a_host : int, optional
        Devices that are joined by links, at least 1; the others are reached over the network. All
        if not given.

    Returns
    -------
    Prediction

    Raises
    ------
    ArgumentError
        If an argument is none of these.

    Notes
    -----
    A product with edges from home takes as much an edge as the product on one device does, less
    half of what (on a logarithmic scale) random rows gain in the caches by the smaller table. One
    with halo rows, which are in no order, lies between that and random rows. Each piece reads and
    writes the rows of Y once more. A fetch takes its bytes over the link's rate; it and the product
    beside it slow each other down. Rows of 16 bits are gathered as what they are: half the bytes,
    from a table of half the size. MGG's warps have a local and a remote partition each, as long as
    there are both: that takes the longest of the kernel's time, of the bytes over the link, which
    has each edge's row, and of the rows' latency, as a warp waits for one after the other. Local
    partitions that are left have no row to wait for. Links are taken as equally fast between any
    two devices of a host.
    """
    checked_type("work", work, Work, "Work.of(split)")
    checked_type("rates", rates, Rates, "rates_of(measured_rates(Peers(2)))")
    checked_choice("scheme", scheme, ("halo", "mgg", "all_gather"))
    n_cols = checked_integer("n_cols", n_cols, error=ArgumentError)
    pieces = checked_integer("pieces", pieces, MOST_PIECES, error=ArgumentError)
    checked_choice("storage", storage, STORAGE_BYTES)
    if one_gpu is not None:
        one_gpu = checked_number("one_gpu", one_gpu)
    a_host = work.devices
    if devices_a_host is not None:
        a_host = checked_integer("devices_a_host", devices_a_host, error=ArgumentError)
    one_gpu = on_one(work, n_cols, rates) if one_gpu is None else one_gpu
    if work.devices == 1:
        steps = _timeline([(Step("multiply", 0), one_gpu)])
        return Prediction(scheme, one_gpu, one_gpu, steps)
    if scheme == "all_gather":
        work = replace(work, halo=tuple(work.nodes - rows for rows in work.rows))
    model = _Model(work, n_cols, rates, one_gpu, storage, min(a_host, work.devices))
    timed: list[tuple[Step, float]] = []
    for device in range(work.devices):
        if scheme == "mgg":
            timed += model.published(device)
        else:
            timed += model.ours(device, pieces, first=len(timed))
    steps = _timeline(timed)
    return Prediction(scheme, float(steps["stop"].max()) + rates.barrier, one_gpu, steps)


def _timeline(timed: Sequence[tuple[Step, float]]) -> pd.DataFrame:
    """Return when each step starts and stops, given the seconds that it takes."""
    steps, seconds = zip(*timed, strict=True)
    times = Program(steps).schedule(seconds)
    pairs = zip(steps, times, strict=True)
    rows = [(step.device, step.queue, step.name, *ends) for step, ends in pairs]
    return pd.DataFrame(rows, columns=TIMELINE)


def _product(
    edges: float, columns: float, rows: float, n_cols: int, rates: Rates, storage: str = "float32"
) -> float:
    """Return the seconds of gathering random rows, and of reading and writing in order."""
    row_bytes = n_cols * STORAGE_BYTES[storage]
    gathered = edges * row_bytes / rates.gather_rate(row_bytes, columns * row_bytes)
    streamed = FLOAT_BYTES * (2 * edges + n_cols * rows)
    return gathered + streamed / rates.copy


@dataclass(frozen=True)
class _Model:
    """The steps of a device, with their seconds."""

    work: Work
    n_cols: int
    rates: Rates
    one_gpu: float
    storage: str
    devices_a_host: int

    def link_seconds(self, moved: float, rate: float) -> float:
        """Return the seconds in which a device fetches `moved` bytes from all others."""
        on_host = self.devices_a_host
        share = (on_host - 1) / (self.work.devices - 1)
        over_network = moved * (1 - share) * on_host / self.rates.network
        return max(moved * share / rate, over_network)

    def edge_seconds(self, count: float, columns: float, storage: str = "float32") -> float:
        """Return the seconds of edges from a table, scaled from those on one device."""
        row_bytes, stored_bytes = (self.n_cols * STORAGE_BYTES[s] for s in ("float32", storage))
        whole = self.rates.gather_rate(row_bytes, self.work.nodes * row_bytes)
        smaller = self.rates.gather_rate(stored_bytes, columns * stored_bytes)
        as_one = count * self.one_gpu / max(self.work.edges, 1)
        return as_one * stored_bytes / row_bytes * (whole / smaller) ** 0.5

    def ours(self, device: int, pieces: int, first: int) -> list[tuple[Step, float]]:
        """Return the steps of the halo scheme, numbered from `first` on."""
        work, rates, n_cols = self.work, self.rates, self.n_cols
        remote, halo, rows = work.remote[device], work.halo[device], work.rows[device]
        row_bytes = n_cols * STORAGE_BYTES[self.storage]
        fetch = self.link_seconds(halo * row_bytes, rates.link_rate(row_bytes))
        multiply = max(self.edge_seconds(work.local[device], rows), rates.step)
        # While a fetch and a product run together, both take longer.
        together = min(fetch * _FETCH_SLOWER, multiply)
        multiply += _PRODUCT_LATER * min(fetch, multiply)
        fetch += together * (1 - 1 / _FETCH_SLOWER)
        steps = []
        if self.storage != "float32":
            moved = rows * (n_cols * FLOAT_BYTES + row_bytes)
            rounding = max(moved / rates.copy, rates.step) + rates.barrier
            steps.append((Step("round", device, "link"), rounding))
        steps.append((Step("multiply", device), multiply))
        pieces = pieces if halo else 0
        fetched = range(first + len(steps), first + len(steps) + pieces)
        steps += [(Step("fetch", device, "link"), max(fetch / pieces, rates.step)) for _ in fetched]
        for number in fetched:
            touched = min(rows, rows * -np.expm1(-remote / pieces / max(rows, 1)))
            written = 2 * touched * n_cols * FLOAT_BYTES / rates.copy
            share = remote / pieces, halo / pieces
            at_random = _product(*share, 0, n_cols, rates, self.storage)
            gathered = (self.edge_seconds(*share, self.storage) + at_random) / 2
            add = Step("add", device, after=(number,))
            steps.append((add, max(written + gathered, rates.step)))
        return steps

    def published(self, device: int) -> list[tuple[Step, float]]:
        """Return the steps of MGG."""
        rates, (first, column) = self.rates, self.rates.edge
        local, remote = self.work.local[device], self.work.remote[device]
        edge = first + column * self.n_cols
        fetch = self.link_seconds(remote * self.n_cols * FLOAT_BYTES, rates.gets)
        paired = min(local, remote)
        pairs = max((paired + remote) * edge, fetch, remote * rates.latency / rates.warps)
        seconds = max(pairs + (local - paired) * edge, rates.step)
        return [(Step("aggregate", device), seconds), (Step("get", device, "link"), fetch)]


def advise(
    work: Mapping[int, Work], n_cols: int, rates: Rates, *, one_gpu: float | None = None
) -> dict[int, Prediction]:
    """Predict ours for several numbers of devices; the fastest comes first.

    Parameters
    ----------
    work : mapping of int to Work
        By the number of devices; 1 is one of them or not, and counts in any case.
    n_cols, rates, one_gpu
        As `predict` takes them.

    Raises
    ------
    ArgumentError
        If an argument does not fit.
    """
    if not checked_type("work", work, Mapping, "numbers of devices to Work"):
        raise ArgumentError("work", "it is empty", "Work for a number of devices at least")
    predictions = {n: predict(w, n_cols, rates, one_gpu=one_gpu) for n, w in work.items()}
    if 1 not in predictions:
        any_work = next(iter(work.values()))
        alone = Work.even(any_work.nodes, any_work.edges, 1, 0.0)
        predictions[1] = predict(alone, n_cols, rates, one_gpu=one_gpu)
    return dict(sorted(predictions.items(), key=lambda item: item[1].seconds))


def gains(
    nodes: int,
    edges: int,
    rates: Rates,
    *,
    devices: int = 2,
    columns: Sequence[int] = (8, 16, 32, 64, 128, 256),
    shares: Sequence[float] = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5),
    scheme: str = "halo",
) -> pd.DataFrame:
    """Predict the speedup of several devices over one, for shares of edges that are cut.

    Returns
    -------
    DataFrame
        A row for each share, a column for each width. Sources of cut edges are taken as random.

    Raises
    ------
    ArgumentError
        If an argument does not fit.
    """
    checked_type("columns", columns, Sequence | np.ndarray, "a list of integers")
    checked_type("shares", shares, Sequence | np.ndarray, "a list of numbers from 0 to 1")
    speedups = {
        n_cols: [
            predict(Work.even(nodes, edges, devices, share), n_cols, rates, scheme).speedup
            for share in shares
        ]
        for n_cols in columns
    }
    return pd.DataFrame(speedups, index=pd.Index(shares, name="cut share"))
