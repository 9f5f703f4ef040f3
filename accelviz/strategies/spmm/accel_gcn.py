"""Accel-GCN (ICCAD 2023): degree sorting, block-level partition, combined warp."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, ClassVar

import numpy as np

from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.ordering.degree import SortedRows
from accelviz.partition.block_level import (
    FIELD_BITS,
    INT4_BYTES,
    MAX_BLOCK_WARPS,
    MAX_WARP_NZS,
    SETTING_LIMITS,
    BlockSetting,
    block_level_lines,
    block_partition,
    block_workload,
)
from accelviz.partition.cut import Cut
from accelviz.partition.metadata import MetadataLine
from accelviz.partition.warp_level import (
    cuts_rows,
    warp_level_lines,
    warp_partition,
    warp_workload,
)
from accelviz.plans import Call, KernelSpec, LaunchConfig, Parameter, Plan, Reading, Strategy
from accelviz.plans.launch import STATIC_SHARED_BYTES, WARP_SIZE
from accelviz.plans.operation import FLOAT_BYTES
from accelviz.plans.strategy import column_tiles
from accelviz.store import Stopwatch
from accelviz.strategies.spmm.operation import SPMM

#: Widest combined warp, in columns. Wider features are cut into tiles along the grid's y.
MAX_TILE_COLUMNS = 1024
_WARPS, _NZS = SETTING_LIMITS["max_block_warps"], SETTING_LIMITS["max_warp_nzs"]


class AccelGCN(Strategy):
    """Rows of equal degree share a block, one int4 describes it, warps combine to span a row of X.

    Section III of the paper. It takes `max_block_warps` (warps of a block, 1 to 32) and
    `max_warp_nzs` (most nonzeros of a warp, 1 to 65,535); their product is deg_bound, the most
    nonzeros one block handles. Two more take an idea away each, for the paper's ablations (section
    IV-B and Table II): `partition="warp"` gives each warp metadata of its own and leaves the rows
    in the caller's order (Figures 3b and 7), `combined_warp=False` lets each warp walk the columns
    on its own (Figures 4a and 8).
    """

    operation = SPMM
    name = "accel_gcn"
    summary = "degree sorting, block-level partition, combined warp"
    parameters: ClassVar = {
        "max_block_warps": Parameter(
            MAX_BLOCK_WARPS,
            "warps of a block at most; more: fewer, larger blocks, and a long row stays in one",
            _WARPS[0],
            tries=(1, 2, 4, 6, 8, 12, 16, 24, 32),
            why=_WARPS[1],
        ),
        "max_warp_nzs": Parameter(
            MAX_WARP_NZS,
            "most nonzeros of a warp; more: fewer warps share a row, and each lasts longer",
            _NZS[0],
            tries=(8, 16, 32, 64, 128),
            why=_NZS[1],
        ),
        "partition": Parameter(
            "block",
            "what a line of metadata describes: a whole block, or each warp",
            choices=("block", "warp"),
        ),
        "combined_warp": Parameter(
            True,
            "several warps side by side read a row of X, 32 columns each",
            choices=(True, False),
        ),
    }
    metadata_owner = "block"

    def build(
        self,
        graph: Graph,
        n_cols: int,
        *,
        max_block_warps: int,
        max_warp_nzs: int,
        partition: str,
        combined_warp: bool,
    ) -> Plan:
        """Sort by degree, partition into blocks, permute the rows; or only partition into warps.

        Raises
        ------
        PartitionError
            If the graph has 2^31 nonzeros or more.
        """
        setting = BlockSetting(max_block_warps, max_warp_nzs)
        tiles, tile_columns = column_tiles(n_cols, widest_tile(max_block_warps))
        config = {
            "max_block_warps": max_block_warps,
            "tile_columns": tile_columns,
            "shared_rows": shared_rows(max_block_warps),
            "combined_warp": int(combined_warp),
        }
        made = block_level if partition == "block" else warp_level
        return made(graph, setting, tiles, config, {"n_cols": np.int32(n_cols)})

    def choices(self, graph: Graph, n_cols: int) -> dict[str, tuple[Any, ...]]:
        """Return the settings that the recorded sweeps cover."""
        return {name: self.parameters[name].tries for name in ("max_warp_nzs", "max_block_warps")}

    def cut(
        self,
        rows: RowDegrees,
        n_cols: int,
        *,
        max_block_warps: int,
        max_warp_nzs: int,
        partition: str,
        **others: Any,
    ) -> Cut:
        """Name the partition; the combined warp changes nothing of it."""
        setting = {"warps": max_block_warps, "most": max_warp_nzs}
        if partition == "block":
            return Cut("block_level", setting)
        return Cut("runs", {**setting, "line_bytes": INT4_BYTES})

    def reading(
        self, graph: Graph, n_cols: int, *, max_block_warps: int, combined_warp: bool, **others: Any
    ) -> Reading:
        """Cover the tile with a combined warp at once, or by turns of 32 columns without it."""
        _, columns = column_tiles(n_cols, widest_tile(max_block_warps))
        return Reading(columns if combined_warp else WARP_SIZE, 1, columns)

    def metadata_lines(self, plan: Plan, lines: int | Iterable[int]) -> list[MetadataLine]:
        """Take int4 words apart: a block's, or a warp's (Figure 3b); see `Strategy`."""
        metadata, given = plan.metadata, plan.parameters
        assert metadata is not None
        if given["partition"] == "block":
            setting = BlockSetting(given["max_block_warps"], given["max_warp_nzs"])
            return block_level_lines(metadata, setting, lines)
        return warp_level_lines(metadata, lines)


def block_level(
    graph: Graph,
    setting: BlockSetting,
    tiles: int,
    config: dict[str, int],
    scalars: dict[str, np.generic],
) -> Plan:
    """Sort by degree and describe each block (section III-C)."""
    rows, sort_seconds = SortedRows.of(graph)
    clock = Stopwatch()
    with clock.step("block partition"):
        metadata = block_partition(rows.histogram, setting)
        metadata.setflags(write=False)
    kernel = KernelSpec(
        file="spmm/accel_gcn.cu",
        entry="accel_gcn",
        config={**config, "deg_bound": setting.deg_bound, "info_field_bits": FIELD_BITS},
        arguments=("metadata", "output_rows", "columns", "values", "X", "Y", "n_cols"),
    )
    # Rows without a nonzero have no block, and parts of a split row add up in the output.
    degrees = rows.histogram.degrees
    clear = degrees.size and (degrees[0] == 0 or degrees[-1] > setting.deg_bound)
    launch = LaunchConfig((len(metadata), tiles, 1), setting.max_block_warps)
    return Plan(
        graph.pattern,
        (Call(launch, kernel),),
        partial(block_workload, metadata, setting),
        walked=rows.pattern,
        permutation=rows.permutation,
        nonzero_order=rows.nonzero_order,
        metadata=metadata,
        arrays={
            "metadata": metadata,
            "output_rows": rows.permutation.order,
            "columns": rows.pattern.column_indices,
            **scalars,
        },
        clears=("Y",) if clear else (),
        setup_seconds={**sort_seconds, **clock.seconds},
    )


def warp_level(
    graph: Graph,
    setting: BlockSetting,
    tiles: int,
    config: dict[str, int],
    scalars: dict[str, np.generic],
) -> Plan:
    """Describe each warp, the rows in the caller's order; a block is consecutive warps."""
    clock = Stopwatch()
    with clock.step("warp partition"):
        metadata = warp_partition(graph.row_pointers, setting.max_warp_nzs)
        metadata.setflags(write=False)
    kernel = KernelSpec(
        file="spmm/accel_gcn_warp.cu",
        entry="accel_gcn_warp",
        config=config,
        arguments=("metadata", "columns", "values", "X", "Y", "n_warps", "n_cols"),
    )
    warps = setting.max_block_warps
    clear = (graph.degrees == 0).any() or cuts_rows(metadata, warps)
    return Plan(
        graph.pattern,
        (Call(LaunchConfig((-(-len(metadata) // warps), tiles, 1), warps), kernel),),
        partial(warp_workload, metadata, warps),
        metadata=metadata,
        arrays={
            "metadata": metadata,
            "columns": graph.column_indices,
            "n_warps": np.int32(len(metadata)),
            **scalars,
        },
        clears=("Y",) if clear else (),
        setup_seconds=clock.seconds,
    )


def shared_rows(max_block_warps: int) -> int:
    """Most rows of a block that add up in shared memory: each of them has two warps or more."""
    return max(1, max_block_warps // 2)


def widest_tile(max_block_warps: int) -> int:
    """Most columns whose partial sums of `shared_rows` rows fit the static shared memory."""
    floats = STATIC_SHARED_BYTES // FLOAT_BYTES // shared_rows(max_block_warps)
    return min(MAX_TILE_COLUMNS, floats // WARP_SIZE * WARP_SIZE)
