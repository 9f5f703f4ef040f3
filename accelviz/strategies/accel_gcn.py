"""Accel-GCN (ICCAD 2023): degree sorting, block-level partition, combined warp."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.errors import PartitionError
from accelviz.graph import Graph
from accelviz.ordering import Permutation, RowDegrees, sort_by_degree
from accelviz.partition import closed_forms
from accelviz.partition.block_level import (
    FIELD_BITS,
    MAX_BLOCK_WARPS,
    MAX_WARP_NZS,
    BlockSetting,
    block_partition,
    block_workload,
)
from accelviz.partition.summary import PartitionSummary
from accelviz.partition.warp_level import cuts_rows, warp_partition, warp_workload
from accelviz.strategies.base import Stopwatch, Strategy, column_tiles, prepared
from accelviz.strategies.plans import (
    STATIC_SHARED_BYTES,
    WARP_SIZE,
    KernelSpec,
    LaunchConfig,
    Plan,
)
from accelviz.workload import Workload

#: Widest combined warp, in columns. Wider features are cut into tiles along the grid's y.
MAX_TILE_COLUMNS = 1024
FLOAT_BYTES = 4


class AccelGCN(Strategy):
    """Rows of equal degree share a block, one int4 describes it, warps combine to span a row of X.

    Section III of the paper. `build` takes `max_block_warps` (warps in a block, 1 to 32) and
    `max_warp_nzs` (most nonzeros of a warp, 1 to 65,535); their product is deg_bound, the most
    nonzeros one block handles. Two more take an idea away each, for the paper's ablations (section
    IV-B and Table II): `partition="warp"` gives each warp metadata of its own and leaves the rows
    in the caller's order (Figures 3b and 7), `combined_warp=False` lets each warp walk the columns
    on its own (Figures 4a and 8).
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
        partition: str = "block",
        combined_warp: bool = True,
    ) -> Plan:
        """Sort by degree, partition into blocks, permute the rows; or only partition into warps.

        Raises
        ------
        PartitionError
            If a parameter is out of range or the graph has 2^31 nonzeros or more.
        """
        setting = checked_setting(max_block_warps, max_warp_nzs, partition, combined_warp)
        made = PARTITIONS[partition](graph, setting)
        tiles, tile_columns = column_tiles(n_cols, widest_tile(setting.max_block_warps))
        return Plan(
            strategy=self.name,
            graph=graph,
            n_cols=n_cols,
            parameters={
                "max_block_warps": setting.max_block_warps,
                "max_warp_nzs": setting.max_warp_nzs,
                "partition": partition,
                "combined_warp": bool(combined_warp),
            },
            matrix=made.matrix,
            launch=LaunchConfig((made.n_blocks, tiles, 1), setting.max_block_warps),
            slice_workload=made.slice_workload,
            permutation=made.permutation,
            metadata=made.metadata,
            kernel=KernelSpec(
                file=f"{made.kernel}.cu",
                entry=made.kernel,
                defines={
                    "MAX_BLOCK_WARPS": setting.max_block_warps,
                    "TILE_COLUMNS": tile_columns,
                    "SHARED_ROWS": shared_rows(setting.max_block_warps),
                    "COMBINED_WARP": int(combined_warp),
                    **made.defines,
                },
                arguments=(*made.pointers, "X", "Y", *made.scalars, "n_cols"),
            ),
            arrays={**made.pointers, **made.scalars, "n_cols": np.int32(n_cols)},
            zero_output=made.zero_output,
            setup_seconds=made.setup_seconds,
        )

    def choices(self, graph: Graph, n_cols: int) -> dict[str, tuple[Any, ...]]:
        """Return the settings that the recorded sweeps cover."""
        return {
            "max_warp_nzs": (8, 16, 32, 64, 128),
            "max_block_warps": (1, 2, 4, 6, 8, 12, 16, 24, 32),
        }

    def summarize(
        self,
        rows: RowDegrees,
        n_cols: int,
        *,
        max_block_warps: int,
        max_warp_nzs: int,
        partition: str,
        combined_warp: bool,
    ) -> PartitionSummary:
        """Count blocks, warps, loads and atomics; the combined warp changes none of them."""
        setting = checked_setting(max_block_warps, max_warp_nzs, partition, combined_warp)
        if partition == "block":
            return closed_forms.block_level(rows, n_cols, setting)
        return closed_forms.runs_in_order(
            rows, n_cols, setting.max_warp_nzs, setting.max_block_warps, closed_forms.INT4_BYTES
        )


