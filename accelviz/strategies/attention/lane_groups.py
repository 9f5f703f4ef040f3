"""Our own attention, its gradients and those of an SpMM: one pass over nonzeros by lane groups."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.ordering.degree import SortedRows
from accelviz.partition.block4 import FIELD_BITS
from accelviz.partition.block_level import BlockSetting
from accelviz.partition.cut import Cut
from accelviz.partition.lane_groups import (
    WORDS,
    in_place_order,
    lane_group_partition,
    lane_group_workload,
)
from accelviz.partition.nonzero_runs import numbers_32
from accelviz.plans import (
    Call,
    KernelSpec,
    LaunchConfig,
    Operation,
    Parameter,
    Plan,
    Reading,
    Strategy,
)
from accelviz.plans.launch import WARP_SIZE
from accelviz.store import Stopwatch
from accelviz.strategies.attention import walks
from accelviz.strategies.blocks import POWERS

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


@dataclass(frozen=True)
class Setting:
    """All that a kernel is compiled with; see kernels/attention/lane_groups.cu."""

    lanes: walks.Lanes
    together: int
    tiles: int
    groups: BlockSetting
    short_nzs: int
    at_once: int
    blocks_per_sm: int

    @property
    def threads(self) -> int:
        """Threads of a block, whole warps."""
        threads = self.groups.max_block_warps * self.together * self.lanes.head_lanes
        return -(-threads // WARP_SIZE) * WARP_SIZE

    @property
    def tile(self) -> int:
        """Floats of a group's state, of each output."""
        return self.together * self.lanes.head_lanes * self.lanes.vector * self.lanes.lane_vectors

    @property
    def chosen(self) -> dict[str, int]:
        """The parameters that a rule may have chosen."""
        names = ("at_once", "blocks_per_sm")
        return {"head_lanes": self.lanes.head_lanes, **{n: getattr(self, n) for n in names}}

    def config(self, heads: int, n_cols: int) -> dict[str, int]:
        """Return the constants of the kernel."""
        return {
            **self.lanes.config(n_cols),
            "heads_together": self.together,
            "whole_heads": int(heads % self.together == 0),
            "groups": self.groups.max_block_warps,
            "block_threads": self.threads,
            "deg_bound": self.groups.deg_bound,
            "staged": self.groups.max_block_warps * max(self.groups.max_warp_nzs, self.short_nzs),
            "at_once": self.at_once,
            "blocks_per_sm": self.blocks_per_sm,
            "info_field_bits": FIELD_BITS,
        }


