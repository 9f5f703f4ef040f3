"""Our own attention, its gradients and those of an SpMM: one pass over nonzeros by lane groups."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.ordering.degree import SortedRows
from accelviz.partition.block_level import FIELD_BITS, BlockSetting
from accelviz.partition.lane_groups import (
    WORDS,
    Subwarps,
    lane_group_workload,
    subwarp_partition,
)
from accelviz.partition.nonzero_runs import numbers_32
from accelviz.plans.description import Description, LaneColumns
from accelviz.plans.launch import WARP_SIZE, Call, KernelSpec, LaunchConfig
from accelviz.plans.operation import Operation
from accelviz.plans.plan import Buffers, Layout, Plan, Provenance, Strategy, Widths
from accelviz.plans.settings import Settings, setting
from accelviz.strategies.attention import walks
from accelviz.strategies.blocks import POWERS
from accelviz.strategies.lanes import Lanes

#: Most nonzeros of a group, and of a group that takes several rows.
GROUP_NZS, SHORT_NZS = 32, 8
#: Floats of gathered rows that a lane has on their way at once, and most nonzeros of them.
FLOATS_AT_ONCE, MOST_AT_ONCE = 32, 4
#: Registers of an SM, and those of a lane beside what it keeps of a row and of its nonzeros: with
#: more blocks the compiler would put columns into memory. No more than so many threads at once.
#: On an H200, 64 columns of Yelp's twin, cosine and its gradient: 0.71 and 1.73 ms with 6 blocks,
#: 1.04 and 1.95 with 8; 8 heads of 8, gat: 0.70 and 1.37 with 8, 0.97 and 1.49 with 6.
SM_REGISTERS, OTHER_REGISTERS, SM_THREADS = 1 << 16, 28, 1024
#: Bytes of the states of a block's groups.
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
        "most nonzeros of a group; more: long rows in fewer pieces, and each lasts longer",
        128,
        tries=(16, 32, 64),
    )
    short_nzs: int = setting(
        SHORT_NZS,
        "most nonzeros of a group that takes several rows; more: fewer groups for short rows",
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


@dataclass(frozen=True)
class Blocks:
    """What the blocks of a kernel are; see kernels/attention/lane_groups.cu.

    Attributes
    ----------
    lanes : Lanes
        Of a head.
    heads, together : int
        All heads, and those that a group has together.
    groups : BlockSetting
        Groups of a block as `max_block_warps`, `group_nzs` as `max_warp_nzs`.
    """

    lanes: Lanes
    heads: int
    together: int
    groups: BlockSetting

    @classmethod
    def of(
        cls, settings: LaneGroupSettings, widths: Widths, problems: tuple[walks.Problem, ...]
    ) -> Blocks:
        """Work them out for the kernels of one operation."""
        heads = widths.get("heads", 1)
        lanes = walks.cover_head(widths["n_cols"], settings.head_lanes)
        together = min(heads, WARP_SIZE // lanes.lanes)
        group_lanes = together * lanes.lanes
        outputs = max(problem.outputs for problem in problems)
        fit = STATE_BYTES // (4 * outputs * lanes.vector * lanes.lane_vectors * group_lanes)
        groups = max(1, min(settings.block_threads // group_lanes, WARP_SIZE, fit))
        return cls(lanes, heads, together, BlockSetting(groups, settings.group_nzs))

    @property
    def tiles(self) -> int:
        """Turns over the heads, along the grid's y."""
        return -(-self.heads // self.together)

    @property
    def threads(self) -> int:
        """Threads of a block, whole warps."""
        threads = self.groups.max_block_warps * self.together * self.lanes.lanes
        return -(-threads // WARP_SIZE) * WARP_SIZE

    @property
    def tile(self) -> int:
        """Floats of a group's state, of each output."""
        return self.together * self.lanes.lanes * self.lanes.vector * self.lanes.lane_vectors

    def config(self, settings: LaneGroupSettings, n_cols: int) -> dict[str, int]:
        """Return the constants of the kernel."""
        groups = self.groups
        return {
            **walks.lane_config(self.lanes, n_cols),
            "heads_together": self.together,
            "whole_heads": int(self.heads % self.together == 0),
            "groups": groups.max_block_warps,
            "block_threads": self.threads,
            "deg_bound": groups.deg_bound,
            "staged": groups.max_block_warps * max(groups.max_warp_nzs, settings.short_nzs),
            "at_once": settings.at_once,
            "blocks_per_sm": settings.blocks_per_sm,
            "info_field_bits": FIELD_BITS,
        }


class LaneGroups(Strategy):
    """Groups of lanes have rows of equal degree; softmax, if any, is found on the way through them.

    It takes `head_lanes` (lanes of a head, a power of two up to 32), `at_once` (nonzeros whose
    loads a lane has in flight together, 1 to 8) and `blocks_per_sm` (blocks that an SM should have
    room for, which bounds the registers, 1 to 32), each None for the choice of a rule; `group_nzs`
    (most nonzeros of a group, 1 to 128; a longer row has several groups), `short_nzs` (most
    nonzeros of a group that takes several rows, 1 to 128) and `block_threads` (a multiple of 32 up
    to 512).
    """

    name = "lane_groups"
    summary = "our own: lane groups, one pass over nonzeros, nothing the size of edges x columns"
    worker = "lane group"
    metadata_words = WORDS
    metadata_owner = "block"
    Settings = LaneGroupSettings

    def __init__(self, operation: Operation) -> None:
        self.operation = operation

    def build(self, graph: Graph, widths: Widths, settings: LaneGroupSettings) -> Plan:
        """Sort the rows, and partition them; of a gradient those of the transposed matrix first.

        Raises
        ------
        PartitionError
            If the graph has 2^32 nonzeros or more, or a head is too wide.
        """
        n_cols, heads = widths["n_cols"], widths.get("heads", 1)

        def walk(problem: walks.Problem, over: Graph, turned: Any) -> Plan:
            provenance = Provenance(self, graph.values, widths, settings)
            return self._walk(problem, over, turned, settings, provenance)

        return walks.plan_of(self.operation, graph, heads, n_cols, walk)

    def resolve(
        self, settings: LaneGroupSettings, graph: Graph | RowDegrees, widths: Widths
    ) -> LaneGroupSettings:
        """Ask the rule, which looks at the columns of a head."""
        problems = walks.problems_of(self.operation)
        blocks = Blocks.of(settings, widths, problems)
        width = blocks.lanes.vector * blocks.lanes.lane_vectors
        at_once = settings.at_once
        if at_once is None:
            items = max(problem.items for problem in problems)
            at_once = max(1, min(FLOATS_AT_ONCE // (items * width), MOST_AT_ONCE))
        room = settings.blocks_per_sm
        if room is None:
            floats = max(
                width * (p.outputs + p.rows + p.items * at_once) + p.numbers * at_once
                for p in problems
            )
            registers = -(-(OTHER_REGISTERS + floats) // 8) * 8
            room = max(1, min(SM_THREADS, SM_REGISTERS // registers) // blocks.threads)
        resolved = settings.filled(head_lanes=blocks.lanes.lanes, at_once=at_once)
        return resolved.replaced(blocks_per_sm=min(room, 2048 // blocks.threads, 32))

    def describe(
        self, settings: LaneGroupSettings, rows: RowDegrees, widths: Widths
    ) -> Description:
        """Name the lane groups, without atomics; lanes have the columns of a head, if it is one."""
        blocks = Blocks.of(settings, widths, walks.problems_of(self.operation))
        groups, lanes = blocks.groups, blocks.lanes
        return Description(
            Subwarps(
                groups.max_block_warps,
                groups.max_warp_nzs,
                settings.short_nzs,
                blocks.tiles,
                in_place=1,
            ),
            LaneColumns(lanes.lanes, lanes.vector, widths["n_cols"]) if blocks.heads == 1 else None,
        )

    def _walk(
        self,
        problem: walks.Problem,
        over: Graph,
        turned: Any,
        settings: LaneGroupSettings,
        provenance: Provenance,
    ) -> Plan:
        """Return the plan of one walk over a graph; `turned` says which nonzeros its own are."""
        blocks = Blocks.of(settings, provenance.widths, walks.problems_of(self.operation))
        n_cols, heads = provenance.widths["n_cols"], blocks.heads
        rows, sort_seconds = SortedRows.of(over)
        partition, seconds = subwarp_partition(rows, blocks.groups, settings.short_nzs)
        order = partition.nonzero_order
        if turned is not None:  # once for the plans of all widths
            order = over.store.get("nonzeros turned", lambda: turned[rows.nonzero_order])
            order.setflags(write=False)
        sums = ("part_sums", "part_heads", "arrivals")
        kernel = KernelSpec(
            "attention/lane_groups.cu",
            f"{problem.name}<Config>",
            blocks.config(settings, n_cols),
            (*problem.arguments((*partition.arrays, "order"), sums), "heads", "n_cols"),
        )
        launch = LaunchConfig(
            (len(partition.metadata), blocks.tiles, 1), blocks.threads // WARP_SIZE
        )
        cut = max(partition.cut_blocks, 1) * blocks.tiles
        plan = Plan(
            Layout(
                over.pattern,
                partial(lane_group_workload, partition.metadata, blocks.groups),
                rows.pattern,
                rows.permutation,
                order,
                partition.metadata,
                workers_per_block=blocks.groups.max_block_warps,
            ),
            (Call(launch, kernel),),
            Buffers(
                {
                    **partition.arrays,
                    "order": numbers_32(order),
                    "heads": np.int32(heads),
                    "n_cols": np.int32(n_cols),
                },
                {
                    "part_sums": (cut * max(problem.outputs, 1) * blocks.tile, np.float32),
                    "part_heads": (2 * cut * blocks.together, np.float32),
                    "arrivals": (cut, np.uint32),
                },
            ),
            replace(provenance, setup_seconds={**sort_seconds, **seconds}),
        )
        return walks.with_totals(plan, problem, len(partition.metadata), heads, n_cols)
