"""Merge-path SpMM (Merrill and Garland, SC 2016): every warp has as many rows plus nonzeros.

The merge path visits all nonzeros and, after each row's last one, the end of the row. It is divided
into shares of equal length, one per warp.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt

from accelviz.graph import Graph
from accelviz.immutable import taken_over
from accelviz.ordering import RowDegrees
from accelviz.partition import merge_path as scheme_of
from accelviz.partition.merge_path import (
    cuts_rows,
    merge_path_partition,
    merge_path_workload,
)
from accelviz.plans import Buffers, Layout, Plan, Provenance, Strategy, Widths
from accelviz.plans.description import Description, LaneColumns
from accelviz.plans.launch import WARP_SIZE, Call, KernelSpec, LaunchConfig
from accelviz.plans.settings import Settings, setting
from accelviz.store import Stopwatch
from accelviz.strategies.blocks import block_warps_setting, column_tiles, csr_arrays
from accelviz.strategies.spmm.operation import SPMM

#: Most columns per lane, 32 apart, so that a warp reads each nonzero once for up to 128 columns.
MOST_LANE_COLUMNS = 4


class MergePathSettings(Settings):
    """Items (row ends and nonzeros) per thread, and warps per block."""

    # With 2 there are half as many split rows, and so atomics, as with 1. With more than 64 even
    # large graphs have too few warps to fill a GPU.
    items_per_thread: int = setting(
        2,
        "rows plus nonzeros per lane; more: fewer warps, each with more work",
        64,
        tries=(1, 2, 4, 8, 16),
    )
    block_warps: int = block_warps_setting(8, 16, 32)


class MergePath(Strategy):
    """Warps have equal shares of the path through row ends and nonzeros.

    Neither a long row nor a run of empty rows imbalances the load. Yang, Buluç and Owens (Euro-Par
    2018) and MergePath-SpMM (Shan et al., ISPASS 2023) apply the scheme to SpMM. As in the latter,
    the parts of a row that is split between warps are added by atomics.
    """

    operation = SPMM
    name = "merge_path"
    summary = "equal shares of rows plus nonzeros, by binary search; split rows by atomics"
    Settings = MergePathSettings
    metadata_words = ("first row",)
    metadata_owner = "warp"

    def build(self, graph: Graph, widths: Widths, settings: MergePathSettings) -> Plan:
        """Find the first row of each warp's share; give each warp up to 128 columns."""
        n_cols, block_warps = widths["n_cols"], settings.block_warps
        warp_items = settings.items_per_thread * WARP_SIZE
        pointers = graph.row_pointers

        def search(clock: Stopwatch) -> tuple[npt.NDArray[np.int32], bool]:
            with clock.step("merge-path search"):
                first_rows = merge_path_partition(pointers, warp_items)
                splits_rows = cuts_rows(pointers, first_rows, warp_items)
            return taken_over(first_rows), splits_rows

        key = f"merge path by {warp_items}"
        (first_rows, splits_rows), seconds = graph.store.prepared(key, search)
        tiles, tile_columns = column_tiles(n_cols, MOST_LANE_COLUMNS * WARP_SIZE)
        blocks = -(-(first_rows.size - 1) // block_warps)
        kernel = KernelSpec(
            file="spmm/merge_path.cu",
            entry="merge_path",
            config={
                "block_warps": block_warps,
                "warp_items": warp_items,
                "lane_columns": tile_columns // WARP_SIZE,
            },
            arguments=(
                *("first_rows", "row_pointers", "columns", "values", "X", "Y"),
                *("n_items", "n_rows", "n_cols"),
            ),
        )
        arrays = {
            "first_rows": first_rows,
            **csr_arrays(graph, n_cols),
            "n_rows": np.int32(graph.n_rows),
            "n_items": np.int64(graph.n_rows + graph.nnz),
        }
        workload = partial(merge_path_workload, pointers, first_rows, warp_items, block_warps)
        return Plan(
            Layout(graph.pattern, workload, metadata=first_rows),
            (Call(LaunchConfig((blocks, tiles, 1), block_warps), kernel),),
            Buffers(arrays, zero_outputs=("Y",) if splits_rows else ()),
            Provenance(self, graph.values, widths, settings, seconds),
        )

    def describe(
        self, settings: MergePathSettings, rows: RowDegrees, widths: Widths
    ) -> Description:
        """Describe the shares; each lane has up to four columns of a tile, 32 apart."""
        tile = column_tiles(widths["n_cols"], MOST_LANE_COLUMNS * WARP_SIZE)[1]
        scheme = scheme_of.MergePath(settings.items_per_thread * WARP_SIZE, settings.block_warps)
        return Description(scheme, LaneColumns(WARP_SIZE, 1, tile))
