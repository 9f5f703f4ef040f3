"""TC-GNN (chapter 5 of the thesis): SpMM and SDDMM on tensor cores.

A window is 16 neighboring rows. Sparse graph translation renumbers the distinct columns of a window
(0, 1, 2 ...), so that its nonzeros are in few dense tiles, which tensor cores multiply in TF32.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from accelviz.errors import PartitionError
from accelviz.graph import MAX_SIDE, Graph
from accelviz.immutable import Immutable, taken_over
from accelviz.ordering import RowDegrees
from accelviz.partition.row_split import RowSplit, row_workload
from accelviz.partition.windows import row_windows, window_tiles
from accelviz.plans import (
    Description,
    LaneColumns,
    Settings,
    Strategy,
    Widths,
    WorkerLanes,
    setting,
)
from accelviz.plans.fragments import TF32_CAPABILITY
from accelviz.plans.launch import MOST_BLOCK_WARPS, WARP_SIZE, Call, KernelSpec, LaunchConfig
from accelviz.plans.plan import Buffers, Layout, Plan, Provenance
from accelviz.store import Stopwatch
from accelviz.strategies.blocks import size_arguments
from accelviz.strategies.sddmm.operation import SDDMM
from accelviz.strategies.spmm.operation import SPMM
from accelviz.tiles import Tiles

#: Rows of a window, the height of a tensor core's fragment.
WINDOW_ROWS = 16
#: Columns of a tile of X; most such tiles of a warp (registers) and of a block (shared memory).
X_COLUMNS, MOST_WARP_TILES, MOST_BLOCK_TILES = 16, 4, 8
#: Default number of tiles of A that SpMM loads together. The published kernel loads one.
TILES_AT_ONCE = 4
#: Most warps of a block whose tiles of scores fit in shared memory.
MOST_SDDMM_WARPS = 8
#: Most columns of U and V that a warp loads together. The published kernel loads 8.
MOST_STEP = 32


@dataclass(frozen=True, eq=False)
class Translated(Immutable):
    """Tiles of a graph's windows, as a `Tiles` and as arguments of the kernels by name."""

    tiles: Tiles
    arrays: Mapping[str, Any]


def translate(graph: Graph, width: int) -> tuple[Translated, dict[str, float]]:
    """Return a graph's tiles of 16 rows by `width` condensed columns, and the seconds by step.

    Raises
    ------
    PartitionError
        If a window has 2^31 nonzeros or more.
    """

    def make(clock: Stopwatch) -> Translated:
        with clock.step("sparse graph translation"):
            windows = row_windows(graph, WINDOW_ROWS)
        with clock.step("tiles"):
            tiles = window_tiles(graph, windows, width)
            window_starts = graph.row_pointers[tiles.first_row]
            offsets = tiles.nonzeros - np.repeat(window_starts, tiles.counts)
            if offsets.max(initial=0) > MAX_SIDE:
                problem = f"a window of {int(offsets.max()) + 1:,} nonzeros"
                expected = f"at most {MAX_SIDE:,} in {WINDOW_ROWS} rows"
                raise PartitionError("graph", problem, expected)
            arrays = {
                "row_pointers": graph.row_pointers,
                "window_tiles": np.append(0, np.cumsum(windows.blocks(width))),
                "tile_pointers": tiles.pointers,
                "column_indices": tiles.column_indices,
                "offsets": offsets.astype(np.int32),
                "places": tiles.places.astype(np.uint8),
            }
        return Translated(tiles, {name: taken_over(array) for name, array in arrays.items()})

    return graph.store.prepared(f"tc_gnn tiles of {width}", make)


