"""TC-GNN (chapter 5 of the thesis): tiles of condensed windows, multiplied by tensor cores."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from accelviz.errors import PartitionError
from accelviz.graph import MAX_SIDE, Graph
from accelviz.ordering import RowDegrees
from accelviz.partition.row_split import RowSplit, row_workload
from accelviz.partition.windows import row_windows, window_tiles
from accelviz.plans import Description, LaneColumns, Settings, Strategy, Widths, setting
from accelviz.plans.fragments import TF32_CAPABILITY
from accelviz.plans.launch import MOST_BLOCK_WARPS, WARP_SIZE, Call, KernelSpec, LaunchConfig
from accelviz.plans.plan import Buffers, Layout, Plan, Provenance
from accelviz.store import Stopwatch
from accelviz.strategies.blocks import size_arguments
from accelviz.strategies.sddmm.operation import SDDMM
from accelviz.strategies.spmm.operation import SPMM
from accelviz.tiles import Tiles

#: Rows of a window, which tensor cores fix.
WINDOW_ROWS = 16
#: Columns of a tile of X; most of those tiles that a warp has sums for, and that a block keeps in
#: shared memory.
X_COLUMNS, MOST_WARP_TILES, MOST_BLOCK_TILES = 16, 4, 8
#: Tiles of A that SpMM fetches together. The published kernel fetches one.
TILES_AT_ONCE = 4
#: Warps of a block whose tiles of scores fit in shared memory.
MOST_SDDMM_WARPS = 8
#: Most columns of U and V that a warp fetches at a time. The published kernel fetches 8.
MOST_STEP = 32


@dataclass(frozen=True, eq=False)
class Translated:
    """A graph's windows, in tiles.

    Attributes
    ----------
    tiles : Tiles
    arrays : mapping of str to array
        Arguments of the kernels.
    """

    tiles: Tiles
    arrays: dict[str, Any]


def translated(graph: Graph, width: int) -> tuple[Translated, dict[str, float]]:
    """Translate a graph into windows of 16 rows and tiles of `width` columns, once.

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
            first = graph.row_pointers[tiles.first_row]
            behind = tiles.nonzeros - np.repeat(first, tiles.counts)
            if behind.size and behind.max() > MAX_SIDE:
                problem = f"a window of {int(behind.max()) + 1:,} nonzeros"
                raise PartitionError(
                    "graph", problem, f"at most {MAX_SIDE:,} in {WINDOW_ROWS} rows"
                )
            arrays = {
                "row_pointers": graph.row_pointers,
                "window_tiles": np.append(0, np.cumsum(windows.blocks(width))),
                "tile_pointers": tiles.pointers,
                "column_indices": tiles.column_indices,
                "offsets": behind.astype(np.int32),
                "places": tiles.places.astype(np.uint8),
            }
            for array in arrays.values():
                array.setflags(write=False)
        return Translated(tiles, arrays)

    return graph.store.prepared(f"tc_gnn tiles of {width}", make)


