"""Our own strategies whose windows of rows share columns, on tensor cores or CUDA cores.

A window is `window_rows` neighboring rows. Its distinct columns are a list (`partition.
shared_columns`), so that a warp or block loads each row of X (or V) once for the whole window.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from accelviz.errors import PartitionError
from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.partition.shared_columns import (
    WORD_COLUMNS,
    cut_workspace,
    shared_columns,
    shared_tiles,
    window_workload,
)
from accelviz.plans import Description, LaneColumns, Settings, Strategy, Widths, setting
from accelviz.plans.arithmetic import TF32_PRODUCTS
from accelviz.plans.fragments import TF32_CAPABILITY
from accelviz.plans.launch import MOST_BLOCK_WARPS, WARP_SIZE, Call, KernelSpec, LaunchConfig
from accelviz.plans.plan import Buffers, Layout, Plan, Provenance
from accelviz.strategies.blocks import size_arguments
from accelviz.strategies.sddmm.operation import SDDMM, check_heads
from accelviz.strategies.spmm.operation import SPMM

#: Rows of A in one tensor-core product, which computes the transpose of a tile of Y.
GROUP_ROWS = 8
#: Distinct columns of A in a step of SpMM, and in a tensor-core product of SDDMM.
STEP_COLUMNS, SDDMM_COLUMNS = 8, 16
#: Bytes of padding per staged row, so that lanes read from different shared-memory banks.
STAGE_PAD = 32
#: Most rows of a warp on CUDA cores, which holds their sums in registers.
MOST_WARP_ROWS = 16


def part_columns_setting(default: int | None, *tries: int) -> Any:
    """Declare the setting `part_columns`; a window with more distinct columns is split."""
    meaning = "most distinct columns of a window; windows with more are split into parts"
    return setting(default, meaning, 1 << 20, WORD_COLUMNS, (), tries)


class WindowStrategy(Strategy):
    """Base class: strategies whose blocks depend on the columns that rows share."""

    metadata_words = ("window", "first word", "columns", "parts | part")

    def describe(self, settings: Any, rows: RowDegrees, widths: Widths) -> Description:
        """Return an empty description: row degrees do not determine the blocks."""
        return Description()

    def _window_plan(
        self,
        graph: Graph,
        widths: Widths,
        settings: Any,
        config: Mapping[str, int],
        *,
        grid_y: int,
        staged: int = 0,
        tile_columns: int = 0,
    ) -> Plan:
        """Plan one metadata record per window, or per part of a split window.

        A block of warps shares the rows of one record. On tensor cores, whose tiles have
        `tile_columns` columns, each warp has a record of its own. `staged` is the shared memory
        of a block in bytes, `grid_y` the number of column tiles or heads.
        """
        windows, seconds = shared_columns(graph, settings.window_rows, settings.part_columns)
        n_records, warps = len(windows.metadata), settings.block_warps
        sizes = size_arguments(graph, widths)
        sizes.pop("heads", None)
        if tile_columns:
            warp_rows, block_records = settings.window_rows, warps
            arithmetic, capability = settings.arithmetic, TF32_CAPABILITY
            sizes = {"n_blocks": np.int32(n_records), **sizes}
        else:
            warp_rows, block_records = settings.window_rows // warps, 1
            arithmetic, capability = "float32", 0
        workspaces = {}
        if self.operation is SPMM:
            workspaces = cut_workspace(windows, widths["n_cols"], grid_y)
        entry = f"{self.name}_{self.operation.name}"
        arguments = (*windows.arrays, *self.operation.operands, *workspaces, *sizes)
        file = f"tensor_cores/{entry}.cu"
        kernel = KernelSpec(file, entry, config, arguments, capability=capability)
        grid = (-(-n_records // block_records), grid_y, 1)
        tiles = partial(shared_tiles, graph.pattern, windows, tile_columns, block_records)
        resolved = settings.filled(part_columns=windows.part_columns)
        return Plan(
            Layout(
                graph.pattern,
                partial(window_workload, graph.row_pointers, windows, warp_rows, block_records),
                metadata=windows.metadata,
                make_tiles=tiles if tile_columns else None,
            ),
            (Call(LaunchConfig(grid, warps, staged), kernel),),
            Buffers(
                {**windows.arrays, **sizes},
                workspaces,
                zero_outputs=(),
                storage="float16" if arithmetic == "float16" else "float32",
                arithmetic=arithmetic,
            ),
            Provenance(self, graph.values, widths, resolved, seconds),
        )


class TileSettings(Settings):
    """Settings of `window_tiles` for SpMM, which its kernel is compiled with."""

    arithmetic: str = setting("3xtf32", "type of the products", choices=tuple(TF32_PRODUCTS))
    window_rows: int = setting(8, "rows of a window", choices=(8, 16, 32), tries=(8, 16))
    column_tile: int = setting(64, "columns of X per warp", choices=(32, 64, 128), tries=(32, 64))
    block_warps: int = setting(4, "warps per block", MOST_BLOCK_WARPS, tries=(1, 4, 8))
    ahead: int = setting(
        2, "steps of 8 distinct columns that are loaded ahead", choices=(1, 2, 4), tries=(1, 2, 4)
    )
    blocks_per_sm: int = setting(1, "blocks per SM that have registers", 32, tries=(1, 4, 5))
    part_columns: int = part_columns_setting(None, 64, 256, 2048)

    @property
    def halves(self) -> bool:
        """Whether X is stored in 16 bits."""
        return self.arithmetic == "float16"

    def tile(self, n_cols: int) -> int:
        """Return the columns of X per warp, a multiple of the columns of one load."""
        load = load_columns(self.halves)
        return min(max(self.column_tile, load), -(-n_cols // load) * load)


class WindowTiles(WindowStrategy):
    """SpMM: a warp has a window of 8 to 32 rows and loads each of its distinct columns once.

    The kernel computes the transpose, 16 columns of X by 8 rows of A, so that rows of X are
    fragments in the layout that they have in memory, and 8 rows suffice for a window. With
    `arithmetic="3xtf32"` a number is the sum of two TF32 numbers, and results are as accurate as in
    float32. "tf32" rounds inputs to TF32. "float16" stores X and rounds weights in 16 bits.
    """

    operation = SPMM
    name = "window_tiles"
    summary = "our own on tensor cores: windows of 8 rows share rows of X, exact by three products"
    metadata_owner = "warp"
    Settings = TileSettings

    def build(self, graph: Graph, widths: Widths, settings: TileSettings) -> Plan:
        """Find the shared columns and assign each window, or part of one, to a warp.

        Raises
        ------
        PartitionError
            If there are 2^32 nonzeros or more, or `ahead` is 1 with "float16".
        """
        n_cols, halves, ahead = widths["n_cols"], settings.halves, settings.ahead
        if halves and ahead == 1:
            problem = "1 step with 'float16', whose instruction has two"
            raise PartitionError("ahead", problem, "2 or 4")
        tile = settings.tile(n_cols)
        row_bytes = tile * (2 if halves else 4) + STAGE_PAD
        config = {
            "groups": settings.window_rows // GROUP_ROWS,
            "warps": settings.block_warps,
            "quads": tile // load_columns(halves),
            "vector": vector_columns(n_cols, halves),
            "whole": int(n_cols % tile == 0),
            "ahead": ahead,
            "terms": TF32_PRODUCTS[settings.arithmetic],
            "features": int(halves),
            "blocks_per_sm": settings.blocks_per_sm,
        }
        return self._window_plan(
            *(graph, widths, settings, config),
            grid_y=-(-n_cols // tile),
            staged=settings.block_warps * ahead * GROUP_ROWS * row_bytes,
            tile_columns=STEP_COLUMNS,
        )

    def describe(self, settings: TileSettings, rows: RowDegrees, widths: Widths) -> Description:
        """Describe the loads: up to 16 bytes per lane of the same row of X."""
        tile, vector = (
            settings.tile(widths["n_cols"]),
            vector_columns(widths["n_cols"], settings.halves),
        )
        return Description(None, LaneColumns(min(tile // vector, WARP_SIZE), vector, tile))


def load_columns(halves: bool) -> int:
    """Return the columns that eight lanes load together, 16 bytes per lane."""
    return 64 if halves else 32


def vector_columns(n_cols: int, halves: bool) -> int:
    """Return the most columns of a copy: at most 16 bytes, and a divisor of `n_cols`."""
    return next(v for v in (8, 4, 2, 1) if n_cols % v == 0 and v <= (8 if halves else 4))


class ScoreSettings(Settings):
    """Settings of `window_tiles` for SDDMM, which its kernel is compiled with."""

    arithmetic: str = setting("3xtf32", "type of the products", choices=tuple(TF32_PRODUCTS))
    window_rows: int = setting(8, "rows of a window", choices=(8, 16, 32), tries=(8, 16, 32))
    block_warps: int = setting(4, "warps per block", MOST_BLOCK_WARPS, tries=(1, 4, 8))
    at_once: int = setting(2, "steps that are loaded together", choices=(1, 2, 4), tries=(1, 2, 4))
    # Scores of parts are not added up, so that small parts cost nothing and balance the warps.
    part_columns: int = part_columns_setting(512, 64, 512)

    @property
    def step_columns(self) -> int:
        """Columns of U and V in one step of a warp, which loads 16 bytes per lane."""
        return 32 if self.arithmetic == "float16" else 16


class ScoreTiles(WindowStrategy):
    """SDDMM: a warp has a window and multiplies 32 of its distinct columns by 8 of its rows.

    This takes two tensor-core products. Of each tile of 16 x 8 dot products, the ones at nonzeros
    are stored. With `arithmetic="3xtf32"` a number is the sum of two TF32 numbers, and results are
    as accurate as in float32. "tf32" rounds to TF32. "float16" stores U and V in 16 bits.
    """

    operation = SDDMM
    name = "window_tiles"
    summary = "our own on tensor cores: windows of rows share rows of V, exact by three products"
    metadata_owner = "warp"
    Settings = ScoreSettings

    def build(self, graph: Graph, widths: Widths, settings: ScoreSettings) -> Plan:
        """Find the shared columns and assign each window, or part of one, to a warp.

        Raises
        ------
        PartitionError
            If there are 2^32 nonzeros or more, or rows times heads do not fit in 31 bits.
        """
        n_cols, heads, halves = widths["n_cols"], widths["heads"], settings.arithmetic == "float16"
        check_heads(graph, heads)
        config = {
            "groups": settings.window_rows // GROUP_ROWS,
            "warps": settings.block_warps,
            "heads": heads,
            "vector": vector_columns(n_cols, halves),
            "at_once": settings.at_once,
            "whole": int(n_cols % (settings.step_columns * settings.at_once) == 0),
            "terms": TF32_PRODUCTS[settings.arithmetic],
            "features": int(halves),
        }
        return self._window_plan(
            graph, widths, settings, config, grid_y=heads, tile_columns=SDDMM_COLUMNS
        )

    def describe(self, settings: ScoreSettings, rows: RowDegrees, widths: Widths) -> Description:
        """Describe the loads: 4 lanes load a step's columns of a row, up to 16 bytes each."""
        vector = vector_columns(widths["n_cols"], settings.arithmetic == "float16")
        return Description(None, LaneColumns(4, vector, settings.step_columns))


