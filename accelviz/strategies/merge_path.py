"""Merge-path SpMM: equal shares of rows plus nonzeros (Merrill and Garland, SC 2016)."""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt

from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.partition import closed_forms
from accelviz.partition.checks import checked_integer
from accelviz.partition.merge_path import cuts_rows, merge_path_partition, merge_path_workload
from accelviz.partition.summary import PartitionSummary
from accelviz.strategies.base import Stopwatch, Strategy, column_tiles, prepared
from accelviz.strategies.plans import WARP_SIZE, KernelSpec, LaunchConfig, Plan
from accelviz.strategies.rows import MOST_BLOCK_WARPS

#: Shares beyond this leave even large graphs with too few warps to fill a GPU.
MOST_ITEMS_PER_THREAD = 64
#: Most columns of a lane, 32 apart: each nonzero is read once for up to 128 columns.
MOST_LANE_COLUMNS = 4


class MergePath(Strategy):
    """The path through row ends and nonzeros is cut into equal shares, one a warp.

    Neither a hub nor a run of empty rows makes a warp late. Yang, Buluç and Owens (Euro-Par 2018)
    and MergePath-SpMM (Shan et al., ISPASS 2023) bring the scheme to SpMM; as in the latter, rows
    cut between warps add up by atomics. `build` takes `items_per_thread` (1 to 64; a warp's share
    is 32 times as many rows plus nonzeros) and `block_warps` (warps in a block, 1 to 32).
    """

    name = "merge_path"
    summary = "equal shares of rows plus nonzeros, found by binary search; cut rows by atomics"

    # Two items a thread: half the cut rows, and so atomics, of one; larger shares leave small
    # graphs with too few warps.
    def build(
        self, graph: Graph, n_cols: int, *, items_per_thread: int = 2, block_warps: int = 8
    ) -> Plan:
        """Find where each warp's share begins; give each warp a tile of up to 128 columns.

        Raises
        ------
        PartitionError
            If a parameter is out of range.
        """
        warp_items, block_warps = checked_share(items_per_thread, block_warps)

        def search(clock: Stopwatch) -> tuple[npt.NDArray[np.int32], bool]:
            with clock.step("merge-path search"):
                first_rows = merge_path_partition(graph.row_pointers, warp_items)
                cut = cuts_rows(graph.row_pointers, first_rows, warp_items)
            first_rows.setflags(write=False)
            return first_rows, cut

        (first_rows, cut), seconds = prepared(graph, f"merge path by {warp_items}", search)
        tiles, tile_columns = column_tiles(n_cols, MOST_LANE_COLUMNS * WARP_SIZE)
        blocks = -(-(first_rows.size - 1) // block_warps)
        return Plan(
            strategy=self.name,
            graph=graph,
            n_cols=n_cols,
            parameters={
                "items_per_thread": warp_items // WARP_SIZE,
                "block_warps": block_warps,
            },
            matrix=graph,
            launch=LaunchConfig((blocks, tiles, 1), block_warps),
            slice_workload=partial(
                merge_path_workload, graph.row_pointers, first_rows, warp_items, block_warps
            ),
            metadata=first_rows,
            kernel=KernelSpec(
                file="merge_path.cu",
                entry="merge_path",
                defines={
                    "BLOCK_WARPS": block_warps,
                    "WARP_ITEMS": warp_items,
                    "LANE_COLUMNS": tile_columns // WARP_SIZE,
                },
                arguments=(
                    "first_rows",
                    "row_pointers",
                    "columns",
                    "values",
                    "X",
                    "Y",
                    "n_items",
                    "n_rows",
                    "n_cols",
                ),
            ),
            arrays={
                "first_rows": first_rows,
                "row_pointers": graph.row_pointers,
                "columns": graph.column_indices,
                "values": graph.values,
                "n_items": np.int64(graph.n_rows + graph.nnz),
                "n_rows": np.int32(graph.n_rows),
                "n_cols": np.int32(n_cols),
            },
            zero_output=cut,
            setup_seconds=seconds,
        )

    def summarize(
        self, rows: RowDegrees, n_cols: int, *, items_per_thread: int, block_warps: int
    ) -> PartitionSummary:
        """Count shares, loads and atomics."""
        return closed_forms.merge_path(rows, n_cols, *checked_share(items_per_thread, block_warps))


def checked_share(items_per_thread: int, block_warps: int) -> tuple[int, int]:
    """Return the items of a warp and the warps of a block, or say which is out of range."""
    items = checked_integer("items_per_thread", items_per_thread, MOST_ITEMS_PER_THREAD)
    return items * WARP_SIZE, checked_integer("block_warps", block_warps, MOST_BLOCK_WARPS)
