"""A model of the time of a product on several GPUs, to decide whether they pay.

`predict` computes the time from the sizes of the product on each device (`Work`) and the rates of
the hardware (`rates.Rates`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import pandas as pd

from accelviz.errors import (
    ArgumentError,
    checked_choice,
    checked_integer,
    checked_number,
    checked_type,
)
from accelviz.many_gpus.halo import MAX_PIECES
from accelviz.many_gpus.peers import TIMELINE
from accelviz.many_gpus.rates import Rates
from accelviz.many_gpus.split import Split
from accelviz.plans.operation import FLOAT_BYTES
from accelviz.plans.program import Program, Step
from accelviz.plans.storage import STORAGE_BYTES

#: While a fetch and a product run together, the product takes longer by 0.16 of the fetch's time,
#: and the fetch takes 1.35 times as long. Measured in timelines of two H200.
_PRODUCT_DELAY, _FETCH_SLOWDOWN = 0.16, 1.35


@dataclass(frozen=True)
class Work:
    """Sizes of a product on several devices, without the graph itself.

    Attributes
    ----------
    nodes, edges : int
        Sizes of the whole graph.
    rows, local, remote, halo : tuple of float, one per device
        Numbers of rows, of edges from the device's own vertices, of edges from vertices of other
        devices, and of rows that the device fetches.
    """

    nodes: int
    edges: int
    rows: tuple[float, ...]
    local: tuple[float, ...]
    remote: tuple[float, ...]
    halo: tuple[float, ...]

    @classmethod
    def of(cls, split: Split) -> Work:
        """Return the sizes of a split."""
        checked_type("split", split, Split, "what many_gpus.split returns")
        graph, sizes = split.graph, []
        for first, stop in pairwise(split.bounds.tolist()):
            columns = graph.column_indices[graph.row_pointers[first] : graph.row_pointers[stop]]
            is_remote = (columns < first) | (columns >= stop)
            is_halo = np.zeros(graph.n_rows, np.bool_)
            is_halo[columns[is_remote]] = True
            remote = np.count_nonzero(is_remote)
            halo = np.count_nonzero(is_halo)
            sizes.append((stop - first, columns.size - remote, remote, halo))
        counts = (tuple(map(float, column)) for column in zip(*sizes, strict=True))
        return cls(graph.n_rows, graph.nnz, *counts)

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
            Mean number of edges per halo row. By default it is that of sources drawn at random from
            the vertices of other devices.

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
        remote_nodes = nodes * (devices - 1) / devices
        # The expected number of distinct sources, if they are random.
        sources = remote_nodes * -np.expm1(-remote / (remote_nodes or 1))
        halo = float(min(sources if reuse is None else remote / reuse, remote_nodes))
        sizes = (nodes / devices, edges / devices - remote, remote, halo)
        return cls(nodes, edges, *((size,) * devices for size in sizes))

    @property
    def devices(self) -> int:
        """Number of devices."""
        return len(self.rows)


@dataclass(frozen=True, eq=False)
class Prediction:
    """The predicted time of a product.

    Attributes
    ----------
    scheme : str
    seconds : float
        Seconds of the whole product on all devices.
    one_gpu : float
        Seconds of the product on one device.
    steps : DataFrame
        Begin and end of each step, with the columns of `PeersProgram.timeline`: `device`, `queue`,
        `step`, `start`, `stop`.
    """

    scheme: str
    seconds: float
    one_gpu: float
    steps: pd.DataFrame = field(repr=False)

    @property
    def speedup(self) -> float:
        """Time on one device divided by the time on all."""
        return self.one_gpu / self.seconds


def on_one(work: Work, n_cols: int, rates: Rates) -> float:
    """Return the seconds of a product on one device, for edges with random sources."""
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
        Measured seconds of the product on one device, which include the effects of caches and of
        the vertex order. The default, `on_one`, assumes random sources of edges.
    pieces, storage
        As in `halo`.
    devices_a_host : int, optional
        Devices per host, by default all. Devices of a host are joined by links, hosts by a network.

    Returns
    -------
    Prediction

    Raises
    ------
    ArgumentError
        If an argument has a wrong type or is out of range.

    Notes
    -----
    Halo scheme:

    - The time per local edge is that of `one_gpu`, divided by the square root of the factor by
      which the smaller local table speeds up random gathers. The root, half of this effect on a
      logarithmic scale, is an assumption.
    - The order of halo rows has no locality, therefore the time per remote edge is assumed to be
      the mean of that of local edges, scaled likewise, and that of random gathers. Each piece also
      reads and writes its rows of Y.
    - A fetch takes its bytes divided by the link's rate. A fetch and a product that run at the same
      time slow each other down.
    - Rows of 16 bits have half the bytes and half the table size.

    MGG: each warp has a local and a remote partition at a time, until one of the two kinds of
    partitions runs out. This phase takes the maximum of the kernel's time, the time on the link for
    one row per remote edge, and the latency of these rows, which a warp fetches one after the
    other. The remaining local partitions take the kernel's time only.

    All links of a host are assumed to be equally fast.
    """
    checked_type("work", work, Work, "Work.of(split)")
    checked_type("rates", rates, Rates, "rates_of(measured_rates(Peers(2)))")
    checked_choice("scheme", scheme, ("halo", "mgg", "all_gather"))
    n_cols = checked_integer("n_cols", n_cols, error=ArgumentError)
    pieces = checked_integer("pieces", pieces, MAX_PIECES, error=ArgumentError)
    checked_choice("storage", storage, STORAGE_BYTES)
    if one_gpu is not None:
        one_gpu = checked_number("one_gpu", one_gpu)
    per_host = work.devices
    if devices_a_host is not None:
        per_host = checked_integer("devices_a_host", devices_a_host, error=ArgumentError)
    one_gpu = on_one(work, n_cols, rates) if one_gpu is None else one_gpu
    if work.devices == 1:
        steps = _timeline([(Step("multiply", 0), one_gpu)])
        return Prediction(scheme, one_gpu, one_gpu, steps)
    if scheme == "all_gather":
        work = replace(work, halo=tuple(work.nodes - rows for rows in work.rows))
    model = _Model(work, n_cols, rates, one_gpu, storage, min(per_host, work.devices))
    timed_steps: list[tuple[Step, float]] = []
    for device in range(work.devices):
        if scheme == "mgg":
            timed_steps += model.mgg_steps(device)
        else:
            timed_steps += model.halo_steps(device, pieces, first=len(timed_steps))
    steps = _timeline(timed_steps)
    return Prediction(scheme, float(steps["stop"].max()) + rates.barrier, one_gpu, steps)


