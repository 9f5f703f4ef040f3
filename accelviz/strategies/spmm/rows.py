"""SpMM strategies without preprocessing: one thread per row, GraphBLAST and GE-SpMM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from accelviz.ordering import RowDegrees
from accelviz.plans import Description, LaneColumns, Widths
from accelviz.plans.launch import WARP_SIZE
from accelviz.strategies.blocks import BlockWarps, RowStrategy, block_warps_setting
from accelviz.strategies.spmm.operation import SPMM

#: Columns per lane of GE-SpMM for more than 32 columns: the paper's coarsening factor.
MERGED_COLUMNS = 2


class EightWarps(BlockWarps):
    """`block_warps`: warps per block, by default 8."""

    block_warps: int = block_warps_setting(8, 16, 32)


class FourWarps(BlockWarps):
    """`block_warps`: warps per block, by default 4."""

    block_warps: int = block_warps_setting(4, 16, 32)


class RowThread(RowStrategy):
    """One thread per row: lanes idle until the warp's longest row ends, and loads of X scatter."""

    operation = SPMM
    name = "row_thread"
    summary = "the naive kernel: one thread per row"
    file = "spmm/row_thread.cu"
    Settings = EightWarps
    rows_per_warp = WARP_SIZE

    def lanes(self, widths: Widths) -> LaneColumns:
        """Return one lane with all columns."""
        return LaneColumns(1, 1, widths["n_cols"])


class GraphBLAST(RowStrategy):
    """One warp per row and 32 columns; its lanes load 32 nonzeros and exchange them by shuffles.

    The row split of Yang, Buluç and Owens (Euro-Par 2018).
    """

    operation = SPMM
    name = "graphblast"
    summary = "row split: a warp per row, nonzeros loaded together and broadcast by shuffles"
    file = "spmm/graphblast.cu"
    Settings: ClassVar[type[BlockWarps]] = FourWarps

    def columns(self, n_cols: int) -> tuple[int, Mapping[str, int]]:
        """Return the number of tiles of 32 columns."""
        return -(-n_cols // WARP_SIZE), {}

    def lanes(self, widths: Widths) -> LaneColumns:
        """Return the 32 lanes that cover a tile, 1 or `lane_columns` columns each."""
        _, config = self.columns(widths["n_cols"])
        return LaneColumns(WARP_SIZE, 1, WARP_SIZE * config.get("lane_columns", 1))


class GeSpMM(GraphBLAST):
    """A warp copies 32 nonzeros of its row to shared memory and uses them for 32 or 64 columns.

    The copy is the paper's coalesced row caching. With coarse-grained warp merging one warp
    computes 64 columns, so that nonzeros are loaded half as often (Huang et al., SC 2020).
    Merging needs more than 32 columns. Without it the kernel executes more instructions: on
    facebook 4.0 million with 32 columns and 2.9 million with 48 (counters-ours-h200).
    """

    name = "ge_spmm"
    summary = "coalesced row caching and coarse-grained warp merging"
    file = "spmm/ge_spmm.cu"
    Settings = EightWarps

    def columns(self, n_cols: int) -> tuple[int, Mapping[str, int]]:
        """Return the number of tiles: of 32 columns, or of 64 for more than 32 columns."""
        merged = MERGED_COLUMNS if n_cols > WARP_SIZE else 1
        return -(-n_cols // (WARP_SIZE * merged)), {"lane_columns": merged}

    def describe(self, settings: BlockWarps, rows: RowDegrees, widths: Widths) -> Description:
        """Describe a row split; the text says how many columns a lane has."""
        merges = widths["n_cols"] > WARP_SIZE
        text = self.summary if merges else "coalesced row caching, without merged warps"
        return replace(super().describe(settings, rows, widths), text=text)