class WindowsSettings(Settings):
    """Settings of `windows`: sizes of a window, a block and a column tile, and pipeline stages."""

    window_rows: int = setting(32, "rows of a window", 128, step=8, tries=(16, 32, 64))
    block_warps: int = setting(
        8, "warps per block, among which a window's rows are divided", 32, tries=(4, 8, 16)
    )
    stages: int = setting(
        3, "groups of 32 distinct columns in shared memory", choices=(2, 3, 4, 5, 6)
    )
    column_tile: int = setting(None, "columns of X per block", choices=(32, 64, 128))
    part_columns: int = part_columns_setting(None, 64, 256, 2048)

    def vector(self, n_cols: int) -> int:
        """Return the neighboring columns per lane: 1, 2 or 4, so that a warp covers the tile."""
        columns = min(self.column_tile or n_cols, n_cols)
        return next(v for v in (1, 2, 4) if v == 4 or WARP_SIZE * v >= columns)


class Windows(WindowStrategy):
    """SpMM on CUDA cores: a block copies each distinct column's row of X into shared memory once.

    Every nonzero of the window reads its row of X there, in float32. Compared with `window_tiles`,
    it shows the effect of shared columns without tensor cores.
    """

    operation = SPMM
    name = "windows"
    summary = "windows of rows whose distinct columns are copied once into shared memory, float32"
    metadata_owner = "block"
    Settings = WindowsSettings

    def build(self, graph: Graph, widths: Widths, settings: WindowsSettings) -> Plan:
        """Find the shared columns and assign each window, or part of one, to a block.

        Raises
        ------
        PartitionError
            If `block_warps` does not divide the rows, or there are 2^32 nonzeros or more.
        """
        n_cols, stages = widths["n_cols"], settings.stages
        rows, warps = settings.window_rows, settings.block_warps
        if rows % warps or rows // warps > MOST_WARP_ROWS:
            problem, expected = f"{warps} warps for {rows} rows", f"at most {MOST_WARP_ROWS} a warp"
            raise PartitionError("block_warps", problem, f"a divisor, {expected}")
        vector = settings.vector(n_cols)
        tile = WARP_SIZE * vector
        copied = next(v for v in (4, 2, 1) if v <= vector and n_cols % v == 0)
        return self._window_plan(
            *(graph, widths, settings.filled(column_tile=tile)),
            {"rows": rows, "warps": warps, "vector": vector, "copied": copied, "stages": stages},
            grid_y=-(-n_cols // tile),
            staged=stages * WORD_COLUMNS * tile * 4,
        )

    def describe(self, settings: WindowsSettings, rows: RowDegrees, widths: Widths) -> Description:
        """Describe the loads: the lanes of a warp cover a column tile."""
        vector = settings.vector(widths["n_cols"])
        return Description(None, LaneColumns(WARP_SIZE, vector, WARP_SIZE * vector))