def _timeline(timed_steps: Sequence[tuple[Step, float]]) -> pd.DataFrame:
    """Return the begin and end of each step, given its seconds."""
    steps, seconds = zip(*timed_steps, strict=True)
    times = Program(steps).schedule(seconds)
    pairs = zip(steps, times, strict=True)
    rows = [(step.device, step.queue, step.name, *ends) for step, ends in pairs]
    return pd.DataFrame(rows, columns=TIMELINE)


def _product(
    edges: float, columns: float, rows: float, n_cols: int, rates: Rates, storage: str = "float32"
) -> float:
    """Return the seconds of a product that gathers random rows of a table of `columns` rows."""
    row_bytes = n_cols * STORAGE_BYTES[storage]
    gathered = edges * row_bytes / rates.gather_rate(row_bytes, columns * row_bytes)
    streamed = FLOAT_BYTES * (2 * edges + n_cols * rows)  # indices and weights read, Y written
    return gathered + streamed / rates.copy


@dataclass(frozen=True)
class _Model:
    """The steps of a device with their seconds, by scheme."""

    work: Work
    n_cols: int
    rates: Rates
    one_gpu: float
    storage: str
    devices_a_host: int

    def link_seconds(self, n_bytes: float, rate: float) -> float:
        """Return the seconds in which a device fetches `n_bytes`, evenly from all others."""
        per_host = self.devices_a_host
        link_share = (per_host - 1) / (self.work.devices - 1)
        network_seconds = n_bytes * (1 - link_share) * per_host / self.rates.network
        return max(n_bytes * link_share / rate, network_seconds)

    def edge_seconds(self, edges: float, columns: float, storage: str = "float32") -> float:
        """Return the seconds of edges from a table of `columns` rows, scaled from `one_gpu`."""
        row_bytes, stored_bytes = (self.n_cols * STORAGE_BYTES[s] for s in ("float32", storage))
        whole_rate = self.rates.gather_rate(row_bytes, self.work.nodes * row_bytes)
        table_rate = self.rates.gather_rate(stored_bytes, columns * stored_bytes)
        unscaled = edges * self.one_gpu / max(self.work.edges, 1)
        # The root is an assumption; see the notes of `predict`.
        return unscaled * stored_bytes / row_bytes * (whole_rate / table_rate) ** 0.5

    def halo_steps(self, device: int, pieces: int, first: int) -> list[tuple[Step, float]]:
        """Return the steps of the halo scheme, numbered from `first` on."""
        work, rates, n_cols = self.work, self.rates, self.n_cols
        remote, halo, rows = work.remote[device], work.halo[device], work.rows[device]
        row_bytes = n_cols * STORAGE_BYTES[self.storage]
        fetch = self.link_seconds(halo * row_bytes, rates.link_rate(row_bytes))
        multiply = max(self.edge_seconds(work.local[device], rows), rates.step)
        # While both run, the fetch advances at 1 / _FETCH_SLOWDOWN of its rate.
        overlap = min(fetch * _FETCH_SLOWDOWN, multiply)
        multiply += _PRODUCT_DELAY * min(fetch, multiply)
        fetch += overlap * (1 - 1 / _FETCH_SLOWDOWN)
        steps = []
        if self.storage != "float32":
            # As in `halo`, the link's queue rounds the rows, and devices fetch after a barrier.
            rounded_bytes = rows * (n_cols * FLOAT_BYTES + row_bytes)
            rounding = max(rounded_bytes / rates.copy, rates.step) + rates.barrier
            steps.append((Step("round", device, "link"), rounding))
        steps.append((Step("multiply", device), multiply))
        pieces = pieces if halo else 0
        fetches = range(first + len(steps), first + len(steps) + pieces)
        steps += [(Step("fetch", device, "link"), max(fetch / pieces, rates.step)) for _ in fetches]
        for fetch_step in fetches:
            piece_edges, piece_rows = remote / pieces, halo / pieces
            # The expected number of distinct rows of Y to which a piece adds.
            y_rows = min(rows, rows * -np.expm1(-piece_edges / max(rows, 1)))
            y_seconds = 2 * y_rows * n_cols * FLOAT_BYTES / rates.copy
            local_like = self.edge_seconds(piece_edges, piece_rows, self.storage)
            at_random = _product(piece_edges, piece_rows, 0, n_cols, rates, self.storage)
            add_seconds = y_seconds + (local_like + at_random) / 2
            steps.append((Step("add", device, after=(fetch_step,)), max(add_seconds, rates.step)))
        return steps

    def mgg_steps(self, device: int) -> list[tuple[Step, float]]:
        """Return the steps of MGG."""
        rates, (per_edge, per_column) = self.rates, self.rates.edge
        local, remote = self.work.local[device], self.work.remote[device]
        edge_seconds = per_edge + per_column * self.n_cols
        fetch = self.link_seconds(remote * self.n_cols * FLOAT_BYTES, rates.mgg_fetch)
        paired = min(local, remote)
        latency = remote * rates.latency / rates.warps
        paired_seconds = max((paired + remote) * edge_seconds, fetch, latency)
        seconds = max(paired_seconds + (local - paired) * edge_seconds, rates.step)
        return [(Step("aggregate", device), seconds), (Step("get", device, "link"), fetch)]


def advise(
    work: Mapping[int, Work], n_cols: int, rates: Rates, *, one_gpu: float | None = None
) -> dict[int, Prediction]:
    """Predict the halo scheme for several numbers of devices, sorted by time.

    Parameters
    ----------
    work : mapping of int to Work
        Sizes by the number of devices. One device is added if it is missing.
    n_cols, rates, one_gpu
        As in `predict`.

    Returns
    -------
    dict of int to Prediction
        By the number of devices, the fastest first.

    Raises
    ------
    ArgumentError
        If an argument has a wrong type or is out of range.
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
    """Predict the speedup of several devices over one, by share of cut edges and by width.

    Parameters
    ----------
    nodes, edges, devices, shares
        Sizes of an evenly divided graph, as in `Work.even`; `shares` are its values of `cut_share`.
    rates, columns, scheme
        As in `predict`; `columns` are its values of `n_cols`.

    Returns
    -------
    DataFrame
        One row per share, one column per width.

    Raises
    ------
    ArgumentError
        If an argument has a wrong type or is out of range.
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
