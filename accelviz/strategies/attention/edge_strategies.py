"""Strategies of the softmax over edges and of its gradient, which walk rows alike."""

from __future__ import annotations

from functools import partial

import numpy as np

from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.partition.row_groups import RowGroups, long_rows, row_group_workload
from accelviz.plans import Buffers, Layout, Plan, Provenance, Strategy, Widths
from accelviz.plans.description import Description
from accelviz.plans.launch import WARP_SIZE, Call, KernelSpec, LaunchConfig
from accelviz.plans.operation import Operation
from accelviz.plans.settings import Settings, setting
from accelviz.strategies.blocks import (
    POWERS,
    RowStrategy,
    block_threads_of,
    size_arguments,
)

#: Nonzeros of a lane that stay in registers, and those of a row that one subwarp has at most.
KEPT, LONG_ROW = 4, 1024


class RowWarp(RowStrategy):
    """A warp has a row: one pass over its values finds the row's sum, a second one writes."""

    name = "row_warp"
    summary = "a warp a row, one head after the other, two passes"
    file = "attention/edge_row_warp.cu"
    arrays = ("row_pointers",)  # the columns are nothing to it

    def __init__(self, operation: Operation) -> None:
        self.operation, self.entry = operation, operation.name

    def lanes(self, widths: Widths) -> None:
        """Return None: nothing is gathered."""
        return


class LaneGroupSettings(Settings):
    """Lanes of a subwarp, and the rows that have a block."""

    lanes: int = setting(
        None,
        "lanes of a subwarp, which has a row; more: fewer turns, fewer rows in a warp",
        choices=POWERS,
        tries=(4, 8, 16),
    )
    long_row: int = setting(
        LONG_ROW,
        "longest row that one subwarp has; a longer one has a block for itself",
        1 << 20,
        tries=(256, 1024),
    )
    block_threads: int = block_threads_of(128, 64, 128, 256)

    @property
    def groups(self) -> int:
        """Groups of a block, if the lanes are chosen."""
        return self.block_threads // self.lanes


class LaneGroups(Strategy):
    """A few lanes have a head of a row and keep its values in registers: each is read once."""

    name = "lane_groups"
    summary = "our own: a subwarp a head of a row, values in registers, long rows a block each"
    worker = "subwarp"
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
        sizes = size_arguments(graph, widths)
        kernel = KernelSpec(
            "attention/edge_lane_groups.cu",
            self.operation.name,
            config,
            ("row_pointers", "long_rows", *self.operation.operands, "n_long", *sizes),
        )
        blocks = long.size + -(-graph.n_rows * n_cols // groups)
        launch = LaunchConfig((blocks, 1, 1), groups * settings.lanes // WARP_SIZE)
        arrays = {
            "row_pointers": graph.row_pointers,
            "long_rows": long,
            "n_long": np.int32(long.size),
            **sizes,
        }
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
        """Name the row groups: a subwarp a head of a row, a block a long row."""
        return Description(RowGroups(settings.long_row, widths["n_cols"], settings.groups))