def window_warps(graph: Graph | RowDegrees, most: int) -> int:
    """Return the warps of a block by section 5.4.3 of the thesis, 1 to `most`.

    warpPerBlock = floor(avg.edges / 32), where avg.edges is the mean number of nonzeros per window.
    """
    windows = max(1, -(-graph.n_rows // WINDOW_ROWS))
    return min(max(1, graph.nnz // windows // WARP_SIZE), most)


def _whole_block(settings: Any) -> WorkerLanes:
    return WorkerLanes(settings.block_warps * WARP_SIZE, settings.block_warps)


class _Windows(Strategy):
    """Base class: one window of 16 rows per block. `tile_columns` is the width of a tile of A."""

    name = "tc_gnn"
    worker = "window"
    tile_columns: ClassVar[int]

    def tiling(self, widths: Widths, settings: Any) -> tuple[int, dict[str, int]]:
        """Return the number of blocks per window, and the kernel's constants."""
        raise NotImplementedError

    def build(self, graph: Graph, widths: Widths, settings: Any) -> Plan:
        """Translate the graph and assign each window to a block.

        Raises
        ------
        PartitionError
            If a window has 2^31 nonzeros or more.
        """
        translation, seconds = translate(graph, self.tile_columns)
        blocks, config = self.tiling(widths, settings)
        warps, entry = settings.block_warps, f"tc_gnn_{self.operation.name}"
        config |= {"warps": warps, "tile_rows": WINDOW_ROWS, "tile_columns": self.tile_columns}
        sizes = size_arguments(graph, widths)
        kernel = KernelSpec(
            file=f"tensor_cores/{entry}.cu",
            entry=entry,
            config=config,
            arguments=(*translation.arrays, *self.operation.operands, *sizes),
            capability=TF32_CAPABILITY,
        )
        return Plan(
            Layout(
                graph.pattern,
                # The workload has one record per row; the tiles have the nonzeros of each warp.
                partial(row_workload, graph.row_pointers, WINDOW_ROWS, 1),
                workers_per_block=1,
                make_tiles=partial(getattr, translation, "tiles"),
            ),
            (Call(LaunchConfig((-(-graph.n_rows // WINDOW_ROWS), blocks, 1), warps), kernel),),
            Buffers({**translation.arrays, **sizes}, zero_outputs=(), arithmetic="tf32"),
            Provenance(self, graph.values, widths, settings, seconds),
        )

    def describe(self, settings: Any, rows: RowDegrees, widths: Widths) -> Description:
        """Describe a row split with 16 rows per block; a block's warps count as one worker."""
        return Description(RowSplit(WINDOW_ROWS, 1), workers=_whole_block(settings))


class SpmmSettings(Settings):
    """Warps of a block, and the number of tiles of A that it loads together."""

    block_warps: int = setting(
        None,
        "warps that share the columns of X; more: fewer tiles of X per warp",
        MOST_BLOCK_WARPS,
        tries=(1, 2, 4, 8, 16),
    )
    tiles_at_once: int = setting(
        TILES_AT_ONCE,
        "tiles that a block fetches together; more: less waiting, more registers",
        8,
        tries=(1, 2, 4, 8),
    )


class TcGnnSpmm(_Windows):
    """SpMM: a block multiplies the 16 x 8 tiles of one window by the rows of X they name.

    Algorithms 4 and 5. Inputs are rounded to TF32: the error of a result is up to a thousandth of
    the sum of its terms' magnitudes.
    """

    operation = SPMM
    summary = "tensor cores (TF32): windows of 16 rows with their columns condensed into tiles"
    Settings = SpmmSettings
    tile_columns = 8

    def tiling(self, widths: Widths, settings: SpmmSettings) -> tuple[int, dict[str, int]]:
        """Divide the columns of X by the registers and shared memory of a block."""
        warps = settings.block_warps
        blocks, tiles = x_tiles(widths["n_cols"], warps)
        return blocks, {
            "warp_tiles": -(-tiles // warps),
            "block_tiles": tiles,
            "tiles_at_once": settings.tiles_at_once,
        }

    def resolve(
        self, settings: SpmmSettings, graph: Graph | RowDegrees, widths: Widths
    ) -> SpmmSettings:
        """Choose the number of warps by the paper's rule."""
        return settings.filled(block_warps=window_warps(graph, MOST_BLOCK_WARPS))

    def describe(self, settings: SpmmSettings, rows: RowDegrees, widths: Widths) -> Description:
        """Describe the row split; 16 lanes load 16 neighboring columns of a row of X."""
        _, tiles = x_tiles(widths["n_cols"], settings.block_warps)
        lanes = LaneColumns(X_COLUMNS, 1, tiles * X_COLUMNS)
        return Description(RowSplit(WINDOW_ROWS, 1), lanes, _whole_block(settings))


def x_tiles(n_cols: int, warps: int) -> tuple[int, int]:
    """Return the number of blocks that share the columns of X, and the 16-column tiles of each."""
    tiles = -(-n_cols // X_COLUMNS)
    blocks = -(-tiles // min(warps * MOST_WARP_TILES, MOST_BLOCK_TILES))
    return blocks, -(-tiles // blocks)


class SddmmSettings(Settings):
    """Warps of a block, and the number of columns that a warp multiplies together."""

    block_warps: int = setting(None, "warps per block", MOST_SDDMM_WARPS, tries=(1, 2, 4, 8))
    step: int = setting(
        None,
        "columns of U and V per step of a warp; more: fewer steps, more registers",
        choices=(8, 16, 32),
        tries=(8, 16, 32),
    )


class TcGnnSddmm(_Windows):
    """SDDMM: the warps of a block compute the 16 x 16 tiles of one window in turn.

    Algorithms 4 and 6. Inputs are rounded to TF32: the error of a score is up to a thousandth of
    the sum of its terms' magnitudes.
    """

    operation = SDDMM
    summary = "tensor cores (TF32): tiles of 16 x 16 scores, of which the nonzeros are stored"
    Settings = SddmmSettings
    tile_columns = 16

    def tiling(self, widths: Widths, settings: SddmmSettings) -> tuple[int, dict[str, int]]:
        """Return one block per window and head."""
        return widths["heads"], {"step": settings.step}

    def resolve(
        self, settings: SddmmSettings, graph: Graph | RowDegrees, widths: Widths
    ) -> SddmmSettings:
        """Choose the number of warps by the paper's rule, and the least step of all columns."""
        columns = min(widths["n_cols"], MOST_STEP)
        step = next(choice for choice in (8, 16, MOST_STEP) if choice >= columns)
        return settings.filled(block_warps=window_warps(graph, MOST_SDDMM_WARPS), step=step)
