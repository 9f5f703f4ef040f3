"""The readable SDDMM: a warp a row."""

from __future__ import annotations

from functools import partial

import numpy as np

from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.partition.row_split import RowSplit, row_workload
from accelviz.plans.description import Description, LaneColumns
from accelviz.plans.launch import WARP_SIZE, Call, KernelSpec, LaunchConfig
from accelviz.plans.plan import Buffers, Layout, Plan, Provenance, Widths
from accelviz.strategies.blocks import BlockWarps, RowStrategy, csr_arrays
from accelviz.strategies.sddmm.operation import SDDMM


class RowWarp(RowStrategy):
    """A warp has a row: its lanes walk the columns of one nonzero after the other.

    Correct and simple, and slow: a hub is one warp's, and only one row of V is on its way. It takes
    `block_warps` (warps of a block, 1 to 32).
    """

    operation = SDDMM
    name = "row_warp"
    summary = "a warp a row, one nonzero after the other, sums by shuffles"

    def build(self, graph: Graph, widths: Widths, settings: BlockWarps) -> Plan:
        """Deal out the rows."""
        block_warps = settings.block_warps
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
        sizes = {"n_rows": np.int32(graph.n_rows), "heads": np.int32(widths["heads"])}
        return Plan(
            Layout(graph.pattern, partial(row_workload, graph.row_pointers, 1, block_warps)),
            (Call(launch, kernel),),
            Buffers({**csr_arrays(graph, widths["n_cols"]), **sizes}, zero_outputs=()),
            Provenance(self, graph.values, widths, settings),
        )

    def describe(self, settings: BlockWarps, rows: RowDegrees, widths: Widths) -> Description:
        """Spread the lanes over the columns of a head."""
        lanes = LaneColumns(WARP_SIZE, 1, widths["n_cols"])
        return Description(RowSplit(1, settings.block_warps), lanes)
