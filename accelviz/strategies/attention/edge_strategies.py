"""Strategies of the softmax over edges and of its gradient, which walk rows alike."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.partition.row_groups import RowGroups, long_rows, row_group_workload
from accelviz.partition.row_split import row_workload
from accelviz.plans.description import Description
from accelviz.plans.launch import WARP_SIZE, Call, KernelSpec, LaunchConfig
from accelviz.plans.operation import Operation
from accelviz.plans.plan import Buffers, Layout, Plan, Provenance, Strategy, Widths
from accelviz.plans.settings import Settings, setting
from accelviz.strategies.blocks import (
    POWERS,
    BlockWarps,
    RowStrategy,
    block_threads_of,
)

#: Nonzeros of a lane that stay in registers, and those of a row that one group has at most.
KEPT, LONG_ROW = 4, 1024


def _kernel(operation: Operation, file: str, config: dict[str, int], *extra: str) -> KernelSpec:
    """Return a kernel that takes the operands of an operation between arrays of its own."""
    arguments = ("row_pointers", *extra[:1], *operation.operands, *extra[1:], "n_rows", "n_cols")
    return KernelSpec(f"attention/{file}", operation.name, config, arguments)


def _arrays(graph: Graph, n_cols: int) -> dict[str, Any]:
    """Return what both kernels take of a graph, whose columns are nothing to them."""
    sizes = {"n_rows": np.int32(graph.n_rows), "n_cols": np.int32(n_cols)}
    return {"row_pointers": graph.row_pointers, **sizes}


class RowWarp(RowStrategy):
    """A warp has a row: one pass over its values finds the row's sum, a second one writes.

    It takes `block_warps` (warps of a block, 1 to 32).
    """

    name = "row_warp"
    summary = "a warp a row, one head after the other, two passes"

    def __init__(self, operation: Operation) -> None:
        self.operation = operation

    def build(self, graph: Graph, widths: Widths, settings: BlockWarps) -> Plan:
        """Deal out the rows."""
        block_warps = settings.block_warps
        kernel = _kernel(self.operation, "edge_row_warp.cu", {"block_warps": block_warps})
        launch = LaunchConfig((-(-graph.n_rows // block_warps), 1, 1), block_warps)
        return Plan(
            Layout(graph.pattern, partial(row_workload, graph.row_pointers, 1, block_warps)),
            (Call(launch, kernel),),
            Buffers(_arrays(graph, widths["n_cols"]), zero_outputs=()),
            Provenance(self, graph.values, widths, settings),
        )


class LaneGroupSettings(Settings):
    """Lanes of a group, and the rows that have a block."""

    lanes: int = setting(
        None,
        "lanes of a group, which has a row; more: fewer turns for it, fewer rows in a warp",
        choices=POWERS,
        tries=(4, 8, 16),
    )
    long_row: int = setting(
        LONG_ROW,
        "longest row that one group has; a longer one has a block for itself",
        1 << 20,
        tries=(256, 1024),
    )
    block_threads: int = block_threads_of(128, 64, 128, 256)

    @property
    def groups(self) -> int:
        """Groups of a block, if the lanes are chosen."""
        return self.block_threads // self.lanes


class LaneGroups(Strategy):
    """A few lanes have a head of a row and keep its values in registers: each is read once.

    It takes `lanes` of a group (a power of two up to 32; None for the choice of a rule, by the
    average degree), `long_row` (most nonzeros of a row that one group has, up to 2^20; longer rows
    have a block each) and `block_threads` (a multiple of 32 up to 1,024).
    """

    name = "lane_groups"
    summary = "our own: a lane group a head of a row, values in registers, long rows a block each"
    worker = "lane group"
    Settings = LaneGroupSettings

    def __init__(self, operation: Operation) -> None:
        self.operation = operation

    def build(self, graph: Graph, widths: Widths, settings: LaneGroupSettings) -> Plan:
        """Find the long rows; deal out the others."""
        n_cols, groups = widths["n_cols"], settings.groups
        long = long_rows(graph.row_pointers, settings.long_row)
        long.setflags(write=False)
        config = {
            "lanes": settings.lanes,
            "groups": groups,
            "lane_nonzeros": KEPT,
            "long_row": settings.long_row,
        }
        kernel = _kernel(self.operation, "edge_lane_groups.cu", config, "long_rows", "n_long")
        blocks = long.size + -(-graph.n_rows * n_cols // groups)
        launch = LaunchConfig((blocks, 1, 1), groups * settings.lanes // WARP_SIZE)
        arrays = {**_arrays(graph, n_cols), "long_rows": long, "n_long": np.int32(long.size)}
        workload = partial(row_group_workload, graph.row_pointers, long, n_cols, groups)
        return Plan(
            Layout(graph.pattern, workload, workers_per_block=groups),
            (Call(launch, kernel),),
            Buffers(arrays, zero_outputs=()),
            Provenance(self, graph.values, widths, settings),
        )

    def resolve(
        self, settings: LaneGroupSettings, graph: Graph | RowDegrees, widths: Widths
    ) -> LaneGroupSettings:
        """Ask the rule, which looks at the average degree."""
        enough = graph.nnz // (KEPT * max(graph.n_rows, 1))
        return settings.filled(lanes=min(1 << max(enough - 1, 0).bit_length(), WARP_SIZE))

    def describe(
        self, settings: LaneGroupSettings, rows: RowDegrees, widths: Widths
    ) -> Description:
        """Name the row groups: a group a head of a row, a block a long row."""
        return Description(RowGroups(settings.long_row, widths["n_cols"], settings.groups))
