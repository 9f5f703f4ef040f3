"""SpMM by rows as they come: the kernel a beginner writes, GraphBLAST's and GE-SpMM's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from accelviz.plans import LaneColumns, Widths
from accelviz.plans.launch import WARP_SIZE
from accelviz.strategies.blocks import BlockWarps, RowStrategy, block_warps_of
from accelviz.strategies.spmm.operation import SPMM

#: Columns of a lane of GE-SpMM where there are more than 32: the paper's coarsening factor.
MERGED_COLUMNS = 2


class EightWarps(BlockWarps):
    """`block_warps` (warps of a block, 1 to 32)."""

    block_warps: int = block_warps_of(8, 16, 32)


class FourWarps(BlockWarps):
    """`block_warps` (warps of a block, 1 to 32)."""

    block_warps: int = block_warps_of(4, 16, 32)


class RowThread(RowStrategy):
    """A thread has a whole row: lanes wait for their warp's longest row, and read X apart."""

    operation = SPMM
    name = "row_thread"
    summary = "the naive kernel: one thread a row"
    file = "spmm/row_thread.cu"
    Settings = EightWarps
    rows_per_warp = WARP_SIZE

    def lanes(self, widths: Widths) -> LaneColumns:
        """Give a lane all columns."""
        return LaneColumns(1, 1, widths["n_cols"])


class GraphBLAST(RowStrategy):
    """A warp multiplies a row, 32 columns at a time; its lanes load 32 nonzeros and share them.

    The row split of Yang, Buluç and Owens (Euro-Par 2018).
    """

    operation = SPMM
    name = "graphblast"
    summary = "row split: a warp a row, nonzeros loaded together and broadcast by shuffles"
    file = "spmm/graphblast.cu"
    Settings: ClassVar[type[BlockWarps]] = FourWarps

    def columns(self, n_cols: int) -> tuple[int, Mapping[str, int]]:
        """Give each warp a tile of 32 columns."""
        return -(-n_cols // WARP_SIZE), {}

    def lanes(self, widths: Widths) -> LaneColumns:
        """Spread a warp over a tile's columns."""
        _, config = self.columns(widths["n_cols"])
        return LaneColumns(WARP_SIZE, 1, WARP_SIZE * config.get("lane_columns", 1))


class GeSpMM(GraphBLAST):
    """A warp stages 32 nonzeros of its row in shared memory and uses each for 32 or 64 columns.

    Coalesced row caching is the staging; coarse-grained warp merging lets one warp do the columns
    of two, so that the nonzeros are loaded half as often (Huang et al., SC 2020).
    """

    name = "ge_spmm"
    summary = "coalesced row caching and coarse-grained warp merging"
    file = "spmm/ge_spmm.cu"
    Settings = EightWarps

    def columns(self, n_cols: int) -> tuple[int, Mapping[str, int]]:
        """Give each warp a tile of 32 columns, or 64 where there are that many."""
        merged = MERGED_COLUMNS if n_cols > WARP_SIZE else 1
        return -(-n_cols // (WARP_SIZE * merged)), {"lane_columns": merged}
