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
from accelviz.plans.gpu import SM_REGISTERS
from accelviz.plans.launch import WARP_SIZE, Call, KernelSpec, LaunchConfig
from accelviz.plans.operation import FLOAT_BYTES
from accelviz.plans.plan import Buffers, Plan, Provenance
from accelviz.strategies.attention.walks import (
    Functor,
    WalkStrategy,
    check,
    cover_head,
    lane_config,
    row_call,
)
from accelviz.strategies.blocks import POWERS
from accelviz.strategies.lanes import cover
from accelviz.strategies.subwarps import (
    TILE_BYTES,
    TILED_BYTES,
    Blocks,
    long_group_nzs,
    setting_like,
    subwarp_layout,
)

#: Default of `group_nzs`. Large matrices with long rows have that of SpMM, but for subwarps of
#: fewer lanes, whose blocks would have too many nonzeros.
GROUP_NZS, LONG_GROUP_LANES = 32, 4
#: Most bytes of shared memory for the sums of a block's subwarps.
STATE_BYTES = 16 << 10

#: The walk of rows with equal extrema; see kernels/attention/extrema.cuh.
_TIED = Functor(
    *("tied_extrema", ("X", "Y", "dY", "source", "tied", "dX"), 0, 1, 3, 0),
    dropout=False,
)


