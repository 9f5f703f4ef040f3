"""`lane_groups`, our own SpMM: Accel-GCN's block partition with subwarps in place of warps.

Blocks copy their nonzeros to shared memory and write whole rows of Y, which is not zeroed first.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from accelviz.arrays import Ints
from accelviz.graph import Graph, Pattern
from accelviz.immutable import taken_over
from accelviz.ordering import RowDegrees
from accelviz.ordering.local import is_local
from accelviz.partition.subwarps import WORDS, SubwarpPartition, subwarp_workload
from accelviz.plans import Description, LaneColumns, Strategy, Widths
from accelviz.plans.gpu import RESERVED_SHARED_BYTES, SM_SHARED_BYTES
from accelviz.plans.launch import WARP_SIZE, Call, KernelSpec, LaunchConfig
from accelviz.plans.plan import Buffers, Layout, Plan, Provenance
from accelviz.strategies.lanes import VECTORS
from accelviz.strategies.spmm.lane_groups.preprocessing import preprocess
from accelviz.strategies.spmm.operation import SPMM
from accelviz.strategies.subwarps import (
    Blocks,
    LaneGroupSettings,
    local_order,
    subwarp_layout,
)


class LaneGroups(Strategy):
    """Subwarps process rows of equal degree; a block loads all its nonzeros together.

    `strategies/subwarps.py` has the rule for settings. With `storage` "float16" or "bfloat16" X is
    rounded first; sums and Y are float32.
    """

    operation = SPMM
    name = "lane_groups"
    summary = "our own: subwarps, nonzeros in shared memory, blocks in graph order, no zeroing"
    Settings = LaneGroupSettings
    worker = "subwarp"
    metadata_words = WORDS
    metadata_owner = "block"

    def build(self, graph: Graph, widths: Widths, settings: LaneGroupSettings) -> Plan:
        """Sort the rows by degree and partition them into blocks of subwarps.

        Raises
        ------
        PartitionError
            If the graph has 2^32 nonzeros or more.
        """
        _, order_seconds = local_order(graph)
        blocks = Blocks.of(settings, widths["n_cols"])
        layout, partition, seconds = subwarp_layout(graph, blocks, settings.block_order == "place")
        seconds = {**order_seconds, **seconds}
        provenance = Provenance(self, graph.values, widths, settings, seconds)
        return _plan(layout, blocks, partition, provenance)

    def build_on(
        self, device: Any, pattern: Pattern, widths: Widths, settings: LaneGroupSettings
    ) -> Plan:
        """Sort and partition on the device; see `Strategy`. Runs of the plan need `values`."""
        settings = settings.resolved(
            widths["n_cols"], pattern.shape, pattern.nnz, lambda: is_local(pattern, device.xp)
        )
        blocks = Blocks.of(settings, widths["n_cols"])
        partition = preprocess(
            device, pattern, blocks.subwarps, blocks.short_nzs, settings.block_order
        )
        metadata = cache(lambda: device.to_host(partition.metadata))
        return _plan(
            Layout(
                pattern,
                lambda start, stop: subwarp_workload(metadata(), blocks.subwarps, start, stop),
                nonzero_order=partition.nonzero_order,
                metadata=partition.metadata,
                workers_per_block=blocks.subwarps.max_block_warps,
            ),
            blocks,
            partition,
            Provenance(self, None, widths, settings),
        )

    def choices(self, graph: Graph, n_cols: int) -> dict[str, tuple[Any, ...]]:
        """Return the values that were the fastest for some graph of the sweeps."""
        tiles = (n_cols, *(tile for tile in (64, 32) if tile < n_cols))
        order = ("blocks_per_sm", "at_once", "group_nzs", "short_nzs")
        return {
            "column_tile": tiles if n_cols > 32 else (),
            **{name: self.parameters[name].tries for name in order},
            "block_order": ("place", "degree"),
        }

    def resolve(
        self, settings: LaneGroupSettings, graph: Graph | RowDegrees, widths: Widths
    ) -> LaneGroupSettings:
        """Choose the settings that are None by the graph's size and vertex order.

        For `RowDegrees` the vertex order is unknown: a `column_tile` that depends on it stays None.
        """

        def is_local_order() -> bool | None:
            return None if isinstance(graph, RowDegrees) else local_order(graph)[0]

        return settings.resolved(widths["n_cols"], graph.shape, graph.nnz, is_local_order)

    def describe(
        self, settings: LaneGroupSettings, rows: RowDegrees, widths: Widths
    ) -> Description:
        """Describe the blocks; the lanes of a subwarp cover a column tile, a vector each."""
        blocks = Blocks.of(settings, widths["n_cols"])
        lanes = blocks.lanes
        tiles = None if settings.column_tile is None else lanes.tiles
        return Description(
            blocks.scheme(tiles, settings.block_order == "place"),
            LaneColumns(lanes.lanes, lanes.vector, blocks.subwarp_floats),
            blocks.workers,
            self._text(settings),
        )

    def _text(self, settings: LaneGroupSettings) -> str:
        staged = "nonzeros in shared memory, " * settings.stage
        order = "graph" if settings.block_order == "place" else "degree"
        return f"our own: subwarps, {staged}blocks in {order} order, no zeroing"


def _plan(
    layout: Layout, blocks: Blocks, partition: SubwarpPartition, provenance: Provenance
) -> Plan:
    """Return the plan of a partition that was computed on the host or on a GPU."""
    n_cols, settings, lanes = provenance.widths["n_cols"], provenance.settings, blocks.lanes
    assert isinstance(settings, LaneGroupSettings)
    cut_blocks = max(partition.cut_blocks, 1)
    # Shared memory holds a block's nonzeros or one sum per subwarp; the rest of it serves as L1.
    shared_bytes = max(
        8 * blocks.block_nonzeros, 4 * blocks.subwarps.max_block_warps * blocks.subwarp_floats
    )
    sm_shared_bytes = settings.blocks_per_sm * (shared_bytes + RESERVED_SHARED_BYTES)
    launch = LaunchConfig(
        (len(partition.metadata), lanes.tiles, 1),
        blocks.threads // WARP_SIZE,
        shared_percent=min(-(-100 * sm_shared_bytes // SM_SHARED_BYTES), 100),
    )
    kernel = KernelSpec(
        file="spmm/lane_groups.cu",
        entry="lane_groups",
        config={
            **blocks.config,
            "vector": lanes.vector,
            "features": list(VECTORS).index(settings.storage),
            "lanes": lanes.lanes,
            "whole_tiles": int(lanes.whole(n_cols)),
            "stage": int(settings.stage),
            "at_once": settings.at_once,
            "blocks_per_sm": settings.blocks_per_sm,
            "accumulate": 0,
        },
        arguments=(
            *("metadata", "output_rows", "columns", "values", "X", "Y"),
            *("part_sums", "arrivals", "n_cols"),
        ),
    )
    buffers = Buffers(
        {**partition.arrays, "n_cols": np.int32(n_cols)},
        {"arrivals": (cut_blocks * lanes.tiles, np.uint32)},
        {"part_sums": (cut_blocks * n_cols, np.float32)},
        zero_outputs=(),
        storage=settings.storage,
    )
    return Plan(layout, (Call(launch, kernel),), buffers, provenance)


def accumulating(kernel: KernelSpec) -> KernelSpec:
    """Return a kernel of `lane_groups` that adds its result to Y."""
    return replace(kernel, config={**kernel.config, "accumulate": 1})


def accumulating_plan(plan: Plan, rows: Ints) -> Plan:
    """Return a plan that adds its result to given rows of a larger Y.

    Parameters
    ----------
    plan : Plan
        A plan of `lane_groups`.
    rows : array of int32, shape (n_rows,)
        Row of Y to which each row of the plan's result is added.
    """
    (call,) = plan.calls
    assert isinstance(call, Call)
    assert call.kernel is not None
    output_rows = taken_over(rows[np.asarray(plan.arrays["output_rows"])])
    buffers = replace(plan.buffers, arrays={**plan.arrays, "output_rows": output_rows})
    calls = (replace(call, kernel=accumulating(call.kernel)),)
    return replace(plan, calls=calls, buffers=buffers)