def window_warps(graph: Graph | RowDegrees, most: int) -> int:
    """Choose the warps of a block, up to `most`: a window's mean nonzeros over 32.

    Section 5.4.3 of the thesis: warpPerBlock = floor(avg.edges / 32), where avg.edges are those of
    a row window.
    """
    windows = max(1, -(-graph.n_rows // WINDOW_ROWS))
    return min(max(1, graph.nnz // windows // WARP_SIZE), most)


class _Windows(Strategy):
    """A block has a window of 16 rows, whichever the operation.

    Attributes
    ----------
    tile_columns : int
        Columns of a tile of the matrix.
    """

    name = "tc_gnn"
    worker = "window"
    tile_columns: ClassVar[int]

    def tiling(self, widths: Widths, settings: Any) -> tuple[int, dict[str, int]]:
        """Return the blocks of a window along the grid's y, and the kernel's constants."""
        raise NotImplementedError

    def build(self, graph: Graph, widths: Widths, settings: Any) -> Plan:
        """Translate the graph; give each window a block.

        Raises
        ------
        PartitionError
            If a window has 2^31 nonzeros or more.
        """
        translation, seconds = translated(graph, self.tile_columns)
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
                # Which warp has a nonzero, its tile says.
                partial(row_workload, graph.row_pointers, WINDOW_ROWS, 1),
                workers_per_block=1,
                make_tiles=partial(getattr, translation, "tiles"),
            ),
            (Call(LaunchConfig((-(-graph.n_rows // WINDOW_ROWS), blocks, 1), warps), kernel),),
            Buffers({**translation.arrays, **sizes}, zero_outputs=(), arithmetic="tf32"),
            Provenance(self, graph.values, widths, settings, seconds),
        )

    def describe(self, settings: Any, rows: RowDegrees, widths: Widths) -> Description:
        """Name the windows: 16 rows a block, whose warps count as one worker."""
        return Description(RowSplit(WINDOW_ROWS, 1))


class SpmmSettings(Settings):
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


class TcGnnSpmm(_Windows):
    """A block has a window of 16 rows, whose distinct columns are moved together into 16 x 8 tiles.

    Algorithms 4 and 5. Products are TF32's, inputs rounded: results are off by up to a thousandth
    of the sum of their terms' magnitudes.
    """

    operation = SPMM
    summary = "tensor cores (TF32): windows of 16 rows with their columns condensed into tiles"
    Settings = SpmmSettings
    tile_columns = 8

    def tiling(self, widths: Widths, settings: SpmmSettings) -> tuple[int, dict[str, int]]:
        """Give each block columns of X that its registers and shared memory hold."""
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
        """Ask the paper's rule for the warps."""
        return settings.filled(block_warps=window_warps(graph, MOST_BLOCK_WARPS))

    def describe(self, settings: SpmmSettings, rows: RowDegrees, widths: Widths) -> Description:
        """Fetch 16 neighboring columns of a row of X by 16 lanes, the next ones by others."""
        _, tiles = x_tiles(widths["n_cols"], settings.block_warps)
        return Description(RowSplit(WINDOW_ROWS, 1), LaneColumns(X_COLUMNS, 1, tiles * X_COLUMNS))


def x_tiles(n_cols: int, warps: int) -> tuple[int, int]:
    """Return the blocks that divide the columns of X, and each one's tiles of 16 columns."""
    tiles = -(-n_cols // X_COLUMNS)
    blocks = -(-tiles // min(warps * MOST_WARP_TILES, MOST_BLOCK_TILES))
    return blocks, -(-tiles // blocks)


class SddmmSettings(Settings):
    """Warps of a block, and the columns that one multiplies at a time."""

    block_warps: int = setting(None, "warps of a block", MOST_SDDMM_WARPS, tries=(1, 2, 4, 8))
    step: int = setting(
        None,
        "columns that a warp multiplies at a time; more: fewer turns, more registers",
        choices=(8, 16, 32),
        tries=(8, 16, 32),
    )


class TcGnnSddmm(_Windows):
    """A block has a window of 16 rows, its warps take turns with tiles of 16 condensed columns.

    Algorithms 4 and 6. Products are TF32's, inputs rounded: scores are off by up to a thousandth of
    the sum of their terms' magnitudes.
    """

    operation = SDDMM
    summary = "tensor cores (TF32): tiles of 16 x 16 scores, of which the nonzeros are kept"
    Settings = SddmmSettings
    tile_columns = 16

    def tiling(self, widths: Widths, settings: SddmmSettings) -> tuple[int, dict[str, int]]:
        """Give each head a block."""
        return widths["heads"], {"step": settings.step}

    def resolve(
        self, settings: SddmmSettings, graph: Graph | RowDegrees, widths: Widths
    ) -> SddmmSettings:
        """Ask the paper's rule for the warps; take as many columns at a time as there are."""
        columns = min(widths["n_cols"], MOST_STEP)
        fitting = next(step for step in (8, 16, MOST_STEP) if step >= columns)
        return settings.filled(block_warps=window_warps(graph, MOST_SDDMM_WARPS), step=fitting)
