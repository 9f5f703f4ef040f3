"""Metrics of a partition scheme, computed from its workload, and their points in assignment A3.

Each metric earns a share of its points by linear interpolation between two anchors: the value that
earns nothing, from a simple scheme such as the row split, and the value that earns everything, from
Accel-GCN. See `shares`.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

from accelviz.graph import Graph
from accelviz.plans import Plan
from accelviz.strategies import plan as make_plan

#: Columns of the dense matrix in the plans: with 32, a warp of a scheme is one of the hardware.
N_COLS = 32
#: Nonzeros of the busiest warp that earn all points, and that earn none.
FINE_WARP, COARSE_WARP = 64, 1_024
#: The papers' schemes; the first two split most rows over several blocks.
PAPERS = ("merge_path", "gnnadvisor", "graphblast", "accel_gcn")


@dataclass(frozen=True)
class Metrics:
    """Metrics of a scheme on a graph; less is better for each."""

    #: Share of warp time that is idle until the block's busiest warp ends (`idle_share`).
    waiting: float
    #: Nonzeros of the busiest warp, a lower bound of the run time.
    busiest_warp: float
    #: Bytes of the plan's metadata.
    metadata_bytes: float
    #: Parts of rows that are split over blocks. Each costs one atomic addition in global memory per
    #: column.
    cut_parts: float


def compared(yours: Metrics, graph: Graph) -> tuple[Metrics, Metrics, Metrics, Metrics]:
    """Return a scheme's metrics, the two `bounds` of the graph, and the shares earned."""
    metrics = (yours, *bounds(graph))
    return (*metrics, shares(*metrics))


@functools.lru_cache(maxsize=32)
def papers(graph: Graph) -> dict[str, Metrics]:
    """Return the metrics of the papers' schemes on a graph, by name."""
    return {name: measured(make_plan(graph, name, N_COLS)) for name in PAPERS}


def bounds(graph: Graph) -> tuple[Metrics, Metrics]:
    """Return two anchors for a graph: metrics that earn nothing, and metrics that earn all."""
    *splitting, row_split, accel_gcn = papers(graph).values()
    nothing = Metrics(
        row_split.waiting,
        max(row_split.busiest_warp, COARSE_WARP),
        make_plan(graph, "accel_gcn", N_COLS, partition="warp").metadata_bytes,
        max(scheme.cut_parts for scheme in splitting),
    )
    full = Metrics(accel_gcn.waiting, FINE_WARP, accel_gcn.metadata_bytes, accel_gcn.cut_parts)
    return nothing, full


def shares(yours: Metrics, nothing: Metrics, full: Metrics) -> Metrics:
    """Return the share of the points that each metric earns, 0 to 1.

    The share is linear between the `bounds`, for `busiest_warp` between their logarithms. Where
    the bounds are equal or reversed, `full` or less earns everything and more earns nothing. The
    shares of `metadata_bytes` and `cut_parts` are multiplied by that of `waiting`, so that a scheme
    earns nothing by saving metadata at the price of idle warps.
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
    """Compute a plan's metrics from its workload."""
    work, statistics = plan.workload(), plan.statistics
    parts = np.unique(np.stack([work.row.astype(np.int64), work.block], axis=1), axis=0)
    blocks_per_row = np.bincount(parts[:, 0], minlength=1)
    cut_parts = int(blocks_per_row[blocks_per_row > 1].sum())
    return Metrics(statistics.idle_share, statistics.largest, plan.metadata_bytes, cut_parts)
