"""What strategies of an SpMM share that walk the graph as it is, in the caller's order."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import ClassVar

import numpy as np

from accelviz.graph import Graph
from accelviz.partition.row_split import row_workload
from accelviz.plans import Call, KernelSpec, LaunchConfig, Plan, Reading
from accelviz.plans.launch import WARP_SIZE
from accelviz.strategies.blocks import RowSplit, block_warps_of, csr_arrays
from accelviz.strategies.spmm.operation import SPMM


class RowStrategy(RowSplit):
    """The row split of an SpMM; a class says which columns a warp has."""

    operation = SPMM
    parameters: ClassVar = {"block_warps": block_warps_of(8, 16, 32)}

    def columns(self, n_cols: int) -> tuple[int, Mapping[str, int]]:
        """Return the tiles of columns and the kernel's constants besides `BLOCK_WARPS`."""
        return 1, {}

    def build(self, graph: Graph, n_cols: int, *, block_warps: int) -> Plan:
        """Deal out the rows."""
        tiles, config = self.columns(n_cols)
        blocks = -(-graph.n_rows // (self.rows_per_warp * block_warps))
        kernel = KernelSpec(
            file=f"spmm/{self.name}.cu",
            entry=self.name,
            config={"block_warps": block_warps, **config},
            arguments=("row_pointers", "columns", "values", "X", "Y", "n_rows", "n_cols"),
        )
        return Plan(
            graph.pattern,
            (Call(LaunchConfig((blocks, tiles, 1), block_warps), kernel),),
            partial(row_workload, graph.row_pointers, self.rows_per_warp, block_warps),
            arrays={**csr_arrays(graph, n_cols), "n_rows": np.int32(graph.n_rows)},
            clears=(),
        )

    def reading(self, graph: Graph, n_cols: int, *, block_warps: int) -> Reading:
        """Spread a warp over a tile's columns, or give a lane all of them if it has a row."""
        if self.rows_per_warp == WARP_SIZE:
            return Reading(1, 1, n_cols)
        _, config = self.columns(n_cols)
        return Reading(WARP_SIZE, 1, WARP_SIZE * config.get("lane_columns", 1))
