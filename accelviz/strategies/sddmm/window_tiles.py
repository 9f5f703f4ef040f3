"""Our SDDMM on tensor cores: windows of 8 or 16 rows, whose distinct rows of V are read once."""

from __future__ import annotations

from functools import partial

import numpy as np

from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.partition.shared_columns import (
    WORD_COLUMNS,
    shared_columns,
    shared_tiles,
    window_workload,
)
from accelviz.plans.arithmetic import TERMS
from accelviz.plans.description import Description, LaneColumns
from accelviz.plans.fragments import TF32_CAPABILITY
from accelviz.plans.launch import MOST_BLOCK_WARPS, Call, KernelSpec, LaunchConfig
from accelviz.plans.plan import Buffers, Layout, Plan, Provenance, Widths
from accelviz.plans.settings import Settings, setting
from accelviz.strategies.sddmm.operation import SDDMM, check_heads
from accelviz.strategies.windows import WindowStrategy, widest

#: Rows of a group: the columns of a product of fragments. Distinct columns in such a product.
GROUP_ROWS, TILE_COLUMNS = 8, 16


class WindowTilesSettings(Settings):
    """What the kernel is compiled with, and how many columns a part has."""

    arithmetic: str = setting("3xtf32", "what products are worked out in", choices=tuple(TERMS))
    window_rows: int = setting(8, "rows of a window", choices=(8, 16, 32), tries=(8, 16, 32))
    block_warps: int = setting(4, "warps of a block", MOST_BLOCK_WARPS, tries=(1, 4, 8))
    at_once: int = setting(2, "steps on their way together", choices=(1, 2, 4), tries=(1, 2, 4))
    # Parts of a window need not meet: small ones keep a block's warps busy to its end.
    part_columns: int = setting(
        512, "most distinct columns of a warp", 1 << 20, step=WORD_COLUMNS, tries=(64, 512)
    )

    @property
    def halves(self) -> bool:
        """Whether U and V are kept in 16 bits."""
        return self.arithmetic == "float16"


class WindowTiles(WindowStrategy):
    """A warp has a window; 32 of its distinct columns by 8 of its rows are two products.

    Of each tile of 16 x 8 dot products those at nonzeros are written. With `arithmetic="3xtf32"`
    every number is the sum of two of TF32 and results are as exact as float32's; "tf32" rounds;
    with "float16", another problem, U and V are stored in 16 bits. Further it takes `window_rows`
    (8, 16 or 32), `block_warps` (warps of a block, 1 to 32), `at_once` (steps of 16 columns, in
    float16 32, whose loads are on their way together: 1, 2 or 4) and `part_columns` (most distinct
    columns of a warp, a multiple of 32).
    """

    operation = SDDMM
    name = "window_tiles"
    summary = "our own on tensor cores: windows of rows share rows of V, exact by three products"
    metadata_owner = "warp"
    Settings = WindowTilesSettings

    def build(self, graph: Graph, widths: Widths, settings: WindowTilesSettings) -> Plan:
        """Translate the graph; give each window, or part of one, a warp.

        Raises
        ------
        PartitionError
            If there are 2^32 nonzeros or more, or rows times heads do not fit in 31 bits.
        """
        n_cols, heads, halves = widths["n_cols"], widths["heads"], settings.halves
        window_rows, block_warps = settings.window_rows, settings.block_warps
        check_heads(graph, heads)
        shared, seconds = shared_columns(graph, window_rows, settings.part_columns)
        kernel = KernelSpec(
            file="tensor_cores/window_tiles_sddmm.cu",
            entry="window_tiles_sddmm",
            config={
                "groups": window_rows // GROUP_ROWS,
                "warps": block_warps,
                "heads": heads,
                "vector": widest(n_cols, halves),
                "at_once": settings.at_once,
                "whole": int(n_cols % (step_columns(halves) * settings.at_once) == 0),
                "terms": TERMS[settings.arithmetic],
                "features": int(halves),
            },
            arguments=(*shared.arrays, "U", "V", "scores", "n_blocks", "n_rows", "n_cols"),
            capability=TF32_CAPABILITY,
        )
        blocks = len(shared.metadata)
        launch = LaunchConfig((-(-blocks // block_warps), heads, 1), block_warps)
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
                make_tiles=partial(shared_tiles, graph.pattern, shared, TILE_COLUMNS, block_warps),
            ),
            (Call(launch, kernel),),
            Buffers(
                arrays,
                zero_outputs=(),
                storage="float16" if halves else "float32",
                arithmetic=settings.arithmetic,
            ),
            Provenance(self, graph.values, widths, settings, seconds),
        )

    def describe(
        self, settings: WindowTilesSettings, rows: RowDegrees, widths: Widths
    ) -> Description:
        """Fetch a step's columns of a row by 4 lanes, 16 bytes each."""
        vector = widest(widths["n_cols"], settings.halves)
        return Description(None, LaneColumns(4, vector, step_columns(settings.halves)))


def step_columns(halves: bool) -> int:
    """Return the columns of U and V that one step of a warp multiplies, 16 bytes a lane."""
    return 32 if halves else 16
