"""Our own strategy: Accel-GCN's blocks for subwarps, nonzeros staged, no zeroing of Y."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from accelviz.arrays import Ints
from accelviz.graph import Graph, Pattern, taken_over
from accelviz.ordering import RowDegrees
from accelviz.ordering.local import is_local
from accelviz.partition.subwarps import WORDS, SubwarpPartition, subwarp_workload
from accelviz.plans import Description, LaneColumns, Strategy, Widths
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

#: Shared memory that CUDA takes for itself in each block, and what an SM has at most (H100, H200).
_RESERVED_BYTES, _SM_SHARED_BYTES = 1024, 228 * 1024


class LaneGroups(Strategy):
    """Subwarps have rows of equal degree; a block loads its nonzeros all at once.

    `settings` has the rule. With `storage` "float16" or "bfloat16" the features are rounded
    beforehand, which is another problem; sums and result stay float32.
    """

    operation = SPMM
    name = "lane_groups"
    summary = "our own: subwarps, staged nonzeros, blocks in the order of the graph, no zeroing"
    Settings = LaneGroupSettings
    worker = "subwarp"
    metadata_words = WORDS
    metadata_owner = "block"

    def build(self, graph: Graph, widths: Widths, settings: LaneGroupSettings) -> Plan:
        """Sort the rows, and partition them into blocks of subwarps.

        Raises
        ------
        PartitionError
            If the graph has 2^32 nonzeros or more.
        """
        _, look_seconds = local_order(graph)
        blocks = Blocks.of(settings, widths["n_cols"])
        layout, partition, seconds = subwarp_layout(graph, blocks, settings.block_order == "place")
        seconds = {**look_seconds, **seconds}
        provenance = Provenance(self, graph.values, widths, settings, seconds)
        return _plan(layout, blocks, partition, provenance)

    def build_on(
        self, device: Any, pattern: Pattern, widths: Widths, settings: LaneGroupSettings
    ) -> Plan:
        """Sort and partition on the device; see `Strategy`. The plan's runs bring `values`."""
        settings = settings.resolved(
            widths["n_cols"], pattern.shape, pattern.nnz, lambda: is_local(pattern, device.xp)
        )
        blocks = Blocks.of(settings, widths["n_cols"])
        partition = preprocess(
            device, pattern, blocks.groups, blocks.short_nzs, settings.block_order
        )
        metadata = cache(lambda: device.to_host(partition.metadata))
        return _plan(
            Layout(
                pattern,
                lambda start, stop: subwarp_workload(metadata(), blocks.groups, start, stop),
                nonzero_order=partition.nonzero_order,
                metadata=partition.metadata,
                workers_per_block=blocks.groups.max_block_warps,
            ),
            blocks,
            partition,
            Provenance(self, None, widths, settings),
        )

    def choices(self, graph: Graph, n_cols: int) -> dict[str, tuple[Any, ...]]:
        """Return the settings around the rule's that were the fastest of some graph."""
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
        """Ask the rule, which looks at the graph's size and order.

        Degrees do not say whether the order of the vertices is local; where that matters,
        `column_tile` stays None.
        """

        def local() -> bool | None:
            return None if isinstance(graph, RowDegrees) else local_order(graph)[0]

        return settings.resolved(widths["n_cols"], graph.shape, graph.nnz, local)

    def describe(
        self, settings: LaneGroupSettings, rows: RowDegrees, widths: Widths
    ) -> Description:
        """Name the blocks; a subwarp has the columns of a tile, a vector a lane."""
        blocks = Blocks.of(settings, widths["n_cols"])
        lanes = blocks.lanes
        return Description(
            blocks.scheme(
                None if settings.column_tile is None else lanes.tiles,
                settings.block_order == "place",
            ),
            LaneColumns(lanes.lanes, lanes.vector, blocks.row_floats),
        )


def _plan(
    layout: Layout, blocks: Blocks, partition: SubwarpPartition, provenance: Provenance
) -> Plan:
    """Return the plan of blocks that the host or the GPU has made of a pattern."""
    n_cols, settings, lanes = provenance.widths["n_cols"], provenance.settings, blocks.lanes
    assert isinstance(settings, LaneGroupSettings)
    cut_blocks = max(partition.cut_blocks, 1)
    # Shared memory holds a block's nonzeros, or a sum for each subwarp. What is left is L1.
    shared_bytes = max(8 * blocks.staged, 4 * blocks.groups.max_block_warps * blocks.row_floats)
    taken = settings.blocks_per_sm * (shared_bytes + _RESERVED_BYTES)
    launch = LaunchConfig(
        (len(partition.metadata), lanes.tiles, 1),
        blocks.threads // WARP_SIZE,
        shared_percent=min(-(-100 * taken // _SM_SHARED_BYTES), 100),
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


def accumulating(plan: Plan, rows: Ints) -> Plan:
    """Return a plan that adds its products to some rows of a larger Y.

    Parameters
    ----------
    plan : Plan
        Of `lane_groups`.
    rows : array of int32, shape (n_rows,)
        The row of Y that each row of the plan's matrix is added to.
    """
    (call,) = plan.calls
    assert isinstance(call, Call)
    assert call.kernel is not None
    kernel = replace(call.kernel, config={**call.kernel.config, "accumulate": 1})
    output_rows = taken_over(rows[np.asarray(plan.arrays["output_rows"])])
    buffers = replace(plan.buffers, arrays={**plan.arrays, "output_rows": output_rows})
    return replace(plan, calls=(replace(call, kernel=kernel),), buffers=buffers)
