"""`lane_groups` for all operations of `walks`: one pass over the nonzeros by subwarps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from accelviz.graph import Graph
from accelviz.immutable import taken_over
from accelviz.ordering import RowDegrees
from accelviz.partition.block_level import BlockSetting
from accelviz.partition.nonzero_runs import numbers_32
from accelviz.partition.subwarps import WORDS
from accelviz.plans import Description, LaneColumns, Settings, Widths, setting
from accelviz.plans.launch import WARP_SIZE, Call, KernelSpec, LaunchConfig
from accelviz.plans.plan import Buffers, Plan, Provenance
from accelviz.strategies.attention.walks import Functor, WalkStrategy, cover_head, lane_config
from accelviz.strategies.blocks import POWERS
from accelviz.strategies.subwarps import Blocks, setting_like, subwarp_layout

#: Floats of gathered rows that a lane loads together, and most nonzeros to which they belong.
FLOATS_AT_ONCE, MOST_AT_ONCE = 32, 4
#: Registers of an SM; registers of a thread beside its columns; most resident threads of an SM.
#: They bound `blocks_per_sm`: with more blocks registers spill, with fewer the occupancy is low.
#: Yelp's twin on an H200, 64 columns: cosine and its gradient take 0.71 and 1.73 ms with 6 blocks,
#: 1.04 and 1.95 with 8. 8 heads of 8 columns: gat takes 0.70 and 1.37 with 8, 0.97 and 1.49 with 6.
SM_REGISTERS, OTHER_REGISTERS, SM_THREADS = 1 << 16, 28, 1024
#: Most bytes of shared memory for the sums of a block's subwarps.
STATE_BYTES = 16 << 10


class LaneGroupSettings(Settings):
    """Settings as of SpMM's `lane_groups`, per head; a rule chooses those that are None."""

    head_lanes: int = setting(
        None,
        "lanes that share the columns of a head; more: fewer loads per lane, fewer rows per warp",
        choices=POWERS,
        tries=(4, 8, 16),
    )
    at_once: int = setting_like("at_once", most=8, tries=(1, 2, 4))
    group_nzs: int = setting_like("group_nzs", default=32, tries=(16, 32, 64))
    short_nzs: int = setting_like("short_nzs", default=8, tries=(4, 8, 16))
    block_threads: int = setting_like("block_threads", tries=(128, 256))
    blocks_per_sm: int = setting_like("blocks_per_sm", tries=(4, 8, 12))


