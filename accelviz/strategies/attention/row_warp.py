"""The readable attention, and its gradients: a warp has a head of a row. Those of an SpMM too."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.partition.cut import Cut
from accelviz.partition.nonzero_runs import numbers_32
from accelviz.partition.row_split import row_workload
from accelviz.plans import Call, KernelSpec, LaunchConfig, Operation, Plan
from accelviz.plans.launch import WARP_SIZE
from accelviz.strategies.attention import walks
from accelviz.strategies.attention.gradient import GAT_GRADIENT
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
        walks.check(graph, n_cols)
        problems = walks.problems_of(self.operation)
        shared: dict[str, Any] = walks.buffers(problems, graph.n_rows, heads, n_cols)
        of_widths = heads, n_cols, block_warps
        if not self.operation.by_sender:
            return self._walk(graph, problems[0], *of_widths)
        turned = graph.transposed()
        before = walks.statistics_calls(graph.pattern, self.operation, heads, n_cols)
        then = tuple(
            self._walk(graph, each, *of_widths, clears=(), **shared) for each in problems[1:]
        )
        made = self._walk(
            turned.graph,
            problems[0],
            *of_widths,
            pattern=graph.pattern,
            nonzero_order=turned.nonzeros,
            before=before,
            then=then,
            main=len(before),
            clears=("d_receiver",) if self.operation == GAT_GRADIENT else (),
            **shared,
        )
        return replace(made, arrays={**made.arrays, **walks.receivers(graph, before)})

    @staticmethod
    def _walk(
        graph: Graph, problem: walks.Problem, heads: int, n_cols: int, block_warps: int, **more: Any
    ) -> Plan:
        before, order = more.pop("before", ()), more.get("nonzero_order")
        walked = ("row_pointers", "columns", *(() if order is None else ("order",)))
        defines = {
            "PROBLEM": problem.number,
            "BLOCK_WARPS": block_warps,
            "LANE_VECTORS": -(-n_cols // WARP_SIZE),
            "WHOLE_LANES": int(n_cols % WARP_SIZE == 0),
            "TOTAL_PARTS": walks.TOTAL_PARTS,
        }
        arguments = (*problem.arguments(walked, ()), "n_rows", "heads", "n_cols")
        kernel = KernelSpec("attention/row_warp.cu", problem.name, defines, arguments)
        launch = LaunchConfig((-(-graph.n_rows // block_warps), heads, 1), block_warps)
        last = (walks.totals_call(heads, n_cols),) if problem.totals else ()
        more = {"pattern": graph.pattern, "clears": (), **more}
        return Plan(
            calls=(*before, Call(launch, kernel), *last),
            slice_workload=partial(row_workload, graph.row_pointers, 1, block_warps),
            walked=graph.pattern,
            arrays={
                **csr_arrays(graph, n_cols),
                **({} if order is None else {"order": numbers_32(order)}),
                "heads": np.int32(heads),
            },
            **more,
        )

    def cut(self, rows: RowDegrees, n_cols: int, *, heads: int = 1, block_warps: int) -> Cut:
        """Name the row split; every row is one warp's."""
        atomics = walks.atomics(self.operation, heads)
        return Cut("rows", {"each": 1, "warps": block_warps, "atomics": atomics})
