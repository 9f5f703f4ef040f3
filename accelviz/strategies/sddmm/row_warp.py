"""The readable SDDMM: a warp a row."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

import numpy as np

from accelviz.graph import Graph
from accelviz.partition.row_split import row_workload
from accelviz.plans import Call, KernelSpec, LaunchConfig, Plan, Reading
from accelviz.plans.launch import WARP_SIZE
from accelviz.strategies.blocks import RowSplit, block_warps_of, csr_arrays
from accelviz.strategies.sddmm.operation import SDDMM


class RowWarp(RowSplit):
    """A warp has a row: its lanes walk the columns of one nonzero after the other.

    Correct and simple, and slow: a hub is one warp's, and only one row of V is on its way. It takes
    `block_warps` (warps of a block, 1 to 32).
    """

    operation = SDDMM
    name = "row_warp"
    summary = "a warp a row, one nonzero after the other, sums by shuffles"
    parameters: ClassVar = {"block_warps": block_warps_of(4, 16)}

    def build(self, graph: Graph, n_cols: int, *, heads: int, block_warps: int) -> Plan:
        """Deal out the rows."""
        kernel = KernelSpec(
            file="sddmm/row_warp.cu",
            entry="row_warp",
            config={"block_warps": block_warps},
            arguments=(
                *("row_pointers", "columns", "U", "V", "scores"),
                *("n_rows", "heads", "n_cols"),
            ),
        )
        launch = LaunchConfig((-(-graph.n_rows // block_warps), 1, 1), block_warps)
        return Plan(
            graph.pattern,
            (Call(launch, kernel),),
            partial(row_workload, graph.row_pointers, 1, block_warps),
            arrays={
                **csr_arrays(graph, n_cols),
                "n_rows": np.int32(graph.n_rows),
                "heads": np.int32(heads),
            },
            clears=(),
        )

    def reading(self, graph: Graph, n_cols: int, *, heads: int, block_warps: int) -> Reading:
        """Spread the lanes over the columns of a head."""
        return Reading(WARP_SIZE, 1, n_cols)
