"""TC-GNN's neighbor aggregation: tiles of condensed windows, multiplied by tensor cores."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np

from accelviz.graph import Graph
from accelviz.partition.row_split import row_workload
from accelviz.plans import Call, KernelSpec, LaunchConfig, Parameter, Plan, Reading
from accelviz.plans.launch import MOST_BLOCK_WARPS
from accelviz.strategies.spmm.operation import SPMM
from accelviz.tensor_cores.fragments import TF32_CAPABILITY
from accelviz.tensor_cores.tc_gnn import WINDOW_ROWS, TcGnnStrategy, translated, window_warps

#: Columns of a tile of A, which TF32 fixes; those of a tile of X.
TILE_COLUMNS, X_COLUMNS = 8, 16
#: Most tiles of X that a warp has sums for, and that a block keeps in shared memory.
MOST_WARP_TILES, MOST_SLAB_TILES = 4, 8
#: Tiles of A that are fetched together. The published kernel fetches one.
TILES_AT_ONCE = 4


class TcGnn(TcGnnStrategy):
    """A block has a window of 16 rows, whose distinct columns are moved together into 16 x 8 tiles.

    Chapter 5 of the thesis, Algorithms 4 and 5. Products are TF32's, inputs rounded: results are
    off by up to a thousandth of the sum of their terms' magnitudes. It takes `block_warps` (warps
    of a block, 1 to 32), which the paper's rule chooses if None, and `tiles_at_once` (tiles that a
    block fetches together, 1 to 8; the paper's kernel has 1).
    """

    operation = SPMM
    summary = "tensor cores (TF32): windows of 16 rows with their columns condensed into tiles"
    parameters: ClassVar = {
        "block_warps": Parameter(
            None,
            "warps that share the columns of a window; more: fewer tiles for each",
            MOST_BLOCK_WARPS,
            tries=(1, 2, 4, 8, 16),
        ),
        "tiles_at_once": Parameter(
            TILES_AT_ONCE,
            "tiles that a block fetches together; more: less waiting, more registers",
            8,
            tries=(1, 2, 4, 8),
        ),
    }

    def build(
        self, graph: Graph, n_cols: int, *, block_warps: int | None, tiles_at_once: int
    ) -> Plan:
        """Translate the graph; give each window a block.

        Raises
        ------
        PartitionError
            If a window has 2^31 nonzeros or more.
        """
        settled = self.settle(graph, n_cols, block_warps=block_warps)
        warps = settled["block_warps"]
        found, seconds = translated(graph, TILE_COLUMNS)
        slabs, slab_tiles = column_slabs(n_cols, warps)
        kernel = KernelSpec(
            file="tensor_cores/tc_gnn_spmm.cu",
            entry="tc_gnn_spmm",
            config={
                "warps": warps,
                "warp_tiles": -(-slab_tiles // warps),
                "slab_tiles": slab_tiles,
                "tiles_at_once": tiles_at_once,
                "tile_rows": WINDOW_ROWS,
                "tile_columns": TILE_COLUMNS,
            },
            arguments=(*found.arrays, "values", "X", "Y", "n_rows", "n_cols"),
            capability=TF32_CAPABILITY,
        )
        windows = -(-graph.n_rows // WINDOW_ROWS)
        return Plan(
            graph.pattern,
            (Call(LaunchConfig((windows, slabs, 1), warps), kernel),),
            partial(row_workload, graph.row_pointers, WINDOW_ROWS, 1),
            arrays={
                **found.arrays,
                "n_rows": np.int32(graph.n_rows),
                "n_cols": np.int32(n_cols),
            },
            clears=(),
            workers_per_block=1,  # all warps of a block share each nonzero, a column tile each
            arithmetic="tf32",
            make_tiles=partial(getattr, found, "tiles"),
            setup_seconds=seconds,
            parameters=settled,
        )

    def settle(
        self, graph: Graph, n_cols: int, *, block_warps: int | None, **parameters: object
    ) -> dict[str, int]:
        """Ask the paper's rule."""
        return {"block_warps": block_warps or window_warps(graph, MOST_BLOCK_WARPS)}

    def reading(self, graph: Graph, n_cols: int, **parameters: Any) -> Reading:
        """Fetch 16 neighboring columns of a row of X by 16 lanes, the next ones by others."""
        warps = self.settle(graph, n_cols, **parameters)["block_warps"]
        return Reading(X_COLUMNS, 1, column_slabs(n_cols, warps)[1] * X_COLUMNS)


def column_slabs(n_cols: int, warps: int) -> tuple[int, int]:
    """Cut the columns of X into equal slabs that a block's registers and shared memory hold.

    Returns
    -------
    slabs, tiles : int
        How many slabs, and the tiles of 16 columns in each.
    """
    x_tiles = -(-n_cols // X_COLUMNS)
    slabs = -(-x_tiles // min(warps * MOST_WARP_TILES, MOST_SLAB_TILES))
    return slabs, -(-x_tiles // slabs)
