"""TC-GNN's edge features: scores in tiles of condensed windows, computed by tensor cores."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

import numpy as np

from accelviz.graph import Graph
from accelviz.partition.row_split import row_workload
from accelviz.plans import Call, KernelSpec, LaunchConfig, Parameter, Plan
from accelviz.strategies.sddmm.operation import SDDMM
from accelviz.tensor_cores.fragments import TF32_CAPABILITY
from accelviz.tensor_cores.tc_gnn import WINDOW_ROWS, TcGnnStrategy, translated, window_warps

#: Columns of a tile of scores.
TILE_COLUMNS = 16
#: Warps of a block whose tiles fit in shared memory.
MOST_WARPS = 8
#: Most columns of U and V that a warp fetches at a time. The published kernel fetches 8.
MOST_STEP = 32


class TcGnn(TcGnnStrategy):
    """A block has a window of 16 rows, its warps take turns with tiles of 16 condensed columns.

    Chapter 5 of the thesis, Algorithms 4 and 6. Products are TF32's, inputs rounded: scores are off
    by up to a thousandth of the sum of their terms' magnitudes. It takes `block_warps` (warps of a
    block, 1 to 8), which the paper's rule chooses if None, and `step` (columns fetched at a time: 8
    as in the paper's kernel, 16 or 32), as many as there are if None.
    """

    operation = SDDMM
    summary = "tensor cores (TF32): tiles of 16 x 16 scores, of which the nonzeros are kept"
    parameters: ClassVar = {
        "block_warps": Parameter(None, "warps of a block", MOST_WARPS, tries=(1, 2, 4, 8)),
        "step": Parameter(
            None,
            "columns that a warp multiplies at a time; more: fewer turns, more registers",
            choices=(8, 16, 32),
            tries=(8, 16, 32),
        ),
    }

    def build(
        self, graph: Graph, n_cols: int, *, heads: int, block_warps: int | None, step: int | None
    ) -> Plan:
        """Translate the graph; give each window a block.

        Raises
        ------
        PartitionError
            If a window has 2^31 nonzeros or more.
        """
        settled = self.settle(graph, n_cols, block_warps=block_warps, step=step)
        warps, step = settled["block_warps"], settled["step"]
        found, seconds = translated(graph, TILE_COLUMNS)
        kernel = KernelSpec(
            file="tensor_cores/tc_gnn_sddmm.cu",
            entry="tc_gnn_sddmm",
            config={
                "warps": warps,
                "step": step,
                "tile_rows": WINDOW_ROWS,
                "tile_columns": TILE_COLUMNS,
            },
            arguments=(*found.arrays, "U", "V", "scores", "n_rows", "heads", "n_cols"),
            capability=TF32_CAPABILITY,
        )
        windows = -(-graph.n_rows // WINDOW_ROWS)
        return Plan(
            graph.pattern,
            (Call(LaunchConfig((windows, heads, 1), warps), kernel),),
            partial(row_workload, graph.row_pointers, WINDOW_ROWS, 1),
            arrays={
                **found.arrays,
                "n_rows": np.int32(graph.n_rows),
                "heads": np.int32(heads),
                "n_cols": np.int32(n_cols),
            },
            clears=(),
            workers_per_block=1,  # which warp has a nonzero, its tile says
            arithmetic="tf32",
            make_tiles=partial(getattr, found, "tiles"),
            setup_seconds=seconds,
            parameters=settled,
        )

    def settle(
        self, graph: Graph, n_cols: int, *, block_warps: int | None, step: int | None, **_: object
    ) -> dict[str, int]:
        """Ask the paper's rule for the warps; take as many columns at a time as there are."""
        fitting = next(n for n in (8, 16, MOST_STEP) if n >= min(n_cols, MOST_STEP))
        return {
            "block_warps": block_warps or window_warps(graph, MOST_WARPS),
            "step": step or fitting,
        }
