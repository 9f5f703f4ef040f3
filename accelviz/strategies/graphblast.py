"""GraphBLAST's row split (Yang, Buluç and Owens, Euro-Par 2018): a warp a row."""

from __future__ import annotations

from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.partition.summary import PartitionSummary
from accelviz.strategies.base import Strategy
from accelviz.strategies.plans import WARP_SIZE, Plan
from accelviz.strategies.rows import plan_rows, summarize_rows


class GraphBLAST(Strategy):
    """A warp multiplies a row, 32 columns at a time; its lanes load 32 nonzeros and share them.

    `build` takes `block_warps` (warps in a block, 1 to 32).
    """

    name = "graphblast"
    summary = "row split: a warp a row, nonzeros loaded together and broadcast by shuffles"

    def build(self, graph: Graph, n_cols: int, *, block_warps: int = 4) -> Plan:
        """Give each warp a row and a tile of 32 columns.

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
            rows_per_warp=1,
            column_tiles=-(-n_cols // WARP_SIZE),
            defines={},
        )

    def summarize(self, rows: RowDegrees, n_cols: int, *, block_warps: int) -> PartitionSummary:
        """Count blocks and loads; every row is one warp's."""
        return summarize_rows(rows, 1, block_warps)
