"""The readable attention, and its gradients: a warp has a head of a row. Those of an SpMM too."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.partition.nonzero_runs import numbers_32
from accelviz.partition.row_split import RowSplit, row_workload
from accelviz.plans.description import Description, LaneColumns
from accelviz.plans.launch import WARP_SIZE, Call, KernelSpec, LaunchConfig
from accelviz.plans.operation import Operation
from accelviz.plans.plan import Buffers, Layout, Plan, Provenance, Widths
from accelviz.strategies.attention import walks
from accelviz.strategies.blocks import BlockWarps, RowStrategy, csr_arrays


class RowWarp(RowStrategy):
    """A warp has a head of a row: its lanes walk the columns of one nonzero after the other.

    Correct and simple, and slow: a hub is one warp's, and only one row is on its way. It takes
    `block_warps` (warps of a block, 1 to 32).
    """

    name = "row_warp"
    summary = "a warp a head of a row, one nonzero after the other"

    def __init__(self, operation: Operation) -> None:
        self.operation = operation

    def build(self, graph: Graph, widths: Widths, settings: BlockWarps) -> Plan:
        """Deal out the rows, of a gradient those of the transposed matrix first.

        Raises
        ------
        PartitionError
            If there are 2^32 nonzeros or more, or a head is too wide.
        """
        n_cols, heads = widths["n_cols"], widths.get("heads", 1)
        block_warps = settings.block_warps
        config = {
            "block_warps": block_warps,
            "vector": 1,
            "head_lanes": WARP_SIZE,
            "lane_vectors": -(-n_cols // WARP_SIZE),
            "whole_lanes": int(n_cols % WARP_SIZE == 0),
            "whole_heads": 1,
        }

        def walk(problem: walks.Problem, over: Graph, order: Any) -> Plan:
            arrays = csr_arrays(over, n_cols) | {"n_rows": np.int32(over.n_rows)}
            if order is not None:
                arrays["order"] = numbers_32(order)
            walked = ("row_pointers", "columns", *(() if order is None else ("order",)))
            arguments = (*problem.arguments(walked, ()), "n_rows", "heads", "n_cols")
            entry = f"{problem.name}<Config>"
            kernel = KernelSpec("attention/row_warp.cu", entry, config, arguments)
            launch = LaunchConfig((-(-over.n_rows // block_warps), heads, 1), block_warps)
            workload = partial(row_workload, over.row_pointers, 1, block_warps)
            plan = Plan(
                Layout(over.pattern, workload, nonzero_order=order),
                (Call(launch, kernel),),
                Buffers({**arrays, "heads": np.int32(heads)}),
                Provenance(self, graph.values, widths, settings),
            )
            return walks.with_totals(plan, problem, over.n_rows, heads, n_cols)

        return walks.plan_of(self.operation, graph, heads, n_cols, walk)

    def describe(self, settings: BlockWarps, rows: RowDegrees, widths: Widths) -> Description:
        """Spread a warp over the columns of one head."""
        one_head = widths.get("heads", 1) == 1
        lanes = LaneColumns(WARP_SIZE, 1, widths["n_cols"]) if one_head else None
        return Description(RowSplit(1, settings.block_warps), lanes)
