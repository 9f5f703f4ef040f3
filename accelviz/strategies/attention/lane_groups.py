"""Our own attention, its gradients and those of an SpMM: one pass over nonzeros by subwarps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.partition.block_level import BlockSetting
from accelviz.partition.nonzero_runs import numbers_32
from accelviz.partition.subwarps import WORDS
from accelviz.plans import Description, LaneColumns, Settings, Widths, setting
from accelviz.plans.launch import WARP_SIZE, Call, KernelSpec, LaunchConfig
from accelviz.plans.plan import Buffers, Plan, Provenance
from accelviz.strategies.attention.walks import Functor, WalkStrategy, cover_head, lane_config
from accelviz.strategies.blocks import POWERS
from accelviz.strategies.subwarps import Blocks, subwarp_layout

#: Most nonzeros of a subwarp, and of one that takes several rows.
GROUP_NZS, SHORT_NZS = 32, 8
#: Floats of gathered rows that a lane has on their way at once, and most nonzeros of them.
FLOATS_AT_ONCE, MOST_AT_ONCE = 32, 4
#: Registers of an SM, and those of a lane beside what it keeps of a row and of its nonzeros: with
#: more blocks the compiler would put columns into memory. No more than so many threads at once.
#: On an H200, 64 columns of Yelp's twin, cosine and its gradient: 0.71 and 1.73 ms with 6 blocks,
#: 1.04 and 1.95 with 8; 8 heads of 8, gat: 0.70 and 1.37 with 8, 0.97 and 1.49 with 6.
SM_REGISTERS, OTHER_REGISTERS, SM_THREADS = 1 << 16, 28, 1024
#: Bytes of the states of a block's subwarps.
STATE_BYTES = 16 << 10


class LaneGroupSettings(Settings):
    """What a kernel is compiled with; None for the choice of a rule."""

    head_lanes: int = setting(
        None,
        "lanes that share the columns of a head; more: fewer turns, fewer rows in a warp",
        choices=POWERS,
        tries=(4, 8, 16),
    )
    at_once: int = setting(
        None,
        "nonzeros whose loads are in flight together; more: less waiting, more registers",
        8,
        tries=(1, 2, 4),
    )
    group_nzs: int = setting(
        GROUP_NZS,
        "most nonzeros of a subwarp; more: long rows in fewer pieces, and each lasts longer",
        128,
        tries=(16, 32, 64),
    )
    short_nzs: int = setting(
        SHORT_NZS,
        "most nonzeros of a subwarp that takes several rows; more: fewer of them for short rows",
        128,
        tries=(4, 8, 16),
    )
    block_threads: int = setting(
        128,
        "most threads of a block; more: fewer, larger blocks",
        512,
        step=WARP_SIZE,
        tries=(128, 256),
    )
    blocks_per_sm: int = setting(
        None,
        "blocks that an SM has room for; more: fewer registers for each thread",
        32,
        tries=(4, 8, 12),
    )


class LaneGroups(WalkStrategy):
    """Subwarps have rows of equal degree; softmax, if any, is found on the way through them."""

    name = "lane_groups"
    summary = "our own: subwarps, one pass over nonzeros, nothing the size of edges x columns"
    worker = "subwarp"
    metadata_words = WORDS
    metadata_owner = "block"
    Settings = LaneGroupSettings

    def blocks(self, settings: LaneGroupSettings, widths: Widths) -> Blocks:
        """Return the blocks of the operation's kernels; a subwarp has several heads together."""
        lanes = cover_head(widths["n_cols"], settings.head_lanes)
        together = min(widths.get("heads", 1), WARP_SIZE // lanes.lanes)
        alone = Blocks(lanes, BlockSetting(1, settings.group_nzs), settings.short_nzs, together)
        outputs = max(functor.outputs for functor in self.functors)
        fit = STATE_BYTES // (4 * outputs * alone.subwarp_floats)
        groups = min(settings.block_threads // (together * lanes.lanes), WARP_SIZE, fit)
        return replace(alone, groups=BlockSetting(max(1, groups), settings.group_nzs))

    def resolve(
        self, settings: LaneGroupSettings, graph: Graph | RowDegrees, widths: Widths
    ) -> LaneGroupSettings:
        """Ask the rule, which looks at the columns of a head."""
        functors = self.functors
        blocks = self.blocks(settings, widths)
        width = blocks.lanes.vector * blocks.lanes.lane_vectors
        items = max(functor.items for functor in functors)
        at_once = settings.at_once or max(1, min(FLOATS_AT_ONCE // (items * width), MOST_AT_ONCE))
        floats = max(
            width * (functor.outputs + functor.rows + functor.items * at_once)
            + functor.numbers * at_once
            for functor in functors
        )
        registers = -(-(OTHER_REGISTERS + floats) // 8) * 8
        room = max(1, min(SM_THREADS, SM_REGISTERS // registers) // blocks.threads)
        room = min(settings.blocks_per_sm or room, 2048 // blocks.threads, 32)
        resolved = settings.filled(head_lanes=blocks.lanes.lanes, at_once=at_once)
        return resolved.replaced(blocks_per_sm=room)

    def describe(
        self, settings: LaneGroupSettings, rows: RowDegrees, widths: Widths
    ) -> Description:
        """Name the subwarps, without atomics; lanes have the columns of a head, if it is one."""
        blocks, heads = self.blocks(settings, widths), widths.get("heads", 1)
        lanes = LaneColumns(blocks.lanes.lanes, blocks.lanes.vector, widths["n_cols"])
        turns = -(-heads // blocks.heads_together)
        return Description(blocks.scheme(turns), lanes if heads == 1 else None)

    def walk(
        self, functor: Functor, over: Graph, order: Any, provenance: Provenance
    ) -> tuple[Plan, int]:
        """Sort the rows, and partition them into blocks of subwarps."""
        settings, widths = provenance.settings, provenance.widths
        assert isinstance(settings, LaneGroupSettings)
        blocks, n_cols, heads = (
            self.blocks(settings, widths),
            widths["n_cols"],
            widths.get("heads", 1),
        )
        layout, partition, seconds = subwarp_layout(over, blocks)
        nonzero_order = inner = partition.nonzero_order
        if order is not None:  # once for the plans of all widths
            nonzero_order = over.store.get("nonzeros turned", lambda: order[inner])
            nonzero_order.setflags(write=False)
            layout = replace(layout, nonzero_order=nonzero_order)
        together, turns = blocks.heads_together, -(-heads // blocks.heads_together)
        sums = ("part_sums", "part_heads", "arrivals")
        kernel = KernelSpec(
            "attention/lane_groups.cu",
            f"{functor.name}<Config>",
            {
                **blocks.config,
                **lane_config(blocks.lanes, n_cols),
                "heads_together": together,
                "whole_heads": int(heads % together == 0),
                "at_once": settings.at_once,
                "blocks_per_sm": settings.blocks_per_sm,
            },
            (*functor.arguments((*partition.arrays, "order"), sums), "heads", "n_cols"),
        )
        n_blocks = len(partition.metadata)
        launch = LaunchConfig((n_blocks, turns, 1), blocks.threads // WARP_SIZE)
        cut = max(partition.cut_blocks, 1) * turns
        sizes = {"heads": np.int32(heads), "n_cols": np.int32(n_cols)}
        buffers = Buffers(
            {**partition.arrays, "order": numbers_32(nonzero_order), **sizes},
            {
                "part_sums": (cut * max(functor.outputs, 1) * blocks.subwarp_floats, np.float32),
                "part_heads": (2 * cut * together, np.float32),
                "arrivals": (cut, np.uint32),
            },
        )
        provenance = replace(provenance, setup_seconds=seconds)
        return Plan(layout, (Call(launch, kernel),), buffers, provenance), n_blocks
