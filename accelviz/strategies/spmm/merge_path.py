"""Merge-path SpMM: equal shares of rows plus nonzeros (Merrill and Garland, SC 2016)."""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt

from accelviz.graph import Graph
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
from accelviz.strategies.blocks import block_warps_of, column_tiles, csr_arrays
from accelviz.strategies.spmm.operation import SPMM

#: Most columns of a lane, 32 apart: each nonzero is read once for up to 128 columns.
MOST_LANE_COLUMNS = 4


class MergePathSettings(Settings):
    """Items of a thread and warps of a block."""

    # Two items a thread: half the cut rows, and so atomics, of one; shares beyond 64 leave even
    # large graphs with too few warps to fill a GPU.
    items_per_thread: int = setting(
        2,
        "rows plus nonzeros of a lane; more: fewer warps, each with more to do",
        64,
        tries=(1, 2, 4, 8, 16),
    )
    block_warps: int = block_warps_of(8, 16, 32)


class MergePath(Strategy):
    """The path through row ends and nonzeros is cut into equal shares, one a warp.

    Neither a hub nor a run of empty rows makes a warp late. Yang, Buluç and Owens (Euro-Par 2018)
    and MergePath-SpMM (Shan et al., ISPASS 2023) bring the scheme to SpMM; as in the latter, rows
    cut between warps add up by atomics.
    """

    operation = SPMM
    name = "merge_path"
    summary = "equal shares of rows plus nonzeros, found by binary search; cut rows by atomics"
    Settings = MergePathSettings
    metadata_words = ("first row",)
    metadata_owner = "warp"

    def build(self, graph: Graph, widths: Widths, settings: MergePathSettings) -> Plan:
        """Find where each warp's share begins; give each warp a tile of up to 128 columns."""
        n_cols, block_warps = widths["n_cols"], settings.block_warps
        warp_items = settings.items_per_thread * WARP_SIZE
        pointers = graph.row_pointers

        def search(clock: Stopwatch) -> tuple[npt.NDArray[np.int32], bool]:
            with clock.step("merge-path search"):
                first_rows = merge_path_partition(pointers, warp_items)
                cut = cuts_rows(pointers, first_rows, warp_items)
            first_rows.setflags(write=False)
            return first_rows, cut

        (first_rows, cut), seconds = graph.store.prepared(f"merge path by {warp_items}", search)
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
            Buffers(arrays, zero_outputs=("Y",) if cut else ()),
            Provenance(self, graph.values, widths, settings, seconds),
        )

    def describe(
        self, settings: MergePathSettings, rows: RowDegrees, widths: Widths
    ) -> Description:
        """Name the shares; each lane has up to four columns of the tile, 32 apart."""
        tile = column_tiles(widths["n_cols"], MOST_LANE_COLUMNS * WARP_SIZE)[1]
        scheme = scheme_of.MergePath(settings.items_per_thread * WARP_SIZE, settings.block_warps)
        return Description(scheme, LaneColumns(WARP_SIZE, 1, tile))
