"""A model of the time of a training step on several GPUs, to decide how many to use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from accelviz.errors import ArgumentError, checked_integer, checked_number, checked_type
from accelviz.many_gpus.model import Work, on_one
from accelviz.many_gpus.rates import Rates, recorded_rates
from accelviz.plans.operation import FLOAT_BYTES

#: Bytes of memory traffic per node and layer, in rows of the layer's input and output (assumed).
_DENSE_ROWS = 5
#: Seconds of a collective beside its bytes, least seconds of a captured step, seconds to select and
#: add a row of the halo, and share of the link's rate that NCCL reaches: two H100.
_COLLECTIVE, _LEAST_STEP, _SELECT, _LINK_SHARE = 10e-6, 150e-6, 0.55e-9, 0.75
#: Products per layer with attention, forward and backward; memory traffic per row of the halo in
#: its first layer, as `_DENSE_ROWS`; share of an exchange that no product hides: two H100.
_ATTENTION_PRODUCTS, _ATTENTION_ROWS, _EXPOSED = 4, 12, 0.6
#: If a device needs this share of the others' rows, they are sent without a selection.
WHOLE_SHARE = 0.7


@dataclass(frozen=True)
class StepPrediction:
    """The predicted time of a training step.

    Attributes
    ----------
    devices : int
    seconds : float
        Seconds of a step on all devices: `compute + exchange`.
    one_gpu : float
        Seconds of a step on one device.
    compute : float
        Seconds of products and dense operations on the device with the most work.
    exchange : float
        Seconds in which the device with the largest halo exchanges rows, and of the all-reduce.
    """

    devices: int
    seconds: float
    one_gpu: float
    compute: float
    exchange: float

    @property
    def speedup(self) -> float:
        """Time on one device divided by the time on all."""
        return self.one_gpu / self.seconds

    @property
    def choice(self) -> int:
        """The faster number of devices: all, or one."""
        return self.devices if self.speedup > 1 else 1

    def __str__(self) -> str:
        """Return the decision and its reason."""
        plural = "s" if self.choice > 1 else ""
        one, several, compute, exchange = (
            f"{1e3 * seconds:.3g}"
            for seconds in (self.one_gpu, self.seconds, self.compute, self.exchange)
        )
        if self.devices == 1:
            return f"1 device: a step takes {one} ms"
        return (
            f"{self.choice} device{plural}: a step takes {several} ms on {self.devices} devices "
            f"({compute} computing, {exchange} exchanging), {one} ms on one"
        )


def predict_step(
    work: Work,
    widths: Sequence[int],
    rates: Rates | None = None,
    *,
    constant: bool = True,
    dropout: bool = False,
    attention: bool = False,
    overlap: bool = True,
    one_gpu: float | None = None,
) -> StepPrediction:
    """Predict the time of a captured training step of `accelviz.torch` layers on a split graph.

    Parameters
    ----------
    work : Work
        Sizes of the split: `Work.of(split)`.
    widths : sequence of int
        Columns of the features and of each layer's result, such as (128, 64, 16).
    rates : Rates, optional
        By default those that were recorded on two H200.
    constant : bool
        Whether the halo of the features is fetched once, before training (`with_halo`).
    dropout : bool
        Whether a dropout changes the features in each step.
    attention : bool
        Whether the layers have attention, such as GAT's, instead of a sum or mean of neighbors.
    overlap : bool
        Whether sums of neighbors overlap the exchange, as `SplitGraph.overlap`.
    one_gpu : float, optional
        Measured seconds of a step on one device. The default is computed.

    Returns
    -------
    StepPrediction

    Raises
    ------
    ArgumentError
        If an argument has a wrong type or is out of range.

    Notes
    -----
    A layer multiplies the narrower of its input and result, forward and backward, and exchanges its
    rows in both. The first layer of constant features multiplies them once, if they have at most
    twice the columns of its result. Attention multiplies the result, several times, and its first
    layer computes it for the rows of the halo of constant features too. Computing is that of one
    device times the largest share of the edges and nodes. A product with own rows hides an
    exchange, for as long as it takes. Memory traffic of dense operations is an assumption; the
    seconds of exchanges were read off steps on two H100 (docs/many-gpus.md).

    Examples
    --------
    >>> from accelviz import many_gpus
    >>> work = many_gpus.Work.of(many_gpus.split("cora", 2))
    >>> many_gpus.predict_step(work, (128, 64, 16)).speedup < 1
    True
    """
    rates = recorded_rates() if rates is None else rates
    checked_type("work", work, Work, "Work.of(split)")
    checked_type("rates", rates, Rates, "rates_of(measured_rates(Peers(2)))")
    checked_type("widths", widths, Sequence, "columns of the features and of each layer's result")
    columns = [checked_integer("widths", width, error=ArgumentError) for width in widths]
    if len(columns) < 2:
        raise ArgumentError("widths", f"got {widths!r}", "two or more")
    products, dense_rows, exchanged, halo_rows = list[int](), 0, list[int](), 0
    for number, (n_in, n_out) in enumerate(pairwise(columns)):
        dense_rows += _DENSE_ROWS * (n_in + n_out)
        is_first = number == 0 and constant
        narrow = n_out if attention else min(n_in, n_out)
        if attention:
            products += [n_out] * _ATTENTION_PRODUCTS
            halo_rows += _ATTENTION_ROWS * (n_in + n_out) * is_first
        else:
            products += [n_in] if is_first and n_in <= 2 * n_out else [narrow] * 2
        exchanged += [] if is_first else [narrow] * 2
    if dropout:
        dense_rows += 2 * columns[0]
        halo_rows += 2 * columns[0] * constant
    sparse = sum(on_one(work, n_cols, rates) for n_cols in products)
    dense = work.nodes * dense_rows * FLOAT_BYTES / rates.copy
    if one_gpu is None:
        one_gpu = max(sparse + dense, _LEAST_STEP)
    one_gpu = checked_number("one_gpu", one_gpu)
    if work.devices == 1:
        return StepPrediction(1, one_gpu, one_gpu, one_gpu, 0.0)
    others = work.nodes - max(work.rows)
    is_whole = max(work.halo) >= WHOLE_SHARE * others
    rows = others if is_whole else max(work.halo)
    edges = [local + remote for local, remote in zip(work.local, work.remote, strict=True)]
    edge_share = max(edges) / max(work.edges, 1)
    node_share = (max(work.rows) * dense_rows + rows * halo_rows) / (work.nodes * dense_rows)
    scale = one_gpu / (sparse + dense)
    compute = max((edge_share * sparse + node_share * dense) * scale, min(one_gpu, _LEAST_STEP))
    link = _LINK_SHARE * max(rates.link.values())
    exchange, local_share = _COLLECTIVE, max(work.local) / max(work.edges, 1)
    for n_cols in exchanged:
        seconds = rows * n_cols * FLOAT_BYTES / link
        if overlap and not attention:
            hidden = local_share * on_one(work, n_cols, rates) * scale
            seconds = max(seconds - hidden, _EXPOSED * seconds)
        exchange += seconds + _COLLECTIVE + rows * (0 if is_whole else _SELECT)
    return StepPrediction(work.devices, compute + exchange, one_gpu, compute, exchange)
