"""Strategies of the softmax over edges and of its gradient, which walk rows alike."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np

from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.partition.cut import Cut
from accelviz.partition.row_groups import long_rows, row_group_workload
from accelviz.partition.row_split import row_workload
from accelviz.plans import Call, KernelSpec, LaunchConfig, Operation, Parameter, Plan, Strategy
from accelviz.plans.launch import WARP_SIZE
from accelviz.strategies.blocks import (
    POWERS,
    RowSplit,
    block_threads_of,
    block_warps_of,
)

#: Nonzeros of a lane that stay in registers, and those of a row that one group has at most.
KEPT, LONG_ROW = 4, 1024


def _kernel(operation: Operation, file: str, config: dict[str, int], *own: str) -> KernelSpec:
    """Return a kernel that takes the operands of an operation between arrays of its own."""
    arguments = ("row_pointers", *own[:1], *operation.operands, *own[1:], "n_rows", "n_cols")
    return KernelSpec(f"attention/{file}", operation.name, config, arguments)


def _arrays(graph: Graph, n_cols: int) -> dict[str, Any]:
    """Return what both kernels take of a graph, whose columns are nothing to them."""
    sizes = {"n_rows": np.int32(graph.n_rows), "n_cols": np.int32(n_cols)}
    return {"row_pointers": graph.row_pointers, **sizes}


class RowWarp(RowSplit):
    """A warp has a row: one pass over its values finds the row's sum, a second one writes.

    It takes `block_warps` (warps of a block, 1 to 32).
    """

    name = "row_warp"
    summary = "a warp a row, one head after the other, two passes"
    parameters: ClassVar = {"block_warps": block_warps_of(4, 16)}

    def __init__(self, operation: Operation) -> None:
        self.operation = operation

    def build(self, graph: Graph, n_cols: int, *, block_warps: int) -> Plan:
        """Deal out the rows."""
        kernel = _kernel(self.operation, "edge_row_warp.cu", {"block_warps": block_warps})
        launch = LaunchConfig((-(-graph.n_rows // block_warps), 1, 1), block_warps)
        return Plan(
            graph.pattern,
            (Call(launch, kernel),),
            partial(row_workload, graph.row_pointers, 1, block_warps),
            arrays=_arrays(graph, n_cols),
            clears=(),
        )


class LaneGroups(Strategy):
    """A few lanes have a head of a row and keep its values in registers: each is read once.

    It takes `lanes` of a group (a power of two up to 32; None for the choice of a rule, by the
    average degree), `long_row` (most nonzeros of a row that one group has, up to 2^20; longer rows
    have a block each) and `block_threads` (a multiple of 32 up to 1,024).
    """

    name = "lane_groups"
    summary = "our own: a lane group a head of a row, values in registers, long rows a block each"
    worker = "lane group"
    parameters: ClassVar = {
        "lanes": Parameter(
            None,
            "lanes of a group, which has a row; more: fewer turns for it, fewer rows in a warp",
            choices=POWERS,
            tries=(4, 8, 16),
        ),
        "long_row": Parameter(
            LONG_ROW,
            "longest row that one group has; a longer one has a block for itself",
            1 << 20,
            tries=(256, 1024),
        ),
        "block_threads": block_threads_of(128, 64, 128, 256),
    }

    def __init__(self, operation: Operation) -> None:
        self.operation = operation

    def build(self, graph: Graph, n_cols: int, **parameters: Any) -> Plan:
        """Find the long rows; deal out the others."""
        lanes, groups, most = _setting(graph.n_rows, graph.nnz, **parameters)
        long = long_rows(graph.row_pointers, most)
        long.setflags(write=False)
        config = {"lanes": lanes, "groups": groups, "kept": KEPT, "long_row": most}
        operation = self.operation
        kernel = _kernel(operation, "edge_lane_groups.cu", config, "long_rows", "n_long")
        blocks = long.size + -(-graph.n_rows * n_cols // groups)
        return Plan(
            graph.pattern,
            (Call(LaunchConfig((blocks, 1, 1), groups * lanes // WARP_SIZE), kernel),),
            partial(row_group_workload, graph.row_pointers, long, n_cols, groups),
            arrays={
                **_arrays(graph, n_cols),
                "long_rows": long,
                "n_long": np.int32(long.size),
            },
            clears=(),
            workers_per_block=groups,
            parameters=self.settle(graph, n_cols, **parameters),
        )

    def settle(self, graph: Graph, n_cols: int, **parameters: Any) -> dict[str, int]:
        """Ask the rule, which looks at the average degree."""
        return {"lanes": _setting(graph.n_rows, graph.nnz, **parameters)[0]}

    def cut(self, rows: RowDegrees, n_cols: int, **parameters: Any) -> Cut:
        """Name the row groups: a group a head of a row, a block a long row."""
        histogram = rows.histogram
        _, groups, most = _setting(histogram.n_rows, histogram.nnz, **parameters)
        return Cut("row_groups", {"most": most, "heads": n_cols, "warps": groups})


def _setting(
    n_rows: int, nnz: int, *, lanes: int | None, long_row: int, block_threads: int
) -> tuple[int, int, int]:
    """Return the lanes of a group, the groups of a block and the longest row of a group."""
    if lanes is None:
        enough = nnz // (KEPT * max(n_rows, 1))
        lanes = min(1 << max(enough - 1, 0).bit_length(), WARP_SIZE)
    return lanes, block_threads // lanes, long_row