class LaneGroupSettings(Settings):
    """Settings as of SpMM's `lane_groups`, per head; a rule chooses those that are None."""

    head_lanes: int = setting(
        None,
        "lanes that share the columns of a head; more: fewer loads per lane, fewer rows per warp",
        choices=POWERS,
        tries=(4, 8, 16),
    )
    heads_together: int = setting(
        None,
        "heads that a subwarp gathers together; more: fewer passes over the nonzeros, wider rows",
        choices=POWERS,
        tries=(1, 2, 4, 8),
    )
    at_once: int = setting_like("at_once", most=8, tries=(1, 2, 4))
    group_nzs: int = setting_like("group_nzs", tries=(16, 32, 64))
    short_nzs: int = setting_like("short_nzs", default=8, tries=(4, 8, 16))
    block_threads: int = setting_like(
        "block_threads", most=None, choices=(32, 64, 128, 256, 512), tries=(128, 256)
    )
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
        together = settings.heads_together or self.heads_together(widths)
        heads = min(n_heads, WARP_SIZE // lanes.lanes, together)
        group_nzs = settings.group_nzs or GROUP_NZS
        one_subwarp = Blocks(lanes, BlockSetting(1, group_nzs), settings.short_nzs, heads)
        outputs = max(1, *(functor.outputs for functor in self.functors))
        most_subwarps = STATE_BYTES // (4 * outputs * one_subwarp.subwarp_floats)
        subwarps = min(settings.block_threads // (heads * lanes.lanes), WARP_SIZE, most_subwarps)
        return replace(one_subwarp, subwarps=BlockSetting(max(1, subwarps), group_nzs))

    def heads_together(self, widths: Widths) -> int:
        """Choose how many heads a subwarp gathers together, as SpMM's rule chooses a tile.

        Together they read the nonzeros once. Rows of more than TILE_BYTES fit the caches less
        often than their tiles do: on an H100, `gat` with 8 heads of 64 columns takes 26.2 ms on
        PPA's twin with four heads together, 13.3 with one.
        """
        heads, n_cols = self.heads(widths)
        head_bytes = FLOAT_BYTES * n_cols
        return heads if heads * head_bytes < TILED_BYTES else max(1, TILE_BYTES // head_bytes)

    def group_nzs(self, settings: LaneGroupSettings, widths: Widths, nnz: int, n_rows: int) -> int:
        """Choose `group_nzs` for a matrix with `nnz` nonzeros."""
        blocks = self.blocks(settings, widths)
        if blocks.lanes.lanes * blocks.heads_together < LONG_GROUP_LANES:
            return GROUP_NZS
        return long_group_nzs(nnz, n_rows) or GROUP_NZS

    def lane_config(self, settings: LaneGroupSettings, widths: Widths) -> dict[str, int]:
        """Return the lanes and vectors of a head."""
        _, n_cols = self.heads(widths)
        lanes = cover_head(n_cols, settings.head_lanes)
        return lane_config(lanes, n_cols, self.head_tiles(widths))

    def resolve(
        self, settings: LaneGroupSettings, graph: Graph | RowDegrees, widths: Widths
    ) -> LaneGroupSettings:
        """Choose the settings that are None by the columns of a head and a lane's registers."""
        functors = self.functors
        group_nzs = self.group_nzs(settings, widths, graph.nnz, graph.shape[0])
        blocks = self.blocks(settings.filled(group_nzs=group_nzs), widths)
        lane_columns = blocks.lanes.vector * blocks.lanes.lane_vectors
        item_floats = lane_columns * max(functor.items for functor in functors)
        floats_at_once = min(functor.floats_at_once for functor in functors)
        most_at_once = min(functor.most_at_once for functor in functors)
        at_once = settings.at_once or max(1, min(floats_at_once // item_floats, most_at_once))
        registers = max(
            functor.registers
            + lane_columns * (functor.outputs + functor.rows + functor.items * at_once)
            + functor.numbers * at_once
            for functor in functors
        )
        most_threads = min(functor.threads for functor in functors)
        threads = min(most_threads, SM_REGISTERS // (-(-registers // 8) * 8))
        sm_blocks = max(1, threads // blocks.threads)
        sm_blocks = min(settings.blocks_per_sm or sm_blocks, 2048 // blocks.threads, 32)
        resolved = settings.filled(
            head_lanes=blocks.lanes.lanes,
            heads_together=blocks.heads_together,
            at_once=at_once,
            group_nzs=group_nzs,
        )
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
            {"arrivals": (n_parts, np.uint32)},
            {
                "part_sums": (n_parts * functor.outputs * blocks.subwarp_floats, np.float32),
                "part_heads": (2 * n_parts * blocks.heads_together, np.float32),
            },
        )
        provenance = replace(provenance, setup_seconds=seconds)
        return Plan(layout, (Call(launch, kernel),), buffers, provenance), n_blocks


class BySource(LaneGroups):
    """Each row adds to the rows of X that have its extrema, by atomics.

    The first kernel adds for extrema that one nonzero has, an addition for each element of Y. The
    second processes the rows with equal extrema again. Results differ between runs in the last
    bits.
    """

    name = "by_source"
    summary = "each row adds to the rows of X that have its extrema, by atomics"

    @property
    def by_sender(self) -> bool:
        """False: it walks the matrix, unlike the operation's other strategies."""
        return False

    @property
    def functors(self) -> tuple[Functor, ...]:
        """The functor of the second kernel."""
        return (_TIED,)

    def build(self, graph: Graph, widths: Widths, settings: LaneGroupSettings) -> Plan:
        """Plan both kernels.

        Raises
        ------
        PartitionError
            If there are 2^32 nonzeros or more.
        """
        heads, n_cols = self.heads(widths)
        check(graph, n_cols)
        provenance = Provenance(self, graph.values, widths, settings)
        plan, _ = self.walk(_TIED, graph, None, provenance)
        # One column a lane: an instruction's atomics on neighboring columns share sectors.
        lanes = cover(
            n_cols, min(WARP_SIZE, 1 << (n_cols - 1).bit_length()), widest=1, one_tile=True
        )
        first = row_call(
            "unique_extrema",
            ("dY", "source", "tied", "dX"),
            graph.pattern,
            heads,
            lane_config(lanes, n_cols, self.head_tiles(widths)),
        )
        buffers = plan.buffers
        workspace = {**buffers.workspace, "tied": (graph.n_rows * heads, np.uint8)}
        arrays = {**buffers.arrays, "n_targets": np.int32(graph.n_rows)}
        buffers = replace(buffers, arrays=arrays, workspace=workspace, zero_outputs=("dX",))
        layout = replace(plan.layout, main=1)
        return replace(plan, layout=layout, calls=(first, *plan.calls), buffers=buffers)
