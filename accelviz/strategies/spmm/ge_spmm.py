"""GE-SpMM (Huang et al., SC 2020): coalesced row caching and coarse-grained warp merging."""

from collections.abc import Mapping

from accelviz.plans.launch import WARP_SIZE
from accelviz.strategies.spmm.rows import RowStrategy

#: Columns of a lane where there are more than 32: the paper's coarsening factor.
MERGED_COLUMNS = 2


class GeSpMM(RowStrategy):
    """A warp stages 32 nonzeros of its row in shared memory and uses each for 32 or 64 columns.

    Coalesced row caching is the staging; coarse-grained warp merging lets one warp do the columns
    of two, so that the nonzeros are loaded half as often. It takes `block_warps` (warps of a block,
    1 to 32).
    """

    name = "ge_spmm"
    summary = "coalesced row caching and coarse-grained warp merging"

    def columns(self, n_cols: int) -> tuple[int, Mapping[str, int]]:
        """Give each warp a tile of 32 columns, or 64 where there are that many."""
        merged = MERGED_COLUMNS if n_cols > WARP_SIZE else 1
        return -(-n_cols // (WARP_SIZE * merged)), {"lane_columns": merged}
