"""The readable attention, and its gradients: a warp has a head of a row. Those of an SpMM too."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np

from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.partition.cut import Cut
from accelviz.partition.nonzero_runs import numbers_32
from accelviz.partition.row_split import row_workload
from accelviz.plans import Call, KernelSpec, LaunchConfig, Operation, Plan, Reading
from accelviz.plans.launch import WARP_SIZE
from accelviz.strategies.attention import walks
from accelviz.strategies.blocks import RowSplit, block_warps_of, csr_arrays


class RowWarp(RowSplit):
    """A warp has a head of a row: its lanes walk the columns of one nonzero after the other.

    Correct and simple, and slow: a hub is one warp's, and only one row is on its way. It takes
    `block_warps` (warps of a block, 1 to 32).
    """

    name = "row_warp"
    summary = "a warp a head of a row, one nonzero after the other"
    parameters: ClassVar = {"block_warps": block_warps_of(4, 16)}

    def __init__(self, operation: Operation) -> None:
        self.operation = operation

    def build(self, graph: Graph, n_cols: int, *, heads: int = 1, block_warps: int) -> Plan:
        """Deal out the rows, of a gradient those of the transposed matrix first.

        Raises
        ------
        PartitionError
            If there are 2^32 nonzeros or more, or a head is too wide.
        """
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
            kernel = KernelSpec(
                "attention/row_warp.cu", f"{problem.name}<Config>", config, arguments
            )
            launch = LaunchConfig((-(-over.n_rows // block_warps), heads, 1), block_warps)
            plan = Plan(
                over.pattern,
                (Call(launch, kernel),),
                partial(row_workload, over.row_pointers, 1, block_warps),
                nonzero_order=order,
                arrays={**arrays, "heads": np.int32(heads)},
            )
            return walks.with_totals(plan, problem, over.n_rows, heads, n_cols)

        return walks.plan_of(self.operation, graph, heads, n_cols, walk)

    def reading(
        self, graph: Graph, n_cols: int, *, heads: int = 1, block_warps: int
    ) -> Reading | None:
        """Spread a warp over the columns of one head."""
        return Reading(WARP_SIZE, 1, n_cols) if heads == 1 else None

    def cut(self, rows: RowDegrees, n_cols: int, *, heads: int = 1, block_warps: int) -> Cut:
        """Name the row split; every row is one warp's."""
        return Cut("rows", {"each": 1, "warps": block_warps})
