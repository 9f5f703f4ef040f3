"""Our SpMM on tensor cores: windows of 8 or 16 rows share the rows of X."""

from __future__ import annotations

from functools import partial

import numpy as np

from accelviz.errors import PartitionError
from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.partition.shared_columns import (
    cut_workspace,
    shared_columns,
    shared_tiles,
    window_workload,
)
from accelviz.plans.arithmetic import TERMS
from accelviz.plans.description import Description, LaneColumns
from accelviz.plans.fragments import TF32_CAPABILITY
from accelviz.plans.launch import MOST_BLOCK_WARPS, WARP_SIZE, Call, KernelSpec, LaunchConfig
from accelviz.plans.plan import Buffers, Layout, Plan, Provenance, Widths
from accelviz.plans.settings import Settings, setting
from accelviz.strategies.spmm.operation import SPMM
from accelviz.strategies.windows import WindowStrategy, part_columns_of, widest

#: Rows of a group: the columns of a product of fragments. Distinct columns of a step.
GROUP_ROWS, STEP_COLUMNS = 8, 8
#: Bytes between the rows of a stage, so that lanes read from different banks.
STAGE_PAD = 32


class WindowTilesSettings(Settings):
    """What the kernel is compiled with, and how many columns a part has."""

    arithmetic: str = setting("3xtf32", "what products are worked out in", choices=tuple(TERMS))
    window_rows: int = setting(8, "rows of a window", choices=(8, 16, 32), tries=(8, 16))
    slab: int = setting(64, "columns of X of a warp", choices=(32, 64, 128), tries=(32, 64))
    block_warps: int = setting(4, "warps of a block", MOST_BLOCK_WARPS, tries=(1, 4, 8))
    ahead: int = setting(2, "steps on their way", choices=(1, 2, 4), tries=(1, 2, 4))
    blocks_per_sm: int = setting(1, "blocks that an SM has room for", 32, tries=(1, 4, 5))
    part_columns: int = part_columns_of()

    @property
    def halves(self) -> bool:
        """Whether X is kept in 16 bits."""
        return self.arithmetic == "float16"

    def tile(self, n_cols: int) -> int:
        """Return the columns of a warp where there are no more than `n_cols`."""
        least = load_columns(self.halves)
        return min(max(self.slab, least), -(-n_cols // least) * least)


class WindowTiles(WindowStrategy):
    """A warp has a window of 8 rows or more; each of its distinct columns is loaded once.

    The product is transposed: 16 columns of X by 8 rows of A, so that rows of X become fragments as
    they come from memory, and a window needs no more than 8 rows. With `arithmetic="3xtf32"` every
    number is the sum of two of TF32, and results are as exact as float32's; "tf32" rounds; with
    "float16", another problem, features are stored in 16 bits and weights rounded to them. Further
    it takes `window_rows` (8, 16 or 32), the columns of X of a warp, `slab` (32, 64 or 128),
    `block_warps` (warps of a block, 1 to 32), `ahead` (steps of 8 distinct columns whose loads are
    on their way: 1, 2 or 4), `blocks_per_sm` (blocks that an SM should have room for) and
    `part_columns` (most distinct columns of a warp, a multiple of 32).
    """

    operation = SPMM
    name = "window_tiles"
    summary = "our own on tensor cores: windows of 8 rows share rows of X, exact by three products"
    metadata_owner = "warp"
    Settings = WindowTilesSettings

    def build(self, graph: Graph, widths: Widths, settings: WindowTilesSettings) -> Plan:
        """Translate the graph; give each window, or part of one, a warp.

        Raises
        ------
        PartitionError
            If there are 2^32 nonzeros or more, or `ahead` is 1 with "float16".
        """
        n_cols, halves, ahead = widths["n_cols"], settings.halves, settings.ahead
        window_rows, block_warps = settings.window_rows, settings.block_warps
        if halves and ahead == 1:
            problem = "1 step with 'float16', whose instruction has two"
            raise PartitionError("ahead", problem, "2 or 4")
        shared, seconds = shared_columns(graph, window_rows, settings.part_columns)
        tile = settings.tile(n_cols)
        kernel = KernelSpec(
            file="tensor_cores/window_tiles_spmm.cu",
            entry="window_tiles_spmm",
            config={
                "groups": window_rows // GROUP_ROWS,
                "warps": block_warps,
                "quads": tile // load_columns(halves),
                "vector": widest(n_cols, halves),
                "whole": int(n_cols % tile == 0),
                "ahead": ahead,
                "terms": TERMS[settings.arithmetic],
                "features": int(halves),
                "blocks_per_sm": settings.blocks_per_sm,
            },
            arguments=(
                *(*shared.arrays, "values", "X", "Y", "cut_sums", "arrivals"),
                *("n_blocks", "n_rows", "n_cols"),
            ),
            capability=TF32_CAPABILITY,
        )
        blocks, tiles = len(shared.metadata), -(-n_cols // tile)
        row_bytes = tile * (2 if halves else 4) + STAGE_PAD
        staged = block_warps * ahead * GROUP_ROWS * row_bytes
        launch = LaunchConfig((-(-blocks // block_warps), tiles, 1), block_warps, staged)
        arrays = {
            **shared.arrays,
            "n_blocks": np.int32(blocks),
            "n_rows": np.int32(graph.n_rows),
            "n_cols": np.int32(n_cols),
        }
        return Plan(
            Layout(
                graph.pattern,
                partial(window_workload, graph.row_pointers, shared, window_rows, block_warps),
                metadata=shared.metadata,
                make_tiles=partial(shared_tiles, graph.pattern, shared, STEP_COLUMNS, block_warps),
            ),
            (Call(launch, kernel),),
            Buffers(
                arrays,
                cut_workspace(shared, n_cols, tiles),
                zero_outputs=(),
                storage="float16" if halves else "float32",
                arithmetic=settings.arithmetic,
            ),
            Provenance(
                self,
                graph.values,
                widths,
                settings.filled(part_columns=shared.part_columns),
                seconds,
            ),
        )

    def describe(
        self, settings: WindowTilesSettings, rows: RowDegrees, widths: Widths
    ) -> Description:
        """Fetch 16 bytes of a row by each of the lanes that have this row."""
        tile, vector = settings.tile(widths["n_cols"]), widest(widths["n_cols"], settings.halves)
        return Description(None, LaneColumns(min(tile // vector, WARP_SIZE), vector, tile))


def load_columns(halves: bool) -> int:
    """Return the columns that eight lanes have side by side, 16 bytes each."""
    return 64 if halves else 32
