"""TC-GNN's neighbor aggregation: tiles of condensed windows, multiplied by tensor cores."""

from __future__ import annotations

import numpy as np

from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.plans.description import Description, LaneColumns
from accelviz.plans.fragments import TF32_CAPABILITY
from accelviz.plans.launch import MOST_BLOCK_WARPS, Call, KernelSpec, LaunchConfig
from accelviz.plans.plan import Buffers, Plan, Provenance, Widths
from accelviz.plans.settings import Settings, setting
from accelviz.strategies.spmm.operation import SPMM
from accelviz.strategies.tc_gnn import (
    WINDOW_ROWS,
    WINDOWS,
    TcGnnStrategy,
    translated,
    window_layout,
    window_warps,
)

#: Columns of a tile of A, which TF32 fixes; those of a tile of X.
TILE_COLUMNS, X_COLUMNS = 8, 16
#: Most tiles of X that a warp has sums for, and that a block keeps in shared memory.
MOST_WARP_TILES, MOST_SLAB_TILES = 4, 8
#: Tiles of A that are fetched together. The published kernel fetches one.
TILES_AT_ONCE = 4


class TcGnnSettings(Settings):
    """Warps of a block, and the tiles that it fetches together."""

    block_warps: int = setting(
        None,
        "warps that share the columns of a window; more: fewer tiles for each",
        MOST_BLOCK_WARPS,
        tries=(1, 2, 4, 8, 16),
    )
    tiles_at_once: int = setting(
        TILES_AT_ONCE,
        "tiles that a block fetches together; more: less waiting, more registers",
        8,
        tries=(1, 2, 4, 8),
    )


class TcGnn(TcGnnStrategy):
    """A block has a window of 16 rows, whose distinct columns are moved together into 16 x 8 tiles.

    Chapter 5 of the thesis, Algorithms 4 and 5. Products are TF32's, inputs rounded: results are
    off by up to a thousandth of the sum of their terms' magnitudes. It takes `block_warps` (warps
    of a block, 1 to 32), which the paper's rule chooses if None, and `tiles_at_once` (tiles that a
    block fetches together, 1 to 8; the paper's kernel has 1).
    """

    operation = SPMM
    summary = "tensor cores (TF32): windows of 16 rows with their columns condensed into tiles"
    Settings = TcGnnSettings

    def build(self, graph: Graph, widths: Widths, settings: TcGnnSettings) -> Plan:
        """Translate the graph; give each window a block.

        Raises
        ------
        PartitionError
            If a window has 2^31 nonzeros or more.
        """
        n_cols, warps = widths["n_cols"], settings.block_warps
        translation, seconds = translated(graph, TILE_COLUMNS)
        slabs, slab_tiles = column_slabs(n_cols, warps)
        kernel = KernelSpec(
            file="tensor_cores/tc_gnn_spmm.cu",
            entry="tc_gnn_spmm",
            config={
                "warps": warps,
                "warp_tiles": -(-slab_tiles // warps),
                "block_tiles": slab_tiles,
                "tiles_at_once": settings.tiles_at_once,
                "tile_rows": WINDOW_ROWS,
                "tile_columns": TILE_COLUMNS,
            },
            arguments=(*translation.arrays, "values", "X", "Y", "n_rows", "n_cols"),
            capability=TF32_CAPABILITY,
        )
        windows = -(-graph.n_rows // WINDOW_ROWS)
        sizes = {"n_rows": np.int32(graph.n_rows), "n_cols": np.int32(n_cols)}
        return Plan(
            window_layout(graph, translation),
            (Call(LaunchConfig((windows, slabs, 1), warps), kernel),),
            Buffers({**translation.arrays, **sizes}, zero_outputs=(), arithmetic="tf32"),
            Provenance(self, graph.values, widths, settings, seconds),
        )

    def resolve(
        self, settings: TcGnnSettings, graph: Graph | RowDegrees, widths: Widths
    ) -> TcGnnSettings:
        """Ask the paper's rule for the warps."""
        return settings.filled(block_warps=window_warps(graph, MOST_BLOCK_WARPS))

    def describe(self, settings: TcGnnSettings, rows: RowDegrees, widths: Widths) -> Description:
        """Fetch 16 neighboring columns of a row of X by 16 lanes, the next ones by others."""
        _, tiles = column_slabs(widths["n_cols"], settings.block_warps)
        return Description(WINDOWS, LaneColumns(X_COLUMNS, 1, tiles * X_COLUMNS))


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
