"""The kernel a beginner writes: one thread a row."""

from __future__ import annotations

from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.partition.summary import PartitionSummary
from accelviz.strategies.base import Strategy
from accelviz.strategies.plans import WARP_SIZE, Plan
from accelviz.strategies.rows import plan_rows, summarize_rows


class RowThread(Strategy):
    """A thread multiplies a whole row: lanes wait for their warp's longest row, and read X apart.

    `build` takes `block_warps` (warps in a block, 1 to 32).
    """

    name = "row_thread"
    summary = "the naive kernel: one thread a row"

    def build(self, graph: Graph, n_cols: int, *, block_warps: int = 8) -> Plan:
        """Give each warp 32 consecutive rows.

        Raises
        ------
        PartitionError
            If `block_warps` is out of range.
        """
        return plan_rows(
            self.name,
            graph,
            n_cols,
            block_warps=block_warps,
            rows_per_warp=WARP_SIZE,
            column_tiles=1,
            defines={},
        )

    def summarize(self, rows: RowDegrees, n_cols: int, *, block_warps: int) -> PartitionSummary:
        """Count blocks and loads; every row is one warp's."""
        return summarize_rows(rows, WARP_SIZE, block_warps)
