"""What strategies of an SpMM share that walk the graph as it is, in the caller's order."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.partition.row_split import RowSplit, row_workload
from accelviz.plans.description import Description, LaneColumns
from accelviz.plans.launch import WARP_SIZE, Call, KernelSpec, LaunchConfig
from accelviz.plans.plan import Buffers, Layout, Plan, Provenance, Widths
from accelviz.strategies import blocks
from accelviz.strategies.blocks import block_warps_of, csr_arrays
from accelviz.strategies.spmm.operation import SPMM


class BlockWarps(blocks.BlockWarps):
    """`block_warps` (warps of a block, 1 to 32)."""

    block_warps: int = block_warps_of(8, 16, 32)


class RowStrategy(blocks.RowStrategy):
    """The row split of an SpMM; a class says which columns a warp has."""

    operation = SPMM
    Settings = BlockWarps

    def columns(self, n_cols: int) -> tuple[int, Mapping[str, int]]:
        """Return the tiles of columns and the kernel's constants besides `BLOCK_WARPS`."""
        return 1, {}

    def build(self, graph: Graph, widths: Widths, settings: blocks.BlockWarps) -> Plan:
        """Deal out the rows."""
        tiles, config = self.columns(widths["n_cols"])
        block_warps = settings.block_warps
        n_blocks = -(-graph.n_rows // (self.rows_per_warp * block_warps))
        kernel = KernelSpec(
            file=f"spmm/{self.name}.cu",
            entry=self.name,
            config={"block_warps": block_warps, **config},
            arguments=("row_pointers", "columns", "values", "X", "Y", "n_rows", "n_cols"),
        )
        workload = partial(row_workload, graph.row_pointers, self.rows_per_warp, block_warps)
        arrays = {**csr_arrays(graph, widths["n_cols"]), "n_rows": np.int32(graph.n_rows)}
        return Plan(
            Layout(graph.pattern, workload),
            (Call(LaunchConfig((n_blocks, tiles, 1), block_warps), kernel),),
            Buffers(arrays, zero_outputs=()),
            Provenance(self, graph.values, widths, settings),
        )

    def describe(
        self, settings: blocks.BlockWarps, rows: RowDegrees, widths: Widths
    ) -> Description:
        """Spread a warp over a tile's columns, or give a lane all of them if it has a row."""
        scheme = RowSplit(self.rows_per_warp, settings.block_warps)
        if self.rows_per_warp == WARP_SIZE:
            return Description(scheme, LaneColumns(1, 1, widths["n_cols"]))
        _, config = self.columns(widths["n_cols"])
        tile = WARP_SIZE * config.get("lane_columns", 1)
        return Description(scheme, LaneColumns(WARP_SIZE, 1, tile))
