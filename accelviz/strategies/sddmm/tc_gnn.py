"""TC-GNN's edge features: scores in tiles of condensed windows, computed by tensor cores."""

from __future__ import annotations

import numpy as np

from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.plans.fragments import TF32_CAPABILITY
from accelviz.plans.launch import Call, KernelSpec, LaunchConfig
from accelviz.plans.plan import Buffers, Plan, Provenance, Widths
from accelviz.plans.settings import Settings, setting
from accelviz.strategies.sddmm.operation import SDDMM
from accelviz.strategies.tc_gnn import (
    WINDOW_ROWS,
    TcGnnStrategy,
    translated,
    window_layout,
    window_warps,
)

#: Columns of a tile of scores.
TILE_COLUMNS = 16
#: Warps of a block whose tiles fit in shared memory.
MOST_WARPS = 8
#: Most columns of U and V that a warp fetches at a time. The published kernel fetches 8.
MOST_STEP = 32


class TcGnnSettings(Settings):
    """Warps of a block, and the columns that one multiplies at a time."""

    block_warps: int = setting(None, "warps of a block", MOST_WARPS, tries=(1, 2, 4, 8))
    step: int = setting(
        None,
        "columns that a warp multiplies at a time; more: fewer turns, more registers",
        choices=(8, 16, 32),
        tries=(8, 16, 32),
    )


class TcGnn(TcGnnStrategy):
    """A block has a window of 16 rows, its warps take turns with tiles of 16 condensed columns.

    Chapter 5 of the thesis, Algorithms 4 and 6. Products are TF32's, inputs rounded: scores are off
    by up to a thousandth of the sum of their terms' magnitudes. It takes `block_warps` (warps of a
    block, 1 to 8), which the paper's rule chooses if None, and `step` (columns fetched at a time: 8
    as in the paper's kernel, 16 or 32), as many as there are if None.
    """

    operation = SDDMM
    summary = "tensor cores (TF32): tiles of 16 x 16 scores, of which the nonzeros are kept"
    Settings = TcGnnSettings

    def build(self, graph: Graph, widths: Widths, settings: TcGnnSettings) -> Plan:
        """Translate the graph; give each window a block.

        Raises
        ------
        PartitionError
            If a window has 2^31 nonzeros or more.
        """
        n_cols, heads, warps = widths["n_cols"], widths["heads"], settings.block_warps
        translation, seconds = translated(graph, TILE_COLUMNS)
        kernel = KernelSpec(
            file="tensor_cores/tc_gnn_sddmm.cu",
            entry="tc_gnn_sddmm",
            config={
                "warps": warps,
                "step": settings.step,
                "tile_rows": WINDOW_ROWS,
                "tile_columns": TILE_COLUMNS,
            },
            arguments=(*translation.arrays, "U", "V", "scores", "n_rows", "heads", "n_cols"),
            capability=TF32_CAPABILITY,
        )
        windows = -(-graph.n_rows // WINDOW_ROWS)
        arrays = {
            **translation.arrays,
            "n_rows": np.int32(graph.n_rows),
            "heads": np.int32(heads),
            "n_cols": np.int32(n_cols),
        }
        return Plan(
            window_layout(graph, translation),
            (Call(LaunchConfig((windows, heads, 1), warps), kernel),),
            Buffers(arrays, zero_outputs=(), arithmetic="tf32"),
            Provenance(self, graph.values, widths, settings, seconds),
        )

    def resolve(
        self, settings: TcGnnSettings, graph: Graph | RowDegrees, widths: Widths
    ) -> TcGnnSettings:
        """Ask the paper's rule for the warps; take as many columns at a time as there are."""
        columns = min(widths["n_cols"], MOST_STEP)
        fitting = next(step for step in (8, 16, MOST_STEP) if step >= columns)
        return settings.filled(block_warps=window_warps(graph, MOST_WARPS), step=fitting)
