"""GE-SpMM (Huang et al., SC 2020): coalesced row caching and coarse-grained warp merging."""

from __future__ import annotations

from accelviz.graph import Graph
from accelviz.ordering import RowDegrees
from accelviz.partition.summary import PartitionSummary
from accelviz.strategies.base import Strategy
from accelviz.strategies.plans import WARP_SIZE, Plan
from accelviz.strategies.rows import plan_rows, summarize_rows

#: Columns of a lane where there are more than 32: the paper's coarsening factor.
MERGED_COLUMNS = 2


class GeSpMM(Strategy):
    """A warp stages 32 nonzeros of its row in shared memory and uses each for 32 or 64 columns.

    Coalesced row caching is the staging; coarse-grained warp merging lets one warp do the columns
    of two, so that the nonzeros are loaded half as often. `build` takes `block_warps` (warps in a
    block, 1 to 32).
    """

    name = "ge_spmm"
    summary = "coalesced row caching and coarse-grained warp merging"

    def build(self, graph: Graph, n_cols: int, *, block_warps: int = 8) -> Plan:
        """Give each warp a row and a tile of 32 columns, or 64 where there are that many.

        Raises
        ------
        PartitionError
            If `block_warps` is out of range.
        """
        merged = MERGED_COLUMNS if n_cols > WARP_SIZE else 1
        return plan_rows(
            self.name,
            graph,
            n_cols,
            block_warps=block_warps,
            rows_per_warp=1,
            column_tiles=-(-n_cols // (WARP_SIZE * merged)),
            defines={"LANE_COLUMNS": merged},
        )

    def summarize(self, rows: RowDegrees, n_cols: int, *, block_warps: int) -> PartitionSummary:
        """Count blocks and loads; every row is one warp's."""
        return summarize_rows(rows, 1, block_warps)
