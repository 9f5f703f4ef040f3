"""GraphBLAST's row split (Yang, Buluç and Owens, Euro-Par 2018): a warp a row."""

from collections.abc import Mapping

from accelviz.plans.launch import WARP_SIZE
from accelviz.strategies.blocks import block_warps_of
from accelviz.strategies.spmm.rows import BlockWarps, RowStrategy


class FourWarps(BlockWarps):
    """`block_warps` (warps of a block, 1 to 32)."""

    block_warps: int = block_warps_of(4, 16, 32)


class GraphBLAST(RowStrategy):
    """A warp multiplies a row, 32 columns at a time; its lanes load 32 nonzeros and share them.

    It takes `block_warps` (warps of a block, 1 to 32).
    """

    name = "graphblast"
    summary = "row split: a warp a row, nonzeros loaded together and broadcast by shuffles"
    Settings = FourWarps

    def columns(self, n_cols: int) -> tuple[int, Mapping[str, int]]:
        """Give each warp a tile of 32 columns."""
        return -(-n_cols // WARP_SIZE), {}