def chosen(
    problems: tuple[walks.Problem, ...],
    n_cols: int,
    heads: int,
    *,
    head_lanes: int | None,
    at_once: int | None,
    group_nzs: int,
    short_nzs: int,
    block_threads: int,
    blocks_per_sm: int | None,
) -> Setting:
    """Choose what is None by a rule."""
    lanes = walks.cover(n_cols, head_lanes)
    width = lanes.vector * lanes.lane_vectors
    together = min(heads, WARP_SIZE // lanes.head_lanes)
    group_lanes = together * lanes.head_lanes
    outputs = max(each.outputs for each in problems)
    fit = STATE_BYTES // (4 * outputs * width * group_lanes)
    groups = max(1, min(block_threads // group_lanes, WARP_SIZE, fit))
    if at_once is None:
        items = max(each.items for each in problems)
        at_once = max(1, min(FLOATS_AT_ONCE // (items * width), MOST_AT_ONCE))
    made = Setting(
        *(lanes, together, -(-heads // together), BlockSetting(groups, group_nzs)),
        *(short_nzs, at_once, 1),
    )
    room = blocks_per_sm
    if room is None:
        kept = max(
            width * (p.outputs + p.rows + p.items * at_once) + p.numbers * at_once for p in problems
        )
        registers = -(-(OTHER_REGISTERS + kept) // 8) * 8
        room = max(1, min(SM_THREADS, SM_REGISTERS // registers) // made.threads)
    return replace(made, blocks_per_sm=min(room, 2048 // made.threads, 32))


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
    parameters: ClassVar = {
        "head_lanes": Parameter(
            None,
            "lanes that share the columns of a head; more: fewer turns, fewer rows in a warp",
            choices=POWERS,
            tries=(4, 8, 16),
        ),
        "at_once": Parameter(
            None,
            "nonzeros whose loads are in flight together; more: less waiting, more registers",
            8,
            tries=(1, 2, 4),
        ),
        "group_nzs": Parameter(
            GROUP_NZS,
            "most nonzeros of a group; more: long rows in fewer pieces, and each lasts longer",
            128,
            tries=(16, 32, 64),
        ),
        "short_nzs": Parameter(
            SHORT_NZS,
            "most nonzeros of a group that takes several rows; more: fewer groups for short rows",
            128,
            tries=(4, 8, 16),
        ),
        "block_threads": Parameter(
            128,
            "most threads of a block; more: fewer, larger blocks",
            512,
            step=WARP_SIZE,
            tries=(128, 256),
        ),
        "blocks_per_sm": Parameter(
            None,
            "blocks that an SM has room for; more: fewer registers for each thread",
            32,
            tries=(4, 8, 12),
        ),
    }

    def __init__(self, operation: Operation) -> None:
        self.operation = operation

    def build(self, graph: Graph, n_cols: int, *, heads: int = 1, **parameters: Any) -> Plan:
        """Sort the rows, and partition them; of a gradient those of the transposed matrix first.

        Raises
        ------
        PartitionError
            If the graph has 2^32 nonzeros or more, or a head is too wide.
        """
        problems = walks.problems_of(self.operation)

        def walk(problem: walks.Problem, over: Graph, turned: Any) -> Plan:
            # Not before: the rule takes it for granted that heads are narrow enough.
            setting = chosen(problems, n_cols, heads, **parameters)
            return _walk(setting, heads, n_cols, problem, over, turned)

        return walks.plan_of(self.operation, graph, heads, n_cols, walk)

    def settle(
        self, graph: Graph, n_cols: int, *, heads: int = 1, **parameters: Any
    ) -> dict[str, int]:
        """Ask the rule, which looks at the columns of a head."""
        return chosen(walks.problems_of(self.operation), n_cols, heads, **parameters).chosen

    def reading(
        self, graph: Graph, n_cols: int, *, heads: int = 1, head_lanes: int | None, **others: Any
    ) -> Reading | None:
        """Spread the lanes over the columns of one head, a vector a lane."""
        lanes = walks.cover(n_cols, head_lanes)
        return Reading(lanes.head_lanes, lanes.vector, n_cols) if heads == 1 else None

    def cut(self, rows: RowDegrees, n_cols: int, *, heads: int = 1, **parameters: Any) -> Cut:
        """Name the lane groups: nothing is added by atomics."""
        setting = chosen(walks.problems_of(self.operation), n_cols, heads, **parameters)
        return Cut(
            "lane_groups",
            {
                "warps": setting.groups.max_block_warps,
                "most": setting.groups.max_warp_nzs,
                "short": setting.short_nzs,
                "tiles": setting.tiles,
                "in_place": 1,
            },
        )


def _walk(
    setting: Setting, heads: int, n_cols: int, problem: walks.Problem, graph: Graph, turned: Any
) -> Plan:
    """Return the plan of one walk over a graph; `turned` says which nonzeros its own are."""
    rows, seconds = SortedRows.of(graph)
    clock = Stopwatch()
    with clock.step("block partition"):
        metadata, cut_blocks = lane_group_partition(
            rows.histogram, setting.groups, setting.short_nzs
        )
        metadata = in_place_order(metadata, cut_blocks, rows.permutation.order)
        metadata.setflags(write=False)
        order = rows.nonzero_order
        if turned is not None:  # once for the plans of all widths
            order = graph.store.get("nonzeros turned", lambda: turned[rows.nonzero_order])
            order.setflags(write=False)
    scratch = ("part_sums", "part_heads", "arrivals")
    walked = ("metadata", "output_rows", "columns", "order")
    kernel = KernelSpec(
        "attention/lane_groups.cu",
        f"{problem.name}<Config>",
        setting.config(heads, n_cols),
        (*problem.arguments(walked, scratch), "heads", "n_cols"),
    )
    launch = LaunchConfig((len(metadata), setting.tiles, 1), setting.threads // WARP_SIZE)
    cut = max(cut_blocks, 1) * setting.tiles
    parts = {
        "part_sums": (cut * max(problem.outputs, 1) * setting.tile, np.float32),
        "part_heads": (2 * cut * setting.together, np.float32),
        "arrivals": (cut, np.uint32),
    }
    plan = Plan(
        graph.pattern,
        (Call(launch, kernel),),
        partial(lane_group_workload, metadata, setting.groups),
        walked=rows.pattern,
        permutation=rows.permutation,
        nonzero_order=order,
        metadata=metadata,
        arrays={
            "metadata": metadata,
            "output_rows": rows.permutation.order,
            "columns": rows.pattern.column_indices,
            "order": numbers_32(order),
            "heads": np.int32(heads),
            "n_cols": np.int32(n_cols),
        },
        scratch=parts,
        workers_per_block=setting.groups.max_block_warps,
        setup_seconds={**seconds, **clock.seconds},
        parameters=setting.chosen,
    )
    return walks.with_totals(plan, problem, len(metadata), heads, n_cols)