class LaneGroups(WalkStrategy):
    """Subwarps process rows of equal degree; softmax is computed in the same pass."""

    name = "lane_groups"
    summary = "our own: subwarps, one pass over nonzeros, no array of edges x columns"
    worker = "subwarp"
    metadata_words = WORDS
    metadata_owner = "block"
    Settings = LaneGroupSettings

    def blocks(self, settings: LaneGroupSettings, widths: Widths) -> Blocks:
        """Return the blocks: of each subwarp several heads, if they fit in a warp."""
        n_heads, n_cols = self.heads(widths)
        lanes = cover_head(n_cols, settings.head_lanes)
        heads = min(n_heads, WARP_SIZE // lanes.lanes)
        one_subwarp = Blocks(lanes, BlockSetting(1, settings.group_nzs), settings.short_nzs, heads)
        outputs = max(functor.outputs for functor in self.functors)
        most_subwarps = STATE_BYTES // (4 * outputs * one_subwarp.subwarp_floats)
        subwarps = min(settings.block_threads // (heads * lanes.lanes), WARP_SIZE, most_subwarps)
        return replace(one_subwarp, subwarps=BlockSetting(max(1, subwarps), settings.group_nzs))

    def lane_config(self, settings: LaneGroupSettings, widths: Widths) -> dict[str, int]:
        """Return the lanes and vectors of a head."""
        _, n_cols = self.heads(widths)
        return lane_config(cover_head(n_cols, settings.head_lanes), n_cols)

    def resolve(
        self, settings: LaneGroupSettings, graph: Graph | RowDegrees, widths: Widths
    ) -> LaneGroupSettings:
        """Choose the settings that are None by the columns of a head and a lane's registers."""
        functors = self.functors
        blocks = self.blocks(settings, widths)
        lane_columns = blocks.lanes.vector * blocks.lanes.lane_vectors
        item_floats = lane_columns * max(functor.items for functor in functors)
        at_once = settings.at_once or max(1, min(FLOATS_AT_ONCE // item_floats, MOST_AT_ONCE))
        floats = max(
            lane_columns * (functor.outputs + functor.rows + functor.items * at_once)
            + functor.numbers * at_once
            for functor in functors
        )
        registers = -(-(OTHER_REGISTERS + floats) // 8) * 8
        sm_blocks = max(1, min(SM_THREADS, SM_REGISTERS // registers) // blocks.threads)
        sm_blocks = min(settings.blocks_per_sm or sm_blocks, 2048 // blocks.threads, 32)
        resolved = settings.filled(head_lanes=blocks.lanes.lanes, at_once=at_once)
        return resolved.replaced(blocks_per_sm=sm_blocks)

    def describe(
        self, settings: LaneGroupSettings, rows: RowDegrees, widths: Widths
    ) -> Description:
        """Describe the subwarps, without atomics; and the lanes, if there is one head."""
        blocks, (heads, n_cols) = self.blocks(settings, widths), self.heads(widths)
        lanes = LaneColumns(blocks.lanes.lanes, blocks.lanes.vector, n_cols)
        grid_y = -(-heads // blocks.heads_together)
        scheme = blocks.scheme(grid_y)
        return Description(scheme, lanes if heads == 1 else None, blocks.workers)

    def walk(
        self, functor: Functor, walked: Graph, order: Any, provenance: Provenance
    ) -> tuple[Plan, int]:
        """Sort the rows by degree and partition them into blocks of subwarps."""
        settings, widths = provenance.settings, provenance.widths
        assert isinstance(settings, LaneGroupSettings)
        heads, n_cols = self.heads(widths)
        blocks = self.blocks(settings, widths)
        layout, partition, seconds = subwarp_layout(walked, blocks)
        nonzero_order = sorted_order = partition.nonzero_order
        if order is not None:  # composed once for the plans of all widths
            nonzero_order = walked.store.get(
                "nonzeros turned", lambda: taken_over(order[sorted_order])
            )
            layout = replace(layout, nonzero_order=nonzero_order)
        grid_y = -(-heads // blocks.heads_together)
        workspaces = ("part_sums", "part_heads", "arrivals")
        kernel = KernelSpec(
            "attention/lane_groups.cu",
            f"{functor.name}<Config>",
            {
                **blocks.config,
                **self.lane_config(settings, widths),
                "heads_together": blocks.heads_together,
                "whole_heads": int(heads % blocks.heads_together == 0),
                "at_once": settings.at_once,
                "blocks_per_sm": settings.blocks_per_sm,
            },
            (*functor.arguments((*partition.arrays, "order"), workspaces), "heads", "n_cols"),
        )
        n_blocks = len(partition.metadata)
        launch = LaunchConfig((n_blocks, grid_y, 1), blocks.threads // WARP_SIZE)
        n_parts = max(partition.cut_blocks, 1) * grid_y
        sizes = {"heads": np.int32(heads), "n_cols": np.int32(n_cols)}
        buffers = Buffers(
            {**partition.arrays, "order": numbers_32(nonzero_order), **sizes},
            {
                "part_sums": (
                    n_parts * max(functor.outputs, 1) * blocks.subwarp_floats,
                    np.float32,
                ),
                "part_heads": (2 * n_parts * blocks.heads_together, np.float32),
                "arrivals": (n_parts, np.uint32),
            },
        )
        provenance = replace(provenance, setup_seconds=seconds)
        return Plan(layout, (Call(launch, kernel),), buffers, provenance), n_blocks
