"""Our SpMM by windows on CUDA cores: each distinct column of a window is copied once."""

from __future__ import annotations

from functools import partial

import numpy as np

from accelviz.errors import PartitionError
from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.partition.shared_columns import (
    WORD_COLUMNS,
    cut_workspace,
    shared_columns,
    window_workload,
)
from accelviz.plans.description import Description, LaneColumns
from accelviz.plans.launch import MOST_BLOCK_WARPS, WARP_SIZE, Call, KernelSpec, LaunchConfig
from accelviz.plans.plan import Buffers, Layout, Plan, Provenance, Widths
from accelviz.plans.settings import Settings, setting
from accelviz.strategies.spmm.operation import SPMM
from accelviz.strategies.windows import WindowStrategy, part_columns_of

#: Rows of a warp, whose sums are in registers.
MOST_WARP_ROWS = 16


class WindowsSettings(Settings):
    """How a window is dealt out, and how much of it is on chip."""

    window_rows: int = setting(32, "rows of a window", 128, step=8, tries=(16, 32, 64))
    block_warps: int = setting(8, "warps of a block", MOST_BLOCK_WARPS, tries=(4, 8, 16))
    stages: int = setting(3, "words of columns in shared memory", choices=(2, 3, 4, 5, 6))
    slab: int = setting(None, "columns of X of a block", choices=(32, 64, 128))
    part_columns: int = part_columns_of()

    def vector(self, n_cols: int) -> int:
        """Return the neighboring columns of a lane: 1, 2 or 4, as many as the columns fill."""
        columns = min(self.slab or n_cols, n_cols)
        return next(v for v in (1, 2, 4) if v == 4 or WARP_SIZE * v >= columns)


class Windows(WindowStrategy):
    """A block has a window of rows; each distinct column is copied into shared memory once.

    What sharing brings without tensor cores: float32, every nonzero reads its row of X from there.
    It takes `window_rows` (a multiple of 8 up to 128), `block_warps`, a divisor of it that
    leaves a warp 16 rows or fewer, `stages` (words of 32 columns in shared memory at once, 2 to 6),
    the columns of X of a block, `slab` (32, 64 or 128; None for all up to 128), and `part_columns`
    (most distinct columns of a block, a multiple of 32).
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
        window_rows, block_warps = settings.window_rows, settings.block_warps
        if window_rows % block_warps or window_rows // block_warps > MOST_WARP_ROWS:
            problem = f"{block_warps} warps for {window_rows} rows"
            raise PartitionError(
                "block_warps", problem, f"a divisor, at most {MOST_WARP_ROWS} a warp"
            )
        shared, seconds = shared_columns(graph, window_rows, settings.part_columns)
        vector = settings.vector(n_cols)
        tiles = -(-n_cols // (WARP_SIZE * vector))
        kernel = KernelSpec(
            file="tensor_cores/windows_spmm.cu",
            entry="windows_spmm",
            config={
                "rows": window_rows,
                "warps": block_warps,
                "vector": vector,
                "copied": next(v for v in (4, 2, 1) if v <= vector and n_cols % v == 0),
                "stages": stages,
            },
            arguments=(
                *(*shared.arrays, "values", "X", "Y", "cut_sums", "arrivals"),
                *("n_rows", "n_cols"),
            ),
        )
        staged = stages * WORD_COLUMNS * WARP_SIZE * vector * 4
        launch = LaunchConfig((len(shared.metadata), tiles, 1), block_warps, staged)
        warp_rows = window_rows // block_warps
        sizes = {"n_rows": np.int32(graph.n_rows), "n_cols": np.int32(n_cols)}
        effective = settings.filled(slab=WARP_SIZE * vector, part_columns=shared.part_columns)
        return Plan(
            Layout(
                graph.pattern,
                partial(window_workload, graph.row_pointers, shared, warp_rows, 1),
                metadata=shared.metadata,
            ),
            (Call(launch, kernel),),
            Buffers(
                {**shared.arrays, **sizes}, cut_workspace(shared, n_cols, tiles), zero_outputs=()
            ),
            Provenance(self, graph.values, widths, effective, seconds),
        )

    def describe(self, settings: WindowsSettings, rows: RowDegrees, widths: Widths) -> Description:
        """Spread a warp over the columns of a slab."""
        vector = settings.vector(widths["n_cols"])
        return Description(None, LaneColumns(WARP_SIZE, vector, WARP_SIZE * vector))
