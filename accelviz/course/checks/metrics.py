"""Metrics of a partition scheme, counted from its workload, and what they earn in A3."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from accelviz.graph import Graph
from accelviz.plans import Plan
from accelviz.strategies import plan as make_plan

#: Columns that metrics are taken with; none of them depends on how many.
N_COLS = 64
#: Nonzeros of the busiest warp that earn all points, and from which on there are none.
FINE_WARP, COARSE_WARP = 64, 1_024
#: The papers' schemes that cut most.
CUTTING = ("merge_path", "gnnadvisor")


@dataclass(frozen=True)
class Metrics:
    """What a scheme does to a graph; less is better in each of them."""

    #: Share of warp time spent idle or waiting for the block's busiest warp (`idle_share`).
    waiting: float
    #: Nonzeros of the busiest warp: nothing is faster than its slowest part.
    busiest_warp: float
    #: Bytes of the plan's metadata; of a student's, those that `slice_workload` holds, if those
    #: are more.
    metadata_bytes: float
    #: Parts of rows that are cut over blocks: for each column, as many atomic additions in global
    #: memory.
    cut_parts: float


def compared(plan: Plan, graph: Graph) -> tuple[Metrics, Metrics, Metrics, Metrics]:
    """Return a plan's metrics, those that earn nothing and everything, and the shares earned."""
    measures = (measured(plan), *bounds(graph))
    return (*measures, shares(*measures))


def bounds(graph: Graph) -> tuple[Metrics, Metrics]:
    """Return the metrics that earn nothing, and those that earn everything, for a graph."""
    row_split = measured(make_plan(graph, "graphblast", N_COLS))
    accel_gcn = measured(make_plan(graph, "accel_gcn", N_COLS))
    nothing = Metrics(
        row_split.waiting,
        max(row_split.busiest_warp, COARSE_WARP),
        make_plan(graph, "accel_gcn", N_COLS, partition="warp").metadata_bytes,
        max(measured(make_plan(graph, name, N_COLS)).cut_parts for name in CUTTING),
    )
    full = Metrics(accel_gcn.waiting, FINE_WARP, accel_gcn.metadata_bytes, accel_gcn.cut_parts)
    return nothing, full


def shares(yours: Metrics, nothing: Metrics, full: Metrics) -> Metrics:
    """Return the share of the points that each metric earns, 0 to 1.

    It is linear between the `bounds`; of `busiest_warp`, between their logarithms. Where they leave
    nothing to gain, `full` or less earns everything and more earns nothing. Little metadata and few
    cuts are worth nothing where the warps wait instead: their shares are multiplied by that of
    `waiting`.
    """
    waiting = _share(yours.waiting, nothing.waiting, full.waiting)
    return Metrics(
        waiting,
        _share(*(math.log(max(1.0, metrics.busiest_warp)) for metrics in (yours, nothing, full))),
        waiting * _share(yours.metadata_bytes, nothing.metadata_bytes, full.metadata_bytes),
        waiting * _share(yours.cut_parts, nothing.cut_parts, full.cut_parts),
    )


def _share(yours: float, nothing: float, full: float) -> float:
    if yours <= full:
        return 1.0
    return max(0.0, (nothing - yours) / (nothing - full)) if nothing > full else 0.0


def measured(plan: Plan) -> Metrics:
    """Count a plan's metrics from its workload."""
    work, counted = plan.workload(), plan.statistics
    parts = np.unique(np.stack([work.row.astype(np.int64), work.block], axis=1), axis=0)
    per_row = np.bincount(parts[:, 0], minlength=1)
    held = getattr(plan.strategy, "held", 0)
    metadata_bytes = max(plan.metadata_bytes, held)
    cut_parts = int(per_row[per_row > 1].sum())
    return Metrics(counted.idle_share, counted.largest, metadata_bytes, cut_parts)
