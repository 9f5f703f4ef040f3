"""Ours by windows of rows that share columns: on tensor cores, and on CUDA cores."""

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
from accelviz.plans.arithmetic import TERMS
from accelviz.plans.fragments import TF32_CAPABILITY
from accelviz.plans.launch import MOST_BLOCK_WARPS, WARP_SIZE, Call, KernelSpec, LaunchConfig
from accelviz.plans.plan import Buffers, Layout, Plan, Provenance
from accelviz.strategies.blocks import size_arguments
from accelviz.strategies.sddmm.operation import SDDMM, check_heads
from accelviz.strategies.spmm.operation import SPMM

#: Rows of a group: the columns of a product of fragments.
GROUP_ROWS = 8
#: Distinct columns of a step of SpMM, and of a product of SDDMM.
STEP_COLUMNS, SDDMM_COLUMNS = 8, 16
#: Bytes between the rows of a stage, so that lanes read from different banks.
STAGE_PAD = 32
#: Rows of a warp on CUDA cores, whose sums are in registers.
MOST_WARP_ROWS = 16


def part_columns_of(default: int | None, meaning: str, *tries: int) -> Any:
    """Declare the setting `part_columns`; windows of more columns are split."""
    return setting(
        default, f"most distinct columns of a {meaning}", 1 << 20, WORD_COLUMNS, (), tries
    )


