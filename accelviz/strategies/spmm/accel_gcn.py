"""Accel-GCN (ICCAD 2023), section III: degree sorting, block-level partition, combined warp.

Rows are sorted by degree, so that the rows of a block have the same degree and one record of
metadata describes the block. Neighboring warps combine: together they read one row of X.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np

from accelviz.graph import Graph
from accelviz.immutable import taken_over
from accelviz.ordering import RowDegrees
from accelviz.ordering.degree import SortedRows
from accelviz.partition.block_level import (
    FIELD_BITS,
    INT4_BYTES,
    MAX_BLOCK_WARPS,
    MAX_WARP_NZS,
    SETTING_LIMITS,
    BlockLevel,
    BlockSetting,
    block_partition,
    block_workload,
)
from accelviz.partition.block_records import block_level_records
from accelviz.partition.metadata import MetadataRecord
from accelviz.partition.warp_level import (
    Runs,
    cuts_rows,
    warp_level_records,
    warp_partition,
    warp_workload,
)
from accelviz.plans import Buffers, Layout, Plan, Provenance, Strategy, Widths
from accelviz.plans.description import Description, LaneColumns
from accelviz.plans.launch import STATIC_SHARED_BYTES, WARP_SIZE, Call, KernelSpec, LaunchConfig
from accelviz.plans.operation import FLOAT_BYTES
from accelviz.plans.settings import Settings, setting
from accelviz.store import Stopwatch
from accelviz.strategies.blocks import column_tiles
from accelviz.strategies.spmm.operation import SPMM

#: Most columns of a combined warp. Wider features are divided into tiles along the grid's y.
MAX_TILE_COLUMNS = 1024
_WARPS, _NZS = SETTING_LIMITS["max_block_warps"], SETTING_LIMITS["max_warp_nzs"]


class AccelGcnSettings(Settings):
    """The two parameters of the paper, and its two ablations."""

    max_block_warps: int = setting(
        MAX_BLOCK_WARPS,
        "most warps per block; more: fewer, larger blocks, and fewer split rows",
        _WARPS[0],
        tries=(1, 2, 4, 6, 8, 12, 16, 24, 32),
        why=_WARPS[1],
    )
    max_warp_nzs: int = setting(
        MAX_WARP_NZS,
        "most nonzeros of a warp; a warp of the partition is meant; more: fewer share a row, and "
        "each takes longer",
        _NZS[0],
        tries=(8, 16, 32, 64, 128),
        why=_NZS[1],
    )
    partition: str = setting(
        "block",
        "whose work a record of metadata describes: a block's, which has rows of one degree, or a "
        "warp's, with the rows in the graph's order",
        choices=("block", "warp"),
    )
    combined_warp: bool = setting(
        True,
        "whether several warps read a row of X together, 32 columns each",
        choices=(True, False),
    )

    @property
    def blocks(self) -> BlockSetting:
        """The parameters of the partition."""
        return BlockSetting(self.max_block_warps, self.max_warp_nzs)


class AccelGCN(Strategy):
    """Blocks of rows of equal degree, one int4 of metadata per block, combined warps.

    A block has at most deg_bound = `max_block_warps` x `max_warp_nzs` nonzeros. Two settings
    disable one idea each, for the paper's ablations (section IV-B and Table II). With
    `partition="warp"` each warp has metadata and the rows are in the caller's order (Figures 3b and
    7). With `combined_warp=False` each warp processes all columns of its nonzeros (Figures 4a, 8).
    """

    operation = SPMM
    name = "accel_gcn"
    summary = "degree sorting, block-level partition, combined warp"
    Settings = AccelGcnSettings
    metadata_owner = "block"

    def build(self, graph: Graph, widths: Widths, settings: AccelGcnSettings) -> Plan:
        """Sort by degree and partition into blocks, or partition into warps.

        Raises
        ------
        PartitionError
            If the graph has 2^31 nonzeros or more.
        """
        setting, warps, clock = settings.blocks, settings.max_block_warps, Stopwatch()
        tiles, tile_columns = column_tiles(widths["n_cols"], widest_tile(warps))
        config = {
            "max_block_warps": warps,
            "tile_columns": tile_columns,
            "shared_rows": shared_rows(warps),
            "combined_warp": int(settings.combined_warp),
        }
        if settings.partition == "block":
            name, per_block = "accel_gcn", 1
            rows, seconds = SortedRows.of(graph)
            with clock.step("block partition"):
                metadata = taken_over(block_partition(rows.histogram, setting))
            layout = Layout(
                graph.pattern,
                partial(block_workload, metadata, setting),
                *(rows.pattern, rows.permutation, rows.nonzero_order, metadata),
            )
            config |= {"deg_bound": setting.deg_bound, "info_field_bits": FIELD_BITS}
            arrays = {"output_rows": rows.permutation.order, "columns": rows.pattern.column_indices}
            sizes = {"n_cols": np.int32(widths["n_cols"])}
            # Rows without nonzeros have no block; parts of a split row are added to Y by atomics.
            degrees = rows.histogram.degrees
            zero_Y = bool(degrees.size and (degrees[0] == 0 or degrees[-1] > setting.deg_bound))
        else:  # a block has consecutive warps of rows in the caller's order
            name, per_block, seconds = "accel_gcn_warp", warps, {}
            with clock.step("warp partition"):
                metadata = taken_over(warp_partition(graph.row_pointers, setting.max_warp_nzs))
            workload = partial(warp_workload, metadata, warps)
            layout = Layout(graph.pattern, workload, metadata=metadata)
            arrays = {"columns": graph.column_indices}
            sizes = {"n_warps": np.int32(len(metadata)), "n_cols": np.int32(widths["n_cols"])}
            zero_Y = bool((graph.degrees == 0).any()) or cuts_rows(metadata, warps)
        arguments = ("metadata", *arrays, "values", "X", "Y", *sizes)
        launch = LaunchConfig((-(-len(metadata) // per_block), tiles, 1), warps)
        return Plan(
            layout,
            (Call(launch, KernelSpec(f"spmm/{name}.cu", name, config, arguments)),),
            Buffers({"metadata": metadata, **arrays, **sizes}, zero_outputs=("Y",) * zero_Y),
            Provenance(self, graph.values, widths, settings, {**seconds, **clock.seconds}),
        )

    def choices(self, graph: Graph, n_cols: int) -> dict[str, tuple[Any, ...]]:
        """Return the settings of the recorded sweeps."""
        return {name: self.parameters[name].tries for name in ("max_warp_nzs", "max_block_warps")}

    def describe(self, settings: AccelGcnSettings, rows: RowDegrees, widths: Widths) -> Description:
        """Describe the partition; a combined warp has a lane per column of the tile."""
        warps, warp_nzs = settings.max_block_warps, settings.max_warp_nzs
        _, tile = column_tiles(widths["n_cols"], widest_tile(warps))
        in_blocks = settings.partition == "block"
        return Description(
            BlockLevel(warps, warp_nzs) if in_blocks else Runs(warps, warp_nzs, INT4_BYTES),
            LaneColumns(tile if settings.combined_warp else WARP_SIZE, 1, tile),
            text=", ".join(
                (
                    "degree sorting, block-level partition"
                    if in_blocks
                    else "the caller's row order, warp-level partition",
                    "combined warp" if settings.combined_warp else "warps that loop over columns",
                )
            ),
        )

    def metadata_records(self, plan: Plan, lines: int | Iterable[int]) -> list[MetadataRecord]:
        """Decode int4 records of blocks, or of warps (Figure 3b); see `Strategy`."""
        metadata, settings = plan.metadata, plan.provenance.settings
        assert metadata is not None
        assert isinstance(settings, AccelGcnSettings)
        if settings.partition == "block":
            return block_level_records(metadata, settings.blocks, lines)
        return warp_level_records(metadata, lines)


def shared_rows(max_block_warps: int) -> int:
    """Return the most rows of a block that are reduced in shared memory, by two or more warps."""
    return max(1, max_block_warps // 2)


def widest_tile(max_block_warps: int) -> int:
    """Return the most columns for which sums of `shared_rows` rows fit in static shared memory."""
    floats = STATIC_SHARED_BYTES // FLOAT_BYTES // shared_rows(max_block_warps)
    return min(MAX_TILE_COLUMNS, floats // WARP_SIZE * WARP_SIZE)
