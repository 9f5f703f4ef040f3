"""What strategies share that walk the graph as it is, in the caller's order."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np

from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.partition.cut import Cut
from accelviz.partition.row_split import row_workload
from accelviz.plans import Call, KernelSpec, LaunchConfig, Parameter, Plan, Reading, Strategy
from accelviz.plans.launch import MOST_BLOCK_WARPS, WARP_SIZE
from accelviz.strategies.spmm.operation import SPMM

#: Warps of a block, a parameter of many strategies.
BLOCK_WARPS = Parameter(
    8,
    "warps of a block; more: fewer blocks, and more of them wait for the slowest",
    MOST_BLOCK_WARPS,
    tries=(1, 2, 4, 8, 16, 32),
)


class RowStrategy(Strategy):
    """Consecutive rows to consecutive warps: no preprocessing, no metadata.

    Attributes
    ----------
    rows_per_warp : int
    """

    operation = SPMM
    parameters: ClassVar = {"block_warps": BLOCK_WARPS}
    rows_per_warp: ClassVar[int] = 1

    def columns(self, n_cols: int) -> tuple[int, Mapping[str, int]]:
        """Return the tiles of columns and the kernel's constants besides `BLOCK_WARPS`."""
        return 1, {}

    def build(self, graph: Graph, n_cols: int, *, block_warps: int) -> Plan:
        """Deal out the rows."""
        tiles, defines = self.columns(n_cols)
        blocks = -(-graph.n_rows // (self.rows_per_warp * block_warps))
        kernel = KernelSpec(
            file=f"spmm/{self.name}.cu",
            entry=self.name,
            defines={"BLOCK_WARPS": block_warps, **defines},
            arguments=("row_pointers", "columns", "values", "X", "Y", "n_rows", "n_cols"),
        )
        return Plan(
            graph.pattern,
            (Call(LaunchConfig((blocks, tiles, 1), block_warps), kernel),),
            partial(row_workload, graph.row_pointers, self.rows_per_warp, block_warps),
            arrays={**csr_arrays(graph), "n_cols": np.int32(n_cols)},
            clears=(),
        )

    def cut(self, rows: RowDegrees, n_cols: int, *, block_warps: int) -> Cut:
        """Name the row split; every row is one warp's."""
        return Cut("rows", {"each": self.rows_per_warp, "warps": block_warps})

    def reading(self, graph: Graph, n_cols: int, *, block_warps: int) -> Reading:
        """Spread a warp over a tile's columns, or give a lane all of them if it has a row."""
        if self.rows_per_warp == WARP_SIZE:
            return Reading(1, 1, n_cols)
        _, defines = self.columns(n_cols)
        return Reading(WARP_SIZE, 1, WARP_SIZE * defines.get("LANE_COLUMNS", 1))


def csr_arrays(graph: Graph) -> dict[str, Any]:
    """Return the arguments of a kernel that walks CSR in the caller's order."""
    return {
        "row_pointers": graph.row_pointers,
        "columns": graph.column_indices,
        "n_rows": np.int32(graph.n_rows),
    }