class WindowStrategy(Strategy):
    """Blocks depend on the columns that rows share, so that only a plan tells what they are."""

    metadata_words = ("window", "first word", "columns", "parts | part")

    def describe(self, settings: Any, rows: RowDegrees, widths: Widths) -> Description:
        """Leave the blocks to the workload."""
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
        """Give each window, or part of one, a block of warps that share its rows.

        With `tile_columns`, each has a warp, and tensor cores multiply tiles of so many columns.
        """
        windows, seconds = shared_columns(graph, settings.window_rows, settings.part_columns)
        blocks, warps = len(windows.metadata), settings.block_warps
        warp_rows, block_records, arithmetic = settings.window_rows // warps, 1, "float32"
        if tile_columns:
            warp_rows, block_records = settings.window_rows, warps
            arithmetic = settings.arithmetic
        sizes = size_arguments(graph, widths)
        sizes.pop("heads", None)
        if tile_columns:
            sizes = {"n_blocks": np.int32(blocks), **sizes}
        parts = {}
        if self.operation is SPMM:
            parts = cut_workspace(windows, widths["n_cols"], grid_y)
        entry = f"{self.name}_{self.operation.name}"
        arguments = (*windows.arrays, *self.operation.operands, *parts, *sizes)
        capability = TF32_CAPABILITY if tile_columns else 0
        kernel = KernelSpec(
            f"tensor_cores/{entry}.cu", entry, config, arguments, capability=capability
        )
        tiles = partial(shared_tiles, graph.pattern, windows, tile_columns, block_records)
        return Plan(
            Layout(
                graph.pattern,
                partial(window_workload, graph.row_pointers, windows, warp_rows, block_records),
                metadata=windows.metadata,
                make_tiles=tiles if tile_columns else None,
            ),
            (Call(LaunchConfig((-(-blocks // block_records), grid_y, 1), warps, staged), kernel),),
            Buffers(
                {**windows.arrays, **sizes},
                parts,
                zero_outputs=(),
                storage="float16" if arithmetic == "float16" else "float32",
                arithmetic=arithmetic,
            ),
            Provenance(
                self,
                graph.values,
                widths,
                settings.filled(part_columns=windows.part_columns),
                seconds,
            ),
        )


class TileSettings(Settings):
    """What the kernels on tensor cores are compiled with."""

    arithmetic: str = setting("3xtf32", "what products are worked out in", choices=tuple(TERMS))
    window_rows: int = setting(8, "rows of a window", choices=(8, 16, 32), tries=(8, 16))
    column_tile: int = setting(64, "columns of X of a warp", choices=(32, 64, 128), tries=(32, 64))
    block_warps: int = setting(4, "warps of a block", MOST_BLOCK_WARPS, tries=(1, 4, 8))
    ahead: int = setting(
        2, "steps of 8 distinct columns on their way", choices=(1, 2, 4), tries=(1, 2, 4)
    )
    blocks_per_sm: int = setting(1, "blocks that an SM has room for", 32, tries=(1, 4, 5))
    part_columns: int = part_columns_of(None, "part", 64, 256, 2048)

    @property
    def halves(self) -> bool:
        """Whether X is kept in 16 bits."""
        return self.arithmetic == "float16"

    def tile(self, n_cols: int) -> int:
        """Return the columns of a warp where there are no more than `n_cols`."""
        least = load_columns(self.halves)
        return min(max(self.column_tile, least), -(-n_cols // least) * least)


class WindowTiles(WindowStrategy):
    """A warp has a window of 8 rows or more; each of its distinct columns is loaded once.

    The product is transposed: 16 columns of X by 8 rows of A, so that rows of X become fragments as
    they come from memory, and a window needs no more than 8 rows. With `arithmetic="3xtf32"` every
    number is the sum of two of TF32, and results are as exact as float32's; "tf32" rounds; with
    "float16", another problem, features are stored in 16 bits and weights rounded to them.
    """

    operation = SPMM
    name = "window_tiles"
    summary = "our own on tensor cores: windows of 8 rows share rows of X, exact by three products"
    metadata_owner = "warp"
    Settings = TileSettings

    def build(self, graph: Graph, widths: Widths, settings: TileSettings) -> Plan:
        """Translate the graph; give each window, or part of one, a warp.

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
            "vector": widest(n_cols, halves),
            "whole": int(n_cols % tile == 0),
            "ahead": ahead,
            "terms": TERMS[settings.arithmetic],
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
        """Fetch 16 bytes of a row by each of the lanes that have this row."""
        tile, vector = settings.tile(widths["n_cols"]), widest(widths["n_cols"], settings.halves)
        return Description(None, LaneColumns(min(tile // vector, WARP_SIZE), vector, tile))


def load_columns(halves: bool) -> int:
    """Return the columns that eight lanes have side by side, 16 bytes each."""
    return 64 if halves else 32


def widest(n_cols: int, halves: bool) -> int:
    """Return the columns that a copy of at most 16 bytes moves, a divisor of all."""
    return next(v for v in (8, 4, 2, 1) if n_cols % v == 0 and v <= (8 if halves else 4))


class ScoreSettings(Settings):
    """What the kernel is compiled with, and how many columns a part has."""

    arithmetic: str = setting("3xtf32", "what products are worked out in", choices=tuple(TERMS))
    window_rows: int = setting(8, "rows of a window", choices=(8, 16, 32), tries=(8, 16, 32))
    block_warps: int = setting(4, "warps of a block", MOST_BLOCK_WARPS, tries=(1, 4, 8))
    at_once: int = setting(2, "steps on their way together", choices=(1, 2, 4), tries=(1, 2, 4))
    # Parts of a window need not meet: small ones keep a block's warps busy to its end.
    part_columns: int = part_columns_of(512, "warp", 64, 512)

    @property
    def step_columns(self) -> int:
        """Columns of U and V that one step of a warp multiplies, 16 bytes a lane."""
        return 32 if self.arithmetic == "float16" else 16


class ScoreTiles(WindowStrategy):
    """A warp has a window; 32 of its distinct columns by 8 of its rows are two products.

    Of each tile of 16 x 8 dot products those at nonzeros are written. With `arithmetic="3xtf32"`
    every number is the sum of two of TF32 and results are as exact as float32's; "tf32" rounds;
    with "float16", another problem, U and V are stored in 16 bits.
    """

    operation = SDDMM
    name = "window_tiles"
    summary = "our own on tensor cores: windows of rows share rows of V, exact by three products"
    metadata_owner = "warp"
    Settings = ScoreSettings

    def build(self, graph: Graph, widths: Widths, settings: ScoreSettings) -> Plan:
        """Translate the graph; give each window, or part of one, a warp.

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
            "vector": widest(n_cols, halves),
            "at_once": settings.at_once,
            "whole": int(n_cols % (settings.step_columns * settings.at_once) == 0),
            "terms": TERMS[settings.arithmetic],
            "features": int(halves),
        }
        walk = graph, widths, settings, config
        return self._window_plan(*walk, grid_y=heads, tile_columns=SDDMM_COLUMNS)

    def describe(self, settings: ScoreSettings, rows: RowDegrees, widths: Widths) -> Description:
        """Fetch a step's columns of a row by 4 lanes, 16 bytes each."""
        vector = widest(widths["n_cols"], settings.arithmetic == "float16")
        return Description(None, LaneColumns(4, vector, settings.step_columns))


class WindowsSettings(Settings):
    """How a window is dealt out, and how much of it is on chip."""

    window_rows: int = setting(32, "rows of a window", 128, step=8, tries=(16, 32, 64))
    block_warps: int = setting(
        8, "warps of a block, which divide its rows", MOST_BLOCK_WARPS, tries=(4, 8, 16)
    )
    stages: int = setting(3, "words of columns in shared memory", choices=(2, 3, 4, 5, 6))
    column_tile: int = setting(None, "columns of X of a block", choices=(32, 64, 128))
    part_columns: int = part_columns_of(None, "part", 64, 256, 2048)

    def vector(self, n_cols: int) -> int:
        """Return the neighboring columns of a lane: 1, 2 or 4, as many as the columns fill."""
        columns = min(self.column_tile or n_cols, n_cols)
        return next(v for v in (1, 2, 4) if v == 4 or WARP_SIZE * v >= columns)


class Windows(WindowStrategy):
    """A block has a window of rows; each distinct column is copied into shared memory once.

    What sharing brings without tensor cores: float32, every nonzero reads its row of X from there.
    """

    operation = SPMM
    name = "windows"
    summary = "windows of rows whose distinct columns are copied once into shared memory, float32"
    metadata_owner = "block"
    Settings = WindowsSettings

    def build(self, graph: Graph, widths: Widths, settings: WindowsSettings) -> Plan:
        """Translate the graph; give each window, or part of one, a block.

        Raises
        ------
        PartitionError
            If the rows are not dealt out evenly, or there are 2^32 nonzeros or more.
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
        """Spread a warp over the columns of a tile."""
        vector = settings.vector(widths["n_cols"])
        return Description(None, LaneColumns(WARP_SIZE, vector, WARP_SIZE * vector))