def checked_setting(
    max_block_warps: int, max_warp_nzs: int, partition: str, combined_warp: bool
) -> BlockSetting:
    """Return the setting, or say which of the parameters is out of range."""
    setting = BlockSetting(max_block_warps, max_warp_nzs)
    if not isinstance(partition, str) or partition not in PARTITIONS:
        known = " or ".join(repr(name) for name in PARTITIONS)
        raise PartitionError("partition", f"got {partition!r}", known)
    if not isinstance(combined_warp, bool | np.bool_):
        raise PartitionError("combined_warp", f"got {combined_warp!r}", "True or False")
    return setting


@dataclass(frozen=True)
class Partitioned:
    """What the block-level and the warp-level plans differ in; the names are those of `Plan`."""

    kernel: str
    matrix: Graph
    metadata: npt.NDArray[np.int32]
    n_blocks: int
    slice_workload: Callable[[int, int], Workload]
    zero_output: bool
    setup_seconds: Mapping[str, float]
    pointers: Mapping[str, npt.NDArray[Any]]
    permutation: Permutation | None = None
    scalars: Mapping[str, np.generic] = field(default_factory=dict)
    defines: Mapping[str, int] = field(default_factory=dict)


def block_level(graph: Graph, setting: BlockSetting) -> Partitioned:
    """Sort by degree and describe each block (section III-C); column counts share the sorting."""

    def sort(clock: Stopwatch) -> Any:
        with clock.step("degree sort"):
            return sort_by_degree(graph.row_pointers)

    def permute(clock: Stopwatch) -> Graph:
        with clock.step("permute rows"):
            return permutation.apply_to_graph(graph)

    (permutation, histogram), sort_seconds = prepared(graph, "degree sort", sort)
    clock = Stopwatch()
    with clock.step("block partition"):
        metadata = block_partition(histogram, setting)
        metadata.setflags(write=False)
    matrix, permute_seconds = prepared(graph, "rows by degree", permute)
    return Partitioned(
        kernel="accel_gcn",
        matrix=matrix,
        metadata=metadata,
        n_blocks=len(metadata),
        slice_workload=partial(block_workload, metadata, setting),
        # Rows without a nonzero have no block, and parts of a split row add up in the output.
        zero_output=bool(
            histogram.degrees.size
            and (histogram.degrees[0] == 0 or histogram.largest > setting.deg_bound)
        ),
        setup_seconds={**sort_seconds, **clock.seconds, **permute_seconds},
        pointers={
            "metadata": metadata,
            "output_rows": permutation.order,
            "columns": matrix.column_indices,
            "values": matrix.values,
        },
        permutation=permutation,
        defines={"DEG_BOUND": setting.deg_bound, "INFO_FIELD_BITS": FIELD_BITS},
    )


def warp_level(graph: Graph, setting: BlockSetting) -> Partitioned:
    """Describe each warp, the rows in the caller's order; a block is consecutive warps."""
    clock = Stopwatch()
    with clock.step("warp partition"):
        metadata = warp_partition(graph.row_pointers, setting.max_warp_nzs)
        metadata.setflags(write=False)
    return Partitioned(
        kernel="accel_gcn_warp",
        matrix=graph,
        metadata=metadata,
        n_blocks=-(-len(metadata) // setting.max_block_warps),
        slice_workload=partial(warp_workload, metadata, setting.max_block_warps),
        zero_output=bool(
            (graph.degrees == 0).any() or cuts_rows(metadata, setting.max_block_warps)
        ),
        setup_seconds=clock.seconds,
        pointers={
            "metadata": metadata,
            "columns": graph.column_indices,
            "values": graph.values,
        },
        scalars={"n_warps": np.int32(len(metadata))},
    )


#: What `partition` may be.
PARTITIONS: Mapping[str, Callable[[Graph, BlockSetting], Partitioned]] = {
    "block": block_level,
    "warp": warp_level,
}


def shared_rows(max_block_warps: int) -> int:
    """Most rows of a block that add up in shared memory: each of them has two warps or more."""
    return max(1, max_block_warps // 2)


def widest_tile(max_block_warps: int) -> int:
    """Most columns whose partial sums of `shared_rows` rows fit the static shared memory."""
    floats = STATIC_SHARED_BYTES // FLOAT_BYTES // shared_rows(max_block_warps)
    return min(MAX_TILE_COLUMNS, floats // WARP_SIZE * WARP_SIZE)
