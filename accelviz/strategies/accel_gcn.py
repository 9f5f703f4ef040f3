"""Accel-GCN (ICCAD 2023): degree sorting, block-level partition, combined warp."""

from __future__ import annotations

from functools import partial

import numpy as np

from accelviz.graph import Graph
from accelviz.ordering import sort_by_degree
from accelviz.partition.block_level import (
    FIELD_BITS,
    MAX_BLOCK_WARPS,
    MAX_WARP_NZS,
    BlockSetting,
    block_partition,
    block_workload,
)
from accelviz.strategies.base import (
    STATIC_SHARED_BYTES,
    WARP_SIZE,
    KernelSpec,
    LaunchConfig,
    Plan,
    Stopwatch,
    Strategy,
    column_tiles,
)

#: Widest combined warp, in columns. Wider features are cut into tiles along the grid's y.
MAX_TILE_COLUMNS = 1024
FLOAT_BYTES = 4


class AccelGCN(Strategy):
    """Rows of equal degree share a block, one int4 describes it, warps combine to span a row of X.

    Section III of the paper. `build` takes `max_block_warps` (warps in a block, 1 to 32) and
    `max_warp_nzs` (most nonzeros of a warp, 1 to 65,535); their product is deg_bound, the most
    nonzeros one block handles.
    """

    name = "accel_gcn"
    summary = "degree sorting, block-level partition, combined warp"

    def build(
        self,
        graph: Graph,
        n_cols: int,
        *,
        max_block_warps: int = MAX_BLOCK_WARPS,
        max_warp_nzs: int = MAX_WARP_NZS,
    ) -> Plan:
        """Sort by degree, partition into blocks, permute the rows.

        Raises
        ------
        PartitionError
            If a parameter is out of range or the graph has 2^31 nonzeros or more.
        """
        setting = BlockSetting(max_block_warps, max_warp_nzs)
        clock = Stopwatch()
        with clock.step("degree sort"):
            permutation, histogram = sort_by_degree(graph.row_pointers)
        with clock.step("block partition"):
            metadata = block_partition(histogram, setting)
        with clock.step("permute rows"):
            matrix = permutation.apply_to_graph(graph)
        tiles, tile_columns = column_tiles(n_cols, widest_tile(setting.max_block_warps))
        return Plan(
            strategy=self.name,
            graph=graph,
            n_cols=n_cols,
            parameters={
                "max_block_warps": setting.max_block_warps,
                "max_warp_nzs": setting.max_warp_nzs,
            },
            matrix=matrix,
            launch=LaunchConfig((len(metadata), tiles, 1), setting.max_block_warps),
            slice_workload=partial(block_workload, metadata, setting),
            permutation=permutation,
            metadata=metadata,
            kernel=KernelSpec(
                file="accel_gcn.cu",
                entry="accel_gcn",
                defines={
                    "MAX_BLOCK_WARPS": setting.max_block_warps,
                    "DEG_BOUND": setting.deg_bound,
                    "INFO_FIELD_BITS": FIELD_BITS,
                    "TILE_COLUMNS": tile_columns,
                    "SHARED_ROWS": shared_rows(setting.max_block_warps),
                },
                arguments=("metadata", "output_rows", "columns", "values", "X", "Y", "n_cols"),
            ),
            arrays={
                "metadata": metadata,
                "output_rows": permutation.order,
                "columns": matrix.column_indices,
                "values": matrix.values,
                "n_cols": np.int32(n_cols),
            },
            # Rows without a nonzero have no block, and parts of a split row add up in the output.
            zero_output=bool(
                histogram.degrees.size
                and (histogram.degrees[0] == 0 or histogram.largest > setting.deg_bound)
            ),
            setup_seconds=clock.seconds,
        )


def shared_rows(max_block_warps: int) -> int:
    """Most rows of a block that add up in shared memory: each of them has two warps or more."""
    return max(1, max_block_warps // 2)


def widest_tile(max_block_warps: int) -> int:
    """Most columns whose partial sums of `shared_rows` rows fit the static shared memory."""
    floats = STATIC_SHARED_BYTES // FLOAT_BYTES // shared_rows(max_block_warps)
    return min(MAX_TILE_COLUMNS, floats // WARP_SIZE * WARP_SIZE)
